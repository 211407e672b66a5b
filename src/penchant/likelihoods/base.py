"""The Likelihood interface: how an answer depends on a utility difference.

Conventions of all likelihoods:

* Every comparison is oriented: ``g = f[winner] - f[loser]``. An answer that agrees with the
  orientation is a *win*; ``Outcomes.tie`` marks ties, for likelihoods that have them.
* Noise lives on the *difference*, and the link has unit scale (probit: noise variance 1): the
  scale of the utilities is the kernel's variance.
* Arrays over edges have shape (m,). ``log_prob`` also takes ``g`` of shape (q, m), with
  quadrature nodes on the leading axis.
"""

from abc import ABC, abstractmethod
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from inspect import signature
from numbers import Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import expit, logit

from penchant.errors import DataError
from penchant.likelihoods.choices import Cliques
from penchant.numerics import quadrature
from penchant.numerics.types import BoolArray, FloatArray, IntArray


def lies_within(value: Any, high: float) -> bool:
    """Whether a parameter is a number, strictly between 0 and `high`."""
    return isinstance(value, Real) and 0.0 < float(value) < high


class Outcomes(NamedTuple):
    """The outcome of each edge, beyond its orientation: arrays of shape (m,) or None.

    Where there are `cliques` the last edges belong to choices, which likelihoods of single
    differences do not see; tie and margin are those of the edges before.

    >>> Outcomes(tie=np.array([True, False, False])).part(slice(1, 3)).tie.tolist()
    [False, False]
    """

    tie: BoolArray | None = None  # None: no ties
    margin: FloatArray | None = None  # score of the winner minus score of the loser
    cliques: Cliques | None = None  # None: single pairs alone
    rater: IntArray | None = None  # who gave the answer, for likelihoods that depend on it
    power: FloatArray | None = None  # min(count, 1); None: every count is one at least

    def part(self, rows: IntArray | slice) -> "Outcomes":
        """The outcomes of some of the edges of single pairs."""
        columns: Any = self._replace(cliques=None)
        return Outcomes(*(None if column is None else column[rows] for column in columns))

    def part_of(self, rows: IntArray, n_edges: int) -> "Outcomes":
        """The outcomes of some of all n_edges, in order, with the choices that lie inside them."""
        if self.cliques is None:
            return self.part(rows)
        n = n_edges - self.cliques.n_edges
        single = self.part(rows[rows < n])
        theirs = rows[rows >= n] - n
        return single._replace(cliques=self.cliques.part(theirs) if len(theirs) else None)


WINS = Outcomes()


class LogProb(NamedTuple):
    """log p(y | g) and its first three derivatives in g, each of the shape of g.

    >>> from penchant.likelihoods import Probit
    >>> Probit().log_prob(np.array([0.0]), Outcomes()).value.round(4).tolist()
    [-0.6931]
    """

    value: FloatArray
    d1: FloatArray
    d2: FloatArray
    d3: FloatArray


class Tilted(NamedTuple):
    """log Z = log ∫ p(y | g) N(g | mean, var) dg, d1 = ∂log Z/∂mean, d2 = −∂²log Z/∂mean².

    >>> from penchant.likelihoods import Probit
    >>> Probit().tilted(np.array([0.0]), np.array([1.0]), Outcomes()).log_z.round(4).tolist()
    [-0.6931]
    """

    log_z: FloatArray
    d1: FloatArray
    d2: FloatArray


class Expected(NamedTuple):
    """E[log p(y | g)] under N(mean, var), and its derivatives in mean and in var.

    >>> from penchant.likelihoods import Probit
    >>> bool(Probit().expected(np.array([1.0]), np.array([0.5]), Outcomes()).d_mean[0] > 0)
    True
    """

    value: FloatArray
    d_mean: FloatArray
    d_var: FloatArray


class Parameter(NamedTuple):
    """The learnable field of a likelihood and its limits; `theta` is its logarithm, or the logit of
    a share between 0 and 1."""

    name: str
    low: float
    high: float
    is_share: bool = False


class Likelihood(ABC):
    """A model of answers given the utility difference g; leaves are frozen dataclasses.

    A leaf implements ``log_prob``. The other methods default to quadrature, which is accurate
    where log p varies on a scale near one, mostly around g = 0; closed forms override them. A leaf
    with one learnable field also has ``parameter`` and ``tilted_gradient``. A leaf with several
    overrides ``theta``, ``bounds``, ``names`` and ``with_theta``; theta is unconstrained.

    >>> from penchant.likelihoods import Probit, Ties
    >>> Probit().n_answers, Ties().n_answers
    (2, 3)
    """

    log_concave: ClassVar[bool]
    parameter: ClassVar[Parameter | None] = None
    by_rater: ClassVar[bool] = False
    """Whether it matters who gave an answer."""

    @property
    def n_answers(self) -> int:
        """Number of possible answers: 2 (win, loss), or 3 with ties."""
        return 2

    @property
    def choice_scale(self) -> float | None:
        """κ: a choice out of several items is a softmax of κ f, which for two items is the pair's
        likelihood; None where the likelihood has no such form."""
        return None

    @abstractmethod
    def log_prob(self, g: FloatArray, outcomes: Outcomes = WINS) -> LogProb:
        """Log-likelihood of each edge and its derivatives; g of shape (m,) or (q, m)."""

    def tilted(self, mean: FloatArray, var: FloatArray, outcomes: Outcomes = WINS) -> Tilted:
        """log Z of each edge under the cavity N(mean, var), and its derivatives for EP."""
        return Tilted(*quadrature.tilted(self._of(outcomes), mean, var, self.log_concave))

    def tilted_power(
        self, power: FloatArray, mean: FloatArray, var: FloatArray, outcomes: Outcomes = WINS
    ) -> Tilted:
        """`tilted` for the likelihood to a power (m,) between 0 and 1, divided by the power."""
        log_prob = self._of(outcomes)
        return Tilted(*quadrature.tilted_power(log_prob, power, mean, var, self.log_concave))

    def expected(self, mean: FloatArray, var: FloatArray, outcomes: Outcomes = WINS) -> Expected:
        """Expected log-likelihood of each edge under N(mean, var), for the variational rule."""
        value, slope, curvature = quadrature.expected(self._of(outcomes), mean, var)
        return Expected(value, slope, 0.5 * curvature)  # Price: ∂E/∂v = ½ E[∂²/∂g²]

    def _of(self, outcomes: Outcomes) -> quadrature.LogProbOf:
        """`log_prob` of some of the edges."""
        return lambda rows, g: self.log_prob(g, outcomes.part(rows))

    def prob(self, mean: FloatArray, var: FloatArray) -> FloatArray:
        """P(first preferred to second) where g = f[first] − f[second] ~ N(mean, var), any shape.

        Ties are an outcome of their own: prob(m, v) + prob(−m, v) + prob_tie(m, v) = 1.
        """
        mean, var = np.broadcast_arrays(mean, var)
        return np.exp(self.tilted(mean.ravel(), var.ravel()).log_z).reshape(mean.shape)

    def prob_tie(self, mean: FloatArray, var: FloatArray) -> FloatArray:
        """P(tie) where g ~ N(mean, var); zeros where the model has no ties."""
        return np.zeros(np.broadcast_shapes(mean.shape, var.shape))

    @property
    def theta(self) -> FloatArray:
        """The learnable parameters, unconstrained; empty where there are none."""
        if self.parameter is None:
            return np.empty(0)
        value = np.array([getattr(self, self.parameter.name)])
        return np.asarray(logit(value) if self.parameter.is_share else np.log(value))

    @property
    def bounds(self) -> FloatArray:
        """Lower and upper bounds of ``theta``, shape (n_params, 2)."""
        if self.parameter is None:
            return np.empty((0, 2))
        limits = np.array([[self.parameter.low, self.parameter.high]])
        return np.asarray(logit(limits) if self.parameter.is_share else np.log(limits))

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each parameter in ``theta``."""
        return () if self.parameter is None else (self.parameter.name,)

    def with_theta(self, theta: FloatArray) -> Self:
        """The same likelihood with other parameters."""
        if self.parameter is None:
            return self
        value = expit(theta[0]) if self.parameter.is_share else np.exp(theta[0])
        changed = {self.parameter.name: float(value)}
        return replace(self, **changed)  # type: ignore[type-var]  # leaves are dataclasses

    def tilted_gradient(
        self, mean: FloatArray, var: FloatArray, outcomes: Outcomes = WINS
    ) -> FloatArray:
        """∂log Z/∂theta at fixed mean and var, shape (n_params, m)."""
        return np.empty((0, mean.size))

    def tilted_power_gradient(
        self, power: FloatArray, mean: FloatArray, var: FloatArray, outcomes: Outcomes = WINS
    ) -> FloatArray:
        """`tilted_gradient` for the likelihood to a power (m,), divided by the power.

        It averages ∂log p/∂theta, which is `tilted_gradient` at the nodes and variance zero.
        """
        gradient = np.empty((len(self.theta), mean.size))
        nodes = quadrature.power_nodes(self._of(outcomes), power, mean, var, self.log_concave)
        for rows, _, g, mass, _ in nodes:
            every = outcomes.part(np.tile(rows, len(g)))
            slopes = self.tilted_gradient(g.ravel(), np.zeros(g.size), every)
            gradient[:, rows] = (slopes.reshape(-1, *g.shape) * mass).sum(axis=1)
        return gradient

    def in_units_of(self, margin: FloatArray, count: IntArray) -> Self:
        """The same likelihood in the units of these margins (m,), if it explains margins."""
        return self

    def check(self, outcomes: Outcomes) -> None:
        """Raise DataError for outcomes that this likelihood cannot explain."""
        if outcomes.cliques is not None and self.choice_scale is None:
            raise DataError(
                f"the data hold {outcomes.cliques.n_choices} choices out of several items, and "
                f"likelihood {type(self).__name__} explains pairs alone: use likelihood='probit' "
                "or 'logit' and no raters=, or break the choices into pairs with data.as_pairs()"
            )
        self.check_pairs(outcomes)

    def check_pairs(self, outcomes: Outcomes) -> None:
        """Raise DataError for outcomes of single pairs that this likelihood cannot explain."""
        if self.n_answers < 3 and outcomes.tie is not None and np.any(outcomes.tie):
            raise DataError(
                f"{int(np.sum(outcomes.tie))} of the {outcomes.tie.size} comparisons are ties and "
                f"likelihood {type(self).__name__} does not explain them: use likelihood='ties', "
                "or leave the ties out"
            )

    def _require(self, field: str, is_valid: bool, rule: str) -> None:
        """Raise DataError for a field that breaks a rule, which starts with "it must"."""
        if not is_valid:
            name = type(self).__name__
            raise DataError(f"{field} of {name} is {getattr(self, field)!r}: {rule}")

    def draw(self, g: FloatArray, rng: np.random.Generator) -> IntArray:
        """Sample the answer to each comparison: +1 win, 0 tie, −1 loss; shape of g."""
        certain = np.zeros_like(g)
        win, tie = self.prob(g, certain), self.prob_tie(g, certain)
        u = rng.random(g.shape)
        return (u < win).astype(np.intp) - (u >= win + tie).astype(np.intp)


def known_likelihoods() -> dict[str, type[Likelihood]]:
    """Every subclass of Likelihood that needs no argument, by its name in lower case.

    >>> from penchant.likelihoods import Probit
    >>> known_likelihoods()["probit"] is Probit, "lapse" in known_likelihoods()
    (True, False)
    """
    classes = Likelihood.__subclasses__()
    return {cls.__name__.lower(): cls for cls in classes if not _needs_arguments(cls)}


@cache
def _needs_arguments(cls: type[Likelihood]) -> bool:
    return any(p.default is p.empty for p in signature(cls).parameters.values())


def get(
    likelihood: str | Likelihood, margin: FloatArray | None = None, count: IntArray | None = None
) -> Likelihood:
    """The likelihood of that name with its default parameters; an instance passes through.

    margin, count: (m,) the margins of the data, where they have any, and how often each was
    observed; they set the unit of a likelihood of margins.

    >>> get("probit")
    Probit()
    """
    if isinstance(likelihood, Likelihood):
        return likelihood
    by_name = known_likelihoods()
    if likelihood in by_name:
        found = by_name[likelihood]()
        return found if margin is None or count is None else found.in_units_of(margin, count)
    close = get_close_matches(str(likelihood), by_name, n=1, cutoff=0.5)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise DataError(
        f"likelihood is {likelihood!r}: it must be one of {sorted(by_name)} or an instance such "
        f"as Ties(threshold=0.3){hint}"
    )
