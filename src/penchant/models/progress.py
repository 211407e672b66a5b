"""Progress bars for long fits: on a terminal, on stderr, gone when the fit is done."""

from collections.abc import Iterator
from contextlib import contextmanager

from penchant.communities import ChainState
from penchant.communities import Watch as SweepWatch
from penchant.gp import Watch


@contextmanager
def progress_bar(title: str, shown: bool) -> Iterator[Watch | None]:
    """What to tell each evaluation of the evidence to; None where nobody would see it."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

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


@contextmanager
def sweep_progress(n_sweeps: int, shown: bool) -> Iterator[SweepWatch]:
    """What to tell of each of `n_sweeps` sweeps; where nobody would see it, nothing is drawn."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if not shown or not console.is_terminal:  # some versions end a bar that is disabled by a line
        yield lambda state: None
        return
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("sampling communities", total=n_sweeps)

        def watch(state: ChainState) -> None:
            told = f"chain {state.seed[-1] + 1}: {len(state.utilities)} communities"
            bar.update(task, advance=1, description=told)

        yield watch
