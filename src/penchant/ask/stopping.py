"""Stop rules: whether the belief is certain enough to stop asking."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from penchant.ask.belief import Belief, Joint
from penchant.ask.choose import all_pairs, check, is_number, is_whole
from penchant.ask.criteria import information_gain
from penchant.errors import DataError

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
        check("Budget: answers", self.answers, is_whole(self.answers, 1), "be a whole number ≥ 1")

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
        check("SmallGain: below", self.below, is_positive, "be a positive number")

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
