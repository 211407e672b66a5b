"""A model of many independent items, whose cost grows with answers and not with pairs of items.

An exact fit holds matrices of items × items: 2,500 items take seven seconds an answer. Here the
prior is the same, and expectation propagation too; means are exact, and variances are Bethe's, by
messages along the compared pairs. People's answers count as independent, and the order of showing,
which is drawn at random, has no effect of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import minimize

import penchant as pc
from penchant import gp
from penchant.communities import BethePrior
from penchant.kernels import Independent
from penchant.likelihoods import Likelihood, Outcomes, get
from penchant.models import tables
from penchant.numerics.types import FloatArray, IntArray

MANY_ITEMS = 1_000
"""Beyond it an exact fit takes seconds: without features it is made here."""
LEARNING_ANSWERS = 50_000
"""Hyperparameters are two numbers at most, which so many answers tell well."""
SETTINGS = gp.Settings(tolerance=1e-3, max_sweeps=40)
"""In posterior standard deviations: a thousandth of what is not known anyway."""
EVALUATIONS, FIRST_STEP = 60, 0.5
"""Of the evidence; the step is in logarithms."""
LEVEL, DRAWS = 0.95, 1_000
"""Of intervals, and joint draws behind P(best) and the rank intervals."""


class SweptState(NamedTuple):
    """What the inference loop needs of a Gaussian state, and that state."""

    state: Any
    mean: FloatArray
    var: FloatArray
    log_det: float
    quadratic: float
    jitter: float = 0.0


@dataclass(frozen=True, eq=False)
class ManyBelief:
    """Utilities of many items; covariances of pairs that were compared, and of few items at once.

    between: (n, n) sparse covariances of compared pairs.
    """

    mean: FloatArray
    var: FloatArray
    between: sparse.csr_array
    likelihood: Likelihood

    def __len__(self) -> int:
        return len(self.mean)

    @classmethod
    def prior(cls, n: int, likelihood: Likelihood) -> "ManyBelief":
        """Before the first answer."""
        return cls(np.zeros(n), np.ones(n), sparse.csr_array((n, n)), likelihood)

    @property
    def contrast_var(self) -> FloatArray:
        """Variances relative to the average of so many items, which is as good as known."""
        return self.var

    def difference(self, first: IntArray, second: IntArray) -> gp.Normal:
        """Marginals of differences."""
        between = np.asarray(self.between[first, second]).ravel()
        var = self.var[first] + self.var[second] - 2.0 * between
        return gp.Normal(self.mean[first] - self.mean[second], np.maximum(var, 0.0))

    def covariance(self, index: IntArray | None = None) -> FloatArray:
        """(k, k) of some items: the precision along their compared pairs, inverted.

        Exact where comparisons form a tree: others reach two items by one way.
        """
        index = np.arange(len(self)) if index is None else index
        some, v = self.between[index][:, index].tocoo(), self.var[index]
        i, j = some.coords
        rest = v[i] * v[j] - some.data**2
        precision = np.diag(1.0 / v + np.bincount(i, some.data**2 / (v[i] * rest), len(v)))
        precision[i, j] = -some.data / rest
        return np.asarray(np.linalg.inv(precision))

    def sample(self, n_samples: int, rng: np.random.Generator) -> FloatArray:
        """(n_samples, n) draws; the small covariances are left out."""
        return self.mean + np.sqrt(self.var) * rng.standard_normal((n_samples, len(self)))


@dataclass
class ManyItemsModel:
    """Like `PreferenceGP` without features, as far as a study needs it. comparisons_: of pairs."""

    kernel_: Independent
    likelihood_: Likelihood
    comparisons_: pc.Comparisons

    @cached_property
    def whole(self) -> ManyBelief:
        """The belief over all items; those that nobody compared have the prior."""
        n, variance = self.comparisons_.n_items, float(self.kernel_.variance)
        rows = _rows(self.comparisons_)
        state = _infer(self.kernel_, self.likelihood_, rows).state.state
        own, covariance, _ = state.messages
        mean, var = np.zeros(n), np.full(n, variance)
        mean[rows.items] = state.prior.points(state.coefficients)
        var[rows.items] = variance * own
        low, high = rows.items[state.prior.pairs.low], rows.items[state.prior.pairs.high]
        ends = np.append(low, high), np.append(high, low)
        between = sparse.csr_array((np.tile(variance * covariance, 2), ends), shape=(n, n))
        return ManyBelief(mean, var, between, self.likelihood_)

    def tell(self, more: pc.Comparisons) -> "ManyItemsModel":
        """The model of more comparisons, with the same hyperparameters."""
        return ManyItemsModel(self.kernel_, self.likelihood_, self.comparisons_.extend(more))

    def belief(self, user: Any = None) -> ManyBelief:
        """The belief over all items: people are pooled."""
        return self.whole

    def rank(self, n_samples: int) -> tables.Ranking:
        """Items from best to worst."""
        data, rng = self.comparisons_, np.random.default_rng(0)
        tally = tables.Tally.of(data)
        return tables.ranking_of(self.whole, data.items, tally, LEVEL, n_samples, rng)

    def save(self, path: Any) -> None:
        """A model file of two items: a restart reads only the hyperparameters from it."""
        kept = pc.PreferenceGP(self.kernel_, likelihood=self.likelihood_, optimize=None)
        kept.fit(None, pc.Comparisons.from_pairs(["a"], ["b"])).save(path)


def fit_many(data: pc.Comparisons, settings: Mapping[str, Any]) -> ManyItemsModel:
    """The model of comparisons of pairs. settings: as for `PreferenceGP`."""
    likelihood = get(settings["likelihood"])
    if not likelihood.log_concave:  # learned while items were few; messages may not converge
        likelihood = get("ties" if likelihood.n_answers == 3 else "probit")
    hyper = gp.ItemHyper(settings.get("kernel", Independent()), likelihood)
    if settings["optimize"] is not None:
        hyper = _learned(hyper, _rows(data))
    return ManyItemsModel(*hyper, data)  # type: ignore[arg-type]


def _rows(data: pc.Comparisons) -> gp.Rows:
    return gp.Rows.pooled(data.bare())


def _infer(
    kernel: Any, likelihood: Likelihood, rows: gp.Rows, sites: gp.Sites | None = None
) -> gp.Inference[Any]:
    """Expectation propagation at these hyperparameters."""
    prior = BethePrior.of(kernel.variance, rows)

    def refresh(weight: FloatArray, shift: FloatArray) -> Any:
        state = prior.refresh(weight, shift)
        quadratic = float(prior.design.adjoint(shift) @ prior.points(state.coefficients))
        return SweptState(state, state.mean, state.var, state.log_det, quadratic)

    return gp.infer(refresh, likelihood, rows.outcomes, rows.count, SETTINGS, sites)


def _learned(start: gp.ItemHyper, rows: gp.Rows) -> gp.ItemHyper:
    """Kernel and likelihood of the largest evidence."""
    if len(rows) > LEARNING_ANSWERS:
        some = np.random.default_rng(0).choice(len(rows), LEARNING_ANSWERS, replace=False)
        tie = rows.outcomes.tie
        outcomes = Outcomes(None if tie is None else tie[some])
        rows = gp.Rows.between(rows.winner[some], rows.loser[some], rows.count[some], outcomes)
    low, high = start.bounds.T
    sites: list[gp.Sites | None] = [None]

    def loss(theta: FloatArray) -> float:
        hyper = start.at(np.clip(theta, low, high))
        inference = _infer(*hyper, rows, sites.pop())
        sites.append(inference.sites)
        return -inference.log_evidence - hyper.log_prior(start)[0]

    corners = start.theta + FIRST_STEP * np.eye(len(start.theta) + 1, len(start.theta), -1)
    options = {"maxfev": EVALUATIONS, "xatol": 5e-3, "fatol": 1e-2, "initial_simplex": corners}
    found = minimize(loss, start.theta, method="Nelder-Mead", options=options)
    return start.at(np.clip(found.x, low, high))
