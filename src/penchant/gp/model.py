"""What inference asks of a model: the protocol between the one engine and its implementations.

`items` has one utility an item, `users` one a user and item. Each says how a Gaussian prior
follows from hyperparameters, how a gradient is pulled back through it, and what posterior comes
out; solving, learning and updating are written once, over these.
"""

from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from penchant.gp.loop import Inference, Settings, State, State_co
from penchant.gp.posterior import Normal
from penchant.gp.sites import Sites
from penchant.likelihoods import Likelihood, Outcomes
from penchant.numerics.types import FloatArray, IntArray


class Hyperparameters(Protocol):
    """Kernels and a likelihood, with their free parameters in one vector."""

    @property
    def likelihood(self) -> Likelihood:
        """How an answer depends on a difference; its parameters are the last of `theta`."""

    @property
    def theta(self) -> FloatArray:
        """The prior's parameters, then the likelihood's, on unconstrained scales."""

    @property
    def bounds(self) -> FloatArray:
        """(p, 2) box of `theta`."""

    def at(self, theta: FloatArray) -> Self:
        """The same with other parameters."""

    def log_prior(self, start: Self) -> tuple[float, FloatArray]:
        """Weak prior of all parameters around where they started, and its slope in `theta`."""


Hyper = TypeVar("Hyper", bound=Hyperparameters)


class Prior(Protocol[State_co]):
    """A Gaussian prior at one setting of the hyperparameters, factored."""

    @property
    def rank(self) -> int:
        """Of the factor over items."""

    @property
    def residual(self) -> float:
        """The largest variance that the factor leaves out."""

    @property
    def space(self) -> str:
        """Where the linear algebra happens."""

    @property
    def flops(self) -> float:
        """Of the dense algebra of one `refresh`."""

    def refresh(self, weight: FloatArray, shift: FloatArray) -> State_co:
        """The posterior given sites of precision `weight` and shift `shift`, (m,) each."""

    def coarse(self, tolerance: float) -> Self:
        """The same prior with a factor of lower rank, for a first guess at the sites."""


class Solution(NamedTuple, Generic[Hyper, State]):
    """Inference under one setting of the hyperparameters."""

    hyper: Hyper
    prior: Any
    inference: Inference[State]

    @property
    def log_evidence(self) -> float:
        """log Z."""
        return self.inference.log_evidence


class Schedule(NamedTuple):
    """How long EM goes on: rounds, and the gain relative to the evidence that ends it."""

    rounds: int
    tolerance: float


class Observations(Protocol):
    """Distinct comparisons, in the order in which sites stand."""

    @property
    def count(self) -> FloatArray:
        """(m,) how often each was made."""

    @property
    def outcomes(self) -> Outcomes:
        """Ties and margins."""

    @property
    def keys(self) -> tuple[IntArray | FloatArray, ...]:
        """(m,) columns that tell comparisons apart, beside their outcomes."""

    def __len__(self) -> int:
        """m."""


class Problem(Protocol[Hyper, State]):
    """Data and settings: everything but the hyperparameters."""

    @property
    def edges(self) -> Observations:
        """What was compared."""

    @property
    def settings(self) -> Settings:
        """How long and how precisely to sweep."""

    @property
    def schedule(self) -> Schedule:
        """Of EM."""

    @property
    def is_quick(self) -> bool:
        """Whether settling every site after each answer is no burden."""

    def prior(self, hyper: Hyper) -> Prior[State]:
        """Factor the prior."""

    def pullback(self, solution: Solution[Hyper, State], drift: FloatArray | None) -> FloatArray:
        """∂ log Z by the prior's parameters; drift: (m,) see `rules.Rule`, counts included."""

    def posterior(self, solution: Solution[Hyper, State]) -> Any:
        """What is known of the utilities: predictions live there."""

    def expect(self, posterior: Any, rows: IntArray) -> tuple[IntArray, Normal]:
        """Which of these comparisons a posterior knows about, and their differences under it."""

    def while_learning(self) -> Self:
        """The problem with tolerances, and if it is large a size, that suffice for climbing."""

    def m_step(self, solution: Solution[Hyper, State], start: Hyper) -> Hyper:
        """EM's next hyperparameters."""

    def m_penalty(self, hyper: Hyper, start: Hyper) -> float:
        """What EM raises beside the evidence: the log prior that its M-step weighs."""


def columns(edges: Observations) -> FloatArray:
    """(k, m) numbers that tell comparisons apart, ties and margins included.

    An edge of choices is told from a pair of the same items by a row of its own.
    """
    tie, margin, cliques, rater, _ = edges.outcomes
    m = len(edges)
    n = m if cliques is None else m - cliques.n_edges
    outcomes = np.zeros((4, m))
    outcomes[0, :n] = 0.0 if tie is None else tie
    outcomes[1, :n] = 0.0 if margin is None else margin
    outcomes[2, n:] = 1.0
    outcomes[3, :n] = 0.0 if rater is None else rater
    return np.stack([*edges.keys, *outcomes])


def place_among(known: FloatArray, sought: FloatArray) -> IntArray:
    """Where each column that is sought stands among the known ones, −1 where it does not.

    >>> place_among(np.array([[3, 1], [0, 2]]), np.array([[1, 3, 3], [2, 0, 2]])).tolist()
    [1, 0, -1]
    """
    together = np.concatenate([known, sought], axis=1)
    order = np.lexsort(together)
    ranked = together[:, order]
    code = np.empty(len(order), dtype=np.intp)
    code[order] = np.cumsum(np.append(0, (ranked[:, 1:] != ranked[:, :-1]).any(axis=0)))
    place = np.full(len(order), -1, dtype=np.intp)
    n_known = known.shape[1]
    place[code[:n_known]] = np.arange(n_known)
    return place[code[n_known:]]


def sites_at(sites: Sites, place: IntArray) -> Sites:
    """Sites carried to other rows: those of `place`, zero where that is −1."""
    known = place >= 0
    return Sites(np.where(known, sites.tau[place], 0.0), np.where(known, sites.nu[place], 0.0))
