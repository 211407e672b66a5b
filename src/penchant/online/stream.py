"""Learning from a stream that is too long to hold: one round at a time, with checkpoints."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from penchant.numerics.random import RandomState, as_rng
from penchant.online.feedback import User
from penchant.online.regret import Learner
from penchant.online.rounds import Round

_STRIDE = 100
"""Rounds between looks at the progress bar, which costs more than a small round."""


def learn_stream(
    model: Learner,
    rounds: Iterable[Round],
    user: User,
    *,
    checkpoint: Callable[[Learner], object] | None = None,
    every: int = 100_000,
    random_state: RandomState = None,
) -> int:
    """Present, ask the user and learn, round after round; return the number of rounds.

    `rounds` may be endless, or come from a file by `read_rounds`; memory does not grow.
    `checkpoint(model)` is called after every `every` rounds and once when the stream ends,
    breaks or is interrupted (Ctrl-C): a round is learned whole or not at all, so what is saved
    can go on. To resume, skip what the model has seen:
    `itertools.islice(rounds, model.n_rounds_, None)`. A terminal gets a progress bar.

    >>> import numpy as np
    >>> from penchant.models.preference_perceptron import PreferencePerceptron
    >>> from penchant.online import LabelUser, Round
    >>> stream = (Round(np.eye(3), np.arange(3.0)) for _ in range(10))
    >>> saved = []
    >>> model = PreferencePerceptron()
    >>> learn_stream(model, stream, LabelUser(), checkpoint=lambda m: saved.append(m.n_rounds_))
    10
    >>> saved
    [10]
    """
    rng = as_rng(random_state)
    learned = 0
    try:
        with _progress() as tell:
            for round_ in rounds:
                presented = model.present(round_.docs)
                model.learn(round_.docs, presented, user(round_, presented, rng))
                learned += 1
                if learned % _STRIDE == 0:
                    tell(learned)
                if checkpoint is not None and learned % every == 0:
                    checkpoint(model)
    finally:
        if checkpoint is not None:
            checkpoint(model)
    return learned


@contextmanager
def _progress() -> Iterator[Callable[[int], None]]:
    """What to tell the number of rounds; where nobody would see it, nothing is drawn."""
    if not sys.stderr.isatty():
        yield lambda n_rounds: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,} rounds"),
        TaskProgressColumn(show_speed=True),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("learning", total=None)
        yield lambda n_rounds: bar.update(task, completed=n_rounds)
