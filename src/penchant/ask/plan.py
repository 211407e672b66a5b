"""When to stop asking, and how many answers a study needs or still needs, by simulation."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from penchant.ask.belief import Belief, Joint
from penchant.ask.choose import Pool, all_pairs, choose, is_number, is_whole, require
from penchant.ask.criteria import information_gain
from penchant.errors import DataError
from penchant.likelihoods import Probit
from penchant.numerics.random import RandomState, as_rng
from penchant.numerics.types import FloatArray

QUANTILES = (0.1, 0.5, 0.9)
HORIZON = 500
"""Answers after which a simulated future ends."""
DRAWS = 1_000
"""Joint draws for the probability that the top is settled: standard error 0.007 at 95 %."""


class Verdict(NamedTuple):
    """Whether to stop, the number that decided, and its target.

    >>> Verdict(stop=True, value=30, target=30, reason="answers given").stop
    True
    """

    stop: bool
    value: float
    target: float
    reason: str


class StopRule(Protocol):
    """A reason to stop."""

    def check(self, belief: Belief, n_answers: int, rng: np.random.Generator) -> Verdict:
        """The verdict after `n_answers` answers."""


@dataclass(frozen=True)
class Budget:
    """Stop after so many answers.

    >>> Budget(20).check(None, 20, None).stop
    True
    """

    answers: int

    def __post_init__(self) -> None:
        require("Budget: answers", self.answers, is_whole(self.answers, 1), "be a whole number ≥ 1")

    def check(self, belief: Belief, n_answers: int, rng: np.random.Generator) -> Verdict:
        return Verdict(n_answers >= self.answers, n_answers, self.answers, "answers given")


@dataclass(frozen=True)
class SmallGain:
    """Stop when no question is expected to give so many nats about the utilities.

    The most informative question gives log 2 ≈ 0.69 nats.

    >>> import penchant as pc
    >>> data = pc.datasets.simulate_pairs([0.0, 3.0], 60, random_state=0)
    >>> belief = pc.PreferenceGP(random_state=0).fit(None, data).belief()
    >>> SmallGain(below=0.05).check(belief, 60, np.random.default_rng(0)).stop
    True
    """

    below: float = 0.02

    def __post_init__(self) -> None:
        is_positive = is_number(self.below) and self.below > 0.0
        require("SmallGain: below", self.below, is_positive, "be a positive number")

    def check(self, belief: Belief, n_answers: int, rng: np.random.Generator) -> Verdict:
        joint = Joint.of(belief)
        gain = float(information_gain(joint, all_pairs(len(joint)), rng).max())
        return Verdict(gain < self.below, gain, self.below, "nats that one answer may tell")


@dataclass(frozen=True)
class TopSettled:
    """Stop when the top k items are the k best with this probability.

    >>> import numpy as np
    >>> from penchant.likelihoods import Probit
    >>> sure = Joint(np.array([9.0, 0.0, 0.0]), np.eye(3), Probit())
    >>> TopSettled(k=1).check(sure, 0, np.random.default_rng(0)).stop
    True
    """

    k: int = 1
    level: float = 0.95

    def __post_init__(self) -> None:
        if not is_whole(self.k, 1) or not is_number(self.level) or not 0.0 < self.level < 1.0:
            raise DataError(
                f"TopSettled(k={self.k!r}, level={self.level!r}): k must be at least 1 and the "
                "level lie between 0 and 1"
            )

    def check(self, belief: Belief, n_answers: int, rng: np.random.Generator) -> Verdict:
        settled = 1.0
        if self.k < len(belief):
            top = np.argsort(-belief.mean, kind="stable")
            draws = belief.sample(DRAWS, rng)
            worst_in = draws[:, top[: self.k]].min(axis=1)
            best_out = draws[:, top[self.k :]].max(axis=1)
            settled = float(np.mean(worst_in > best_out))
        reason = f"probability that the top {self.k} are settled"
        return Verdict(settled >= self.level, settled, self.level, reason)


class Range(NamedTuple):
    """10 %, median and 90 % of a number of answers in simulated futures; None: beyond the horizon.

    >>> Range(low=10, median=14, high=None)
    14 (10 to more than simulated)
    >>> Range(None, None, None)
    more than simulated
    """

    low: int | None
    median: int | None
    high: int | None

    def __repr__(self) -> str:
        low, median, high = ("more than simulated" if n is None else f"{n}" for n in self)
        return low if self.low == self.high else f"{median} ({low} to {high})"


def answers_left(
    belief: Belief,
    rule: StopRule,
    criterion: str = "variance_ratio",
    horizon: int = HORIZON,
    n_futures: int = 10,
    random_state: RandomState = None,
) -> Range:
    """How many more answers the rule needs, in futures simulated from the belief.

    Each future draws the true utilities from the belief and answers from those. A future that
    does not stop within the horizon counts as longer than it.

    >>> belief = Joint(np.array([1.0, 0.0, -1.0]), np.eye(3), Probit())
    >>> answers_left(belief, TopSettled(k=1), random_state=0).median > 0
    True
    """
    rng = as_rng(random_state)
    start = Joint.of(belief)
    counts = [_until_stop(start, rule, criterion, horizon, rng) for _ in range(n_futures)]
    levels = np.quantile(np.array(counts), QUANTILES, method="nearest")
    return Range(*(int(level) if np.isfinite(level) else None for level in levels))


def _until_stop(
    belief: Joint, rule: StopRule, criterion: str, horizon: int, rng: np.random.Generator
) -> float:
    truth = belief.sample(1, rng)[0]
    for n_answers in range(horizon + 1):
        if rule.check(belief, n_answers, rng).stop:
            return n_answers
        belief = _answered(belief, truth, criterion, rng)
    return np.inf


def _answered(
    belief: Joint, utilities: FloatArray, criterion: str, rng: np.random.Generator
) -> Joint:
    """The belief after the next question is answered by somebody with these utilities."""
    pool = Pool(all_pairs(len(belief)), np.zeros(len(belief)))
    ((first, second),) = choose(belief, pool, 1, criterion, 0.0, rng)
    answer = belief.likelihood.draw(utilities[[first]] - utilities[[second]], rng)
    return belief.answered(int(first), int(second), int(answer[0]))


@dataclass(frozen=True)
class StudyDesign:
    """A study to plan: probit answers about independent items.

    Parameters
    ----------
    n_items : int
    n_raters : int
        They answer in turn.
    spread : float
        Standard deviation of the utilities, in units of the noise on a comparison: at 1 the
        better of two items wins four times in five, at 2 nine times in ten.
    disagreement : float
        Standard deviation of a rater's own deviation from an item's utility, same units.

    Examples
    --------
    >>> StudyDesign(30, n_raters=5).spread
    1.0
    """

    n_items: int
    n_raters: int = 1
    spread: float = 1.0
    disagreement: float = 0.0

    def __post_init__(self) -> None:
        if not is_whole(self.n_items, 3) or not is_whole(self.n_raters, 1):
            raise DataError(
                f"StudyDesign: {self.n_items!r} items and {self.n_raters!r} raters: there must be "
                "at least three items and one rater"
            )
        numbers = is_number(self.spread) and is_number(self.disagreement)
        if not numbers or self.spread <= 0.0 or self.disagreement < 0.0:
            raise DataError(
                f"StudyDesign: spread is {self.spread} and disagreement {self.disagreement}: the "
                "one must be positive, the other not negative"
            )


class Plan(NamedTuple):
    """How many comparisons reach the target, or None; and the mean reliability after each one.

    >>> design = StudyDesign(n_items=5, n_raters=2, spread=1.5)
    >>> needed = plan(design, reliability=0.7, n_simulations=4, random_state=0)
    >>> needed.comparisons <= len(needed.reliability)
    True
    """

    comparisons: int | None
    per_rater: int | None
    reliability: FloatArray


def plan(
    study: StudyDesign,
    reliability: float = 0.8,
    criterion: str = "random",
    n_simulations: int = 20,
    longest: int | None = None,
    random_state: RandomState = None,
) -> Plan:
    """How many comparisons a study needs, by simulating it from the prior.

    Reliability is the squared correlation of the estimated utilities with the true ones (those
    that raters share), averaged over simulations. longest: the number of comparisons after which
    the simulation ends, by default 50 an item.

    >>> plan(StudyDesign(6, n_raters=2), 0.7, n_simulations=10, random_state=0).per_rater > 5
    True
    """
    is_share = is_number(reliability) and 0.0 < reliability < 1.0
    require("reliability", reliability, is_share, "lie strictly between 0 and 1")
    longest = 50 * study.n_items if longest is None else longest
    for name, number in (("n_simulations", n_simulations), ("longest", longest)):
        require(f"plan: {name}", number, is_whole(number, 1), "be a whole number ≥ 1")
    rng = as_rng(random_state)
    n, truths, raters = study.n_items, np.empty((n_simulations, study.n_items)), []
    for truth in truths:
        truth[:] = study.spread * rng.standard_normal(n)
        raters.append(truth + study.disagreement * rng.standard_normal((study.n_raters, n)))
    truths -= truths.mean(axis=1, keepdims=True)
    # pooled raters: their disagreement is noise, and the belief is in units of all noise
    variance = study.spread**2 / (1.0 + 2.0 * study.disagreement**2)
    beliefs = [Joint(np.zeros(n), variance * np.eye(n), Probit())] * n_simulations
    curve: list[float] = []
    for n_comparisons in range(1, longest + 1):
        turn = (n_comparisons - 1) % study.n_raters
        beliefs = [
            _answered(belief, utilities[turn], criterion, rng)
            for belief, utilities in zip(beliefs, raters, strict=True)
        ]
        means = np.array([belief.mean - belief.mean.mean() for belief in beliefs])
        squared = (means * truths).sum(axis=1) ** 2
        squared /= (means**2).sum(axis=1) * (truths**2).sum(axis=1)
        curve.append(float(squared.mean()))
        if curve[-1] >= reliability:
            per_rater = -(-n_comparisons // study.n_raters)
            return Plan(n_comparisons, per_rater, np.array(curve))
    return Plan(None, None, np.array(curve))
