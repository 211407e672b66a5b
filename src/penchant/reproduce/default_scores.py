"""What defaults and fixed choices of a prior foresee, scored round by round."""

import re
import warnings
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from penchant.metrics import calibration
from penchant.models import MultiUserGP, PreferenceGP
from penchant.numerics.types import FloatArray
from penchant.reproduce.default_tasks import BEFORE, DEFAULTS, SINGLE, Contest
from penchant.reproduce.page import spread

HEAD = ("choice", "error", "log-likelihood", "ECE", "over", "shares, or what was chosen")


class ContestScores(NamedTuple):
    """By choice, (rounds,) errors and log-likelihoods, all probabilities, and what was learned."""

    errors: Mapping[str, FloatArray]
    log_likelihoods: Mapping[str, FloatArray]
    probs: Mapping[str, FloatArray]
    told: Mapping[str, str]

    def rows(self) -> list[list[str]]:
        """Of a table, one line a choice."""
        return [
            [
                name,
                spread(self.errors[name]),
                spread(self.log_likelihoods[name]),
                f"{calibration(self.probs[name]).error:.3f} ({by_chance(self.probs[name]):.3f})",
                f"{self.overconfidence(name):+.3f}",
                self.told[name],
            ]
            for name in self.errors
        ]

    @property
    def regret(self) -> float:
        """In log-likelihood, against the best choice at its old start, or of one source alone."""
        means = {name: values.mean() for name, values in self.log_likelihoods.items()}
        return float(max(means.values()) - means[DEFAULTS])

    @property
    def ratio(self) -> float:
        """Of errors, defaults to the better single source."""
        single = min(self.errors[name].mean() for name in SINGLE if name in self.errors)
        return float(self.errors[DEFAULTS].mean() / max(single, 1e-9))

    def overconfidence(self, name: str) -> float:
        """Mean probability of what was foreseen, less how often it came true."""
        p = self.probs[name]
        return float(np.maximum(p, 1.0 - p).mean() - (1.0 - _error(p)))

    @property
    def before(self) -> FloatArray:
        """Probabilities by what once was the default."""
        return next(self.probs[name] for name in BEFORE if name in self.probs)


def by_chance(p: FloatArray, n_draws: int = 50) -> float:
    """The calibration error to expect of statements p that are all right."""
    rng = np.random.default_rng(0)
    came_true = (np.where(rng.random(p.size) < p, p, 1.0 - p) for _ in range(n_draws))
    return float(np.mean([calibration(each).error for each in came_true]))


def score(rounds: Iterable[Contest]) -> ContestScores:
    """Fit every choice in every round, and see what it foresees."""
    probs: dict[str, list[FloatArray]] = {}
    shares: dict[str, list[dict[str, float]]] = {}
    for each in rounds:
        for name, fit in each.fits.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = fit()
            probs.setdefault(name, []).append(model.predict_proba(each.asked, each.users))
            shares.setdefault(name, []).append(_learned(model))
    return ContestScores(
        {name: np.array([_error(p) for p in each]) for name, each in probs.items()},
        {name: np.array([np.log(p).mean() for p in each]) for name, each in probs.items()},
        {name: np.concatenate(each) for name, each in probs.items()},
        {name: _told(each) for name, each in shares.items()},
    )


def _error(prob: FloatArray) -> float:
    return float(np.mean((prob < 0.5) + 0.5 * (prob == 0.5)))


def _learned(model: PreferenceGP | MultiUserGP) -> dict[str, float]:
    """What each source counts; of many people, one for the covariance that was chosen."""
    if isinstance(model, PreferenceGP):
        return {source: share.posterior for source, share in model.shares_.items()}
    chosen = re.match(r"item covariance: ([^(;]+?) \(", model.report_.optimizer)
    return {chosen[1]: 1.0} if chosen else {}


def _told(learned: list[dict[str, float]]) -> str:
    """The mean over rounds, in words."""
    names = dict.fromkeys(name for each in learned for name in each)
    mean = {name: sum(each.get(name, 0.0) for each in learned) / len(learned) for name in names}
    return ", ".join(f"{name} {share:.2f}" for name, share in mean.items())
