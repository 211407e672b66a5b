"""A progress bar for sampling: on a terminal, on stderr, gone when it is done."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress

from penchant.communities.chains import Watch
from penchant.communities.samplers import ChainState


@contextmanager
def sweep_progress(n_sweeps: int, shown: bool) -> Iterator[Watch]:
    """What to tell of each of `n_sweeps` sweeps; where nobody would see it, nothing is drawn."""
    console = Console(stderr=True)
    hidden = not (shown and console.is_terminal)
    with Progress(console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task("sampling communities", total=n_sweeps)

        def watch(state: ChainState) -> None:
            told = f"chain {state.seed[-1] + 1}: {len(state.utilities)} communities"
            bar.update(task, advance=1, description=told)

        yield watch
