"""Regret: how far presentations stay below the best one, and the bounds that theory gives."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import process_time
from typing import Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from penchant.errors import DataError
from penchant.numerics.random import RandomState, as_rng
from penchant.numerics.types import FloatArray, IntArray
from penchant.online.feedback import Round, User, discounted
from penchant.online.perceptron import present_sorted


class Learner(Protocol):
    """What `simulate` and `learn_stream` need of a model; k is the number of places that count.

    >>> from penchant import PreferencePerceptron
    >>> model: Learner = PreferencePerceptron(k=3)
    >>> model.present(np.eye(3)).tolist()
    [0, 1, 2]
    """

    k: int

    def present(self, docs: Any) -> IntArray: ...

    def learn(self, docs: Any, presented: Any, feedback: Any) -> Self: ...


def perceptron_bound(
    n_rounds: ArrayLike, norm: float, weight_norm: float, alpha: float = 1.0, slack: ArrayLike = 0.0
) -> FloatArray:
    """Return Theorem 1's bound (Eq. 4) on the average regret after T rounds.

    `norm` is R, a bound on ‖φ(x, y)‖; `weight_norm` is ‖w*‖; `slack` is (1/T) Σ ξ_t. Holds in
    expectation when the feedback is α-informative in expectation. With the logistic loss, whose
    slope lies between ½ and 1 on rounds that the model presented itself, twice the bound holds
    without slack; and a convex cost of the utility difference whose slopes are at most G exceeds
    its value at no difference by at most G times the regret, so G times the bound covers it.

    >>> perceptron_bound([1, 100], norm=1.0, weight_norm=1.0, alpha=0.5).round(3).tolist()
    [4.0, 0.4]
    """
    rounds = np.asarray(n_rounds, dtype=np.float64)
    noise = np.asarray(slack, dtype=np.float64)
    return noise / alpha + 2.0 * norm * weight_norm / (alpha * np.sqrt(rounds))


def exponentiated_bound(
    n_rounds: ArrayLike, largest: float, n_features: int, rate: float, alpha: float = 1.0
) -> FloatArray:
    """Return the bound on the average regret of the exponentiated update, without slack.

    For w* with wᵢ ≥ 0 and Σ wᵢ = 1, and |φᵢ(x, y)| ≤ `largest`: the relative entropy between
    w* and w_t starts at most at log d, and a round lowers it by η w*ᵀΔ less at most
    η² max|Δᵢ|²/2, and that at most 2 η² times the square of `largest`.

    >>> exponentiated_bound(100, largest=1.0, n_features=10, rate=0.1).round(3).item()
    0.43
    """
    rounds = np.asarray(n_rounds, dtype=np.float64)
    entropy = float(np.log(n_features))
    return (entropy / (rate * rounds) + 2.0 * rate * largest**2) / alpha


def feature_norm(rounds: Sequence[Round], k: int) -> float:
    """Return R: no order of any round's documents has ‖φ(x, y)‖ above it (triangle inequality).

    >>> feature_norm([Round(np.eye(2))], k=1)
    1.0
    """
    lengths = (np.linalg.norm(round_.docs, axis=1) for round_ in rounds)
    return max(discounted(norms, present_sorted(norms), k) for norms in lengths)


@dataclass(frozen=True, eq=False)
class Regret:
    """What `simulate` measured: P permutations of T rounds.

    Attributes
    ----------
    utility : (P, T) U(x, y*) − U(x, y) of each round's presentation (Eq. 1 is its mean).
    gain : (P, T) U(x, ȳ) − U(x, y), what the feedback offered.
    dcg : (P, T) the best DCG minus the presented one ("DCG*"), or None without labels.
    seconds : (P, T) processor time spent inside the model, presenting and learning.
    feature_norm, weight_norm : R and ‖w*‖ of Theorem 1.

    >>> from penchant import PreferencePerceptron
    >>> from penchant.online import AlphaUser, Round
    >>> taste = np.array([0.0, 1.0, 2.0])
    >>> rounds = [Round(np.eye(3))] * 5
    >>> regret = simulate(PreferencePerceptron(), rounds, AlphaUser(taste), weights=taste)
    >>> bool(regret.running()[0][-1] < regret.running()[0][0])
    True
    """

    utility: FloatArray
    gain: FloatArray
    dcg: FloatArray | None
    seconds: FloatArray
    feature_norm: float
    weight_norm: float

    def running(self, of: Literal["utility", "dcg"] = "utility") -> tuple[FloatArray, FloatArray]:
        """Return the running mean, (T,), averaged over permutations, and its deviation, (T,)."""
        values = getattr(self, of)
        if values is None:
            raise DataError("no DCG regret: the rounds had no grades; give Round(docs, grades)")
        means = running_mean(values)
        return means.mean(axis=0), means.std(axis=0)

    def slack(self, alpha: float) -> FloatArray:
        """Return ξ, (P, T): by how much the feedback fell short of α-informative (Eq. 2)."""
        return np.maximum(0.0, alpha * self.utility - self.gain)

    def bound(self, alpha: float) -> FloatArray:
        """Return Theorem 1's bound, (T,), at the slack that occurred, mean over permutations."""
        slack = running_mean(self.slack(alpha)).mean(axis=0)
        n_rounds = np.arange(1, slack.size + 1)
        return perceptron_bound(n_rounds, self.feature_norm, self.weight_norm, alpha, slack)


def running_mean(values: FloatArray) -> FloatArray:
    """Return the mean of the first t entries of each row, for every t.

    >>> running_mean(np.array([[1.0, 3.0]])).tolist()
    [[1.0, 2.0]]
    """
    return np.cumsum(values, axis=-1) / np.arange(1, values.shape[-1] + 1)


def simulate(
    model: Learner,
    rounds: Sequence[Round],
    user: User,
    *,
    weights: ArrayLike,
    n_permutations: int = 1,
    random_state: RandomState = None,
) -> Regret:
    """Let the model learn from a simulated user, afresh over each permutation of the rounds.

    `weights` is w*, (d,): the utility by which regret is counted, with the model's own number k
    of places (Eq. 5). A single permutation keeps the rounds as given.

    >>> from penchant import PreferencePerceptron
    >>> from penchant.online import AlphaUser
    >>> taste = np.array([1.0, -1.0])
    >>> user, rounds = AlphaUser(taste), [Round(np.eye(2))] * 5
    >>> simulate(PreferencePerceptron(), rounds, user, weights=taste).utility.round(2)
    array([[0., 0., 0., 0., 0.]])
    """
    if not rounds or n_permutations < 1:
        raise DataError(
            f"simulate got {len(rounds)} rounds and {n_permutations} permutations: both must be "
            "at least 1"
        )
    rng = as_rng(random_state)
    truth = np.asarray(weights, dtype=np.float64)
    runs = []
    for _ in range(n_permutations):
        order = rng.permutation(len(rounds)) if n_permutations > 1 else np.arange(len(rounds))
        learner = clone(model, safe=False)
        runs.append([_play(learner, rounds[t], user, truth, rng) for t in order])
    utility, gain, dcg, seconds = np.moveaxis(np.array(runs), -1, 0)
    shown = None if np.isnan(dcg).any() else dcg
    norms = feature_norm(rounds, model.k), float(np.linalg.norm(truth))
    return Regret(utility, gain, shown, seconds, *norms)


def _play(
    model: Learner, round_: Round, user: User, weights: FloatArray, rng: np.random.Generator
) -> tuple[float, float, float, float]:
    """Play one round: utility regret, gain offered, DCG regret (or NaN), processor seconds."""
    begin = process_time()
    presented = model.present(round_.docs)
    seconds = process_time() - begin
    feedback = user(round_, presented, rng)
    begin = process_time()
    model.learn(round_.docs, presented, feedback)
    seconds += process_time() - begin
    utility = np.asarray(round_.docs @ weights, dtype=np.float64)
    gain = discounted(utility, feedback, model.k) - discounted(utility, presented, model.k)
    grades = round_.grades
    dcg = np.nan if grades is None else _shortfall(grades, presented, model.k)
    return _shortfall(utility, presented, model.k), gain, dcg, seconds


def _shortfall(values: FloatArray, presented: IntArray, k: int) -> float:
    return discounted(values, present_sorted(values), k) - discounted(values, presented, k)


# Learning from a stream that is too long to hold: one round at a time, with checkpoints.

_STRIDE = 100
"""Rounds between updates of the progress bar: an update takes longer than a small round."""


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

    >>> from penchant import PreferencePerceptron
    >>> from penchant.online import LabelUser, Round
    >>> stream = (Round(np.eye(3), np.arange(3.0)) for _ in range(10))
    >>> learn_stream(PreferencePerceptron(), stream, LabelUser())
    10
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
    """A function to call with the number of rounds; it draws nothing outside a terminal."""
    if not sys.stderr.isatty():
        yield lambda n_rounds: None
        return
    from rich import progress
    from rich.console import Console

    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.TextColumn("{task.completed:,} rounds"),
        progress.TaskProgressColumn(show_speed=True),
        progress.TimeElapsedColumn(),
    )
    with progress.Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("learning", total=None)
        yield lambda n_rounds: bar.update(task, completed=n_rounds)
