"""A progress bar for long fits: on a terminal, on stderr, gone when the fit is done."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from penchant.gp.users.learn import Watch


@contextmanager
def progress_bar(title: str, shown: bool) -> Iterator[Watch | None]:
    """What to tell each evaluation of the evidence to; None where nobody would see it."""
    console = Console(stderr=True)
    if not shown or not console.is_terminal:
        yield None
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TextColumn("evaluation {task.fields[n]}, log evidence {task.fields[value]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=None, n=0, value="…")

        def watch(n_evaluations: int, value: float) -> None:
            bar.update(task, n=n_evaluations, value=f"{value:,.1f}")

        yield watch
