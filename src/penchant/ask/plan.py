"""Looking ahead by simulation: how many answers a study will need, or still needs."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from penchant.ask.belief import Belief, Joint
from penchant.ask.choose import Pool, all_pairs, choose, is_number, is_whole
from penchant.ask.stopping import StopRule
from penchant.errors import DataError
from penchant.likelihoods import Probit
from penchant.numerics.random import RandomState, as_rng
from penchant.numerics.types import FloatArray, IntArray

QUANTILES = (0.1, 0.5, 0.9)
HORIZON = 500
"""Most answers that a simulated future goes on for."""


class _Quantiles(NamedTuple):
    low: int | None
    median: int | None
    high: int | None


class Range(_Quantiles):
    """A number of answers in simulated futures: 10 %, median and 90 %; None: beyond the horizon.

    >>> Range(low=10, median=14, high=None)
    14 (10 to more than 500)
    >>> Range(None, None, None)
    more than 500
    """

    horizon = HORIZON

    def __repr__(self) -> str:
        low, median, high = (
            f"more than {self.horizon}" if number is None else f"{number}" for number in self
        )
        return low if self.low == self.high else f"{median} ({low} to {high})"

    __str__ = __repr__


def answers_left(
    belief: Belief,
    rule: StopRule,
    criterion: str = "variance_ratio",
    horizon: int = HORIZON,
    n_futures: int = 10,
    random_state: RandomState = None,
) -> Range:
    """How many more answers until the rule says stop, in futures simulated from the belief.

    Each future draws the true utilities from the belief and answers from those. A future that
    does not stop within the horizon counts as longer than it.

    >>> from penchant.ask.stopping import TopSettled
    >>> belief = Joint(np.array([1.0, 0.0, -1.0]), np.eye(3), Probit())
    >>> answers_left(belief, TopSettled(k=1), random_state=0).median > 0
    True
    """
    rng = as_rng(random_state)
    start = Joint.of(belief)
    counts = [_until_stop(start, rule, criterion, horizon, rng) for _ in range(n_futures)]
    return _range(np.array(counts, dtype=np.float64), horizon)


def _until_stop(
    belief: Joint, rule: StopRule, criterion: str, horizon: int, rng: np.random.Generator
) -> float:
    truth = belief.sample(1, rng)[0]
    pairs = all_pairs(len(belief))
    for n_answers in range(horizon + 1):
        if rule.check(belief, n_answers, rng).stop:
            return n_answers
        first, second = _next(belief, pairs, criterion, rng)
        answer = belief.likelihood.draw(truth[[first]] - truth[[second]], rng)
        belief = belief.answered(first, second, int(answer[0]))
    return np.inf


def _next(
    belief: Joint, pairs: IntArray, criterion: str, rng: np.random.Generator
) -> tuple[int, int]:
    pool = Pool(pairs, np.zeros(len(belief)))
    first, second = choose(belief, pool, 1, criterion, 0.0, rng)[0]
    return int(first), int(second)


def _range(counts: FloatArray, horizon: int) -> Range:
    levels = np.quantile(counts, QUANTILES, method="nearest")
    found = Range(*(int(level) if np.isfinite(level) else None for level in levels))
    found.horizon = horizon
    return found


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
        Standard deviation of what a rater adds of their own to an item's utility, same units.
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
    """How many comparisons reach the target, if any do; the mean reliability after each one.

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
    that raters share), averaged over simulations. longest: where to give up, by default at 50
    comparisons an item.

    >>> plan(StudyDesign(6, n_raters=2), 0.7, n_simulations=10, random_state=0).per_rater > 5
    True
    """
    if not is_number(reliability) or not 0.0 < reliability < 1.0:
        raise DataError(f"reliability is {reliability}: it must lie strictly between 0 and 1")
    for name, number in (("n_simulations", n_simulations), ("longest", longest)):
        if not is_whole(number, 1) and not (name == "longest" and number is None):
            raise DataError(f"plan: {name} is {number!r}: it must be a whole number ≥ 1")
    rng = as_rng(random_state)
    simulations = [_Simulation(study, rng) for _ in range(n_simulations)]
    curve: list[float] = []
    for n_comparisons in range(1, (longest or 50 * study.n_items) + 1):
        for simulation in simulations:
            simulation.step(criterion, rng)
        curve.append(float(np.mean([simulation.reliability() for simulation in simulations])))
        if curve[-1] >= reliability:
            per_rater = -(-n_comparisons // study.n_raters)
            return Plan(n_comparisons, per_rater, np.array(curve))
    return Plan(None, None, np.array(curve))


class _Simulation:
    """One simulated run of a study: true utilities, raters, and the belief so far."""

    def __init__(self, study: StudyDesign, rng: np.random.Generator) -> None:
        n = study.n_items
        self.truth = study.spread * rng.standard_normal(n)
        personal = study.disagreement * rng.standard_normal((study.n_raters, n))
        self.rater_utilities = self.truth + personal
        # who pools raters takes their disagreement for noise, and sees utilities in units of it
        noise = 1.0 + 2.0 * study.disagreement**2
        self.belief = Joint(np.zeros(n), study.spread**2 / noise * np.eye(n), Probit())
        self.pairs, self.n_answers = all_pairs(n), 0

    def step(self, criterion: str, rng: np.random.Generator) -> None:
        """The next rater answers the next question."""
        first, second = _next(self.belief, self.pairs, criterion, rng)
        utilities = self.rater_utilities[self.n_answers % len(self.rater_utilities)]
        answer = Probit().draw(utilities[[first]] - utilities[[second]], rng)
        self.belief = self.belief.answered(first, second, int(answer[0]))
        self.n_answers += 1

    def reliability(self) -> float:
        """Squared correlation of what is believed with what is true."""
        believed = self.belief.mean - self.belief.mean.mean()
        true = self.truth - self.truth.mean()
        return float((believed @ true) ** 2 / ((believed @ believed) * (true @ true)))
