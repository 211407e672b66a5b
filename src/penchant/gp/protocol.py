"""What the engine asks of a model, and what inference reports.

A model is a `loop.Problem`. It makes a `Prior` from `Hyperparameters`, and the prior makes a
`GaussianState` from sites. `loop.sweep_parts` drives `SweepParts`, which are one part in memory or
many parts elsewhere.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, Self, TypeVar

from penchant.gp.rules import Sites
from penchant.likelihoods import Likelihood
from penchant.numerics.types import FloatArray

Callback = Callable[[int, float], None]
"""Called after each sweep or evaluation with their number and the (best) log evidence."""


class GaussianState(Protocol):
    """A Gaussian posterior given sites: all that the loop needs of it."""

    @property
    def mean(self) -> FloatArray:
        """(m,) posterior means of the rows' g."""

    @property
    def var(self) -> FloatArray:
        """(m,) posterior variances of the rows' g."""

    @property
    def log_det(self) -> float:
        """log |I + K L|."""

    @property
    def quadratic(self) -> float:
        """bᵀ Σ b."""

    @property
    def jitter(self) -> float:
        """Added to a diagonal so that a factor succeeded."""

    def covariance_times(self, y: FloatArray) -> FloatArray:
        """A Σ Aᵀ y, (m,): the change of the rows' means by a shift y of their sites."""


State = TypeVar("State", bound=GaussianState)
State_co = TypeVar("State_co", bound=GaussianState, covariant=True)


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
        """The same prior with a factor of lower rank, for the first sites."""


class Hyperparameters(Protocol):
    """Kernels and a likelihood, with their free parameters in one vector."""

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood; its parameters are the last of `theta`."""

    @property
    def theta(self) -> FloatArray:
        """The prior's parameters, then the likelihood's, on unconstrained scales."""

    @property
    def bounds(self) -> FloatArray:
        """(p, 2) box of `theta`."""

    def at(self, theta: FloatArray) -> Self:
        """The same with other parameters."""

    def log_prior(self, start: Self) -> tuple[float, FloatArray]:
        """Weak log prior of all parameters around their start, and its slope in `theta`."""


Hyper = TypeVar("Hyper", bound=Hyperparameters)


@dataclass(frozen=True)
class Settings:
    """How long and how precisely to sweep."""

    rule: str = "ep"
    tolerance: float = 1e-7
    max_sweeps: int = 200


class Schedule(NamedTuple):
    """When EM stops: after so many rounds, or at a gain below this share of the evidence."""

    rounds: int
    tolerance: float


@dataclass(frozen=True)
class Report:
    """How inference went.

    change: largest move of a site in the last sweep, in units of the row's posterior sd.
    step: smallest damping step used (1 = undamped). jitter: added so that a factor succeeded.
    residual: variance that the prior's factor leaves out. skipped: sites that stayed in the last
    sweep because their cavity variance was not positive. n_people: how many people answered, where
    a pooled model knows; widened: the ratio of its intervals to those of independent answers.
    slope: of calibration, by predictions of single answers from all others: above one they are too
    timid, below one overconfident; one where it was not estimated.
    """

    converged: bool
    n_sweeps: int
    change: float
    tolerance: float
    step: float = 1.0
    jitter: float = 0.0
    rank: int = 0
    residual: float = 0.0
    skipped: int = 0
    space: str = "items"
    n_evaluations: int = 0
    optimizer: str = ""
    n_people: int = 0
    widened: float = 1.0
    slope: float = 1.0

    def about_people(self) -> str:
        """Explain why intervals of a pooled model are wider than those of independent answers.

        >>> print(Report(True, 5, 0.0, 1e-7, n_people=60, widened=1.5).about_people())
        60 people answered, and answers of one person go together: intervals are 1.50 times as wide
        as those of as many independent answers (clustered=False takes them for independent)
        """
        if not self.n_people:
            return ""
        return (
            f"{self.n_people} people answered, and answers of one person go together: intervals "
            f"are {self.widened:.2f} times as wide\nas those of as many independent answers "
            "(clustered=False takes them for independent)"
        )

    def advice(self) -> str:
        """Return the warning for inference that did not converge."""
        if self.skipped:
            return (
                f"{self.skipped} comparisons could not be taken into account: the cavity variance "
                "was not positive; the results are not exact: "
                "try inference='variational', a likelihood without lapses, a smaller kernel "
                "variance, or more noise in a Gaussian likelihood"
            )
        return (
            f"inference stopped after {self.n_sweeps} sweeps with sites still moving by "
            f"{self.change:.1e} (tolerance {self.tolerance:.0e}, smallest step {self.step:.3g}); "
            "the results are usable but not exact: try inference='variational', a likelihood "
            "without lapses, or a smaller kernel variance"
        )


@dataclass(frozen=True)
class Inference(Generic[State]):
    """A converged approximation, or one that is reported as not converged.

    proposed: the sites that the rule proposes next, closer to the fixed point than `sites`.
    """

    state: State
    sites: Sites
    log_evidence: float
    report: Report
    proposed: Sites | None = None


class SweepSummary(NamedTuple):
    """A sweep's proposals, summed over all sites.

    change: the largest move; turn, straight: inner products of the moves with the last ones, and of
    the last ones with themselves; skipped: sites without a valid proposal; log_scale, quadratic:
    terms of the evidence, for sites in parts.
    """

    change: float
    turn: float
    straight: float
    skipped: int
    log_scale: float = 0.0
    quadratic: float = 0.0


class SweepParts(Protocol):
    """Comparisons in one part or in many: what the loop drives."""

    @property
    def log_evidence(self) -> float:
        """log Z at the sites from which `propose` started."""

    @property
    def jitter(self) -> float:
        """Added to a diagonal so that a factor succeeded."""

    def propose(self, step: float) -> SweepSummary:
        """Propose sites; step: the damping that the loop will use if the moves do not turn."""

    def move(self, step: float) -> None:
        """Move a share `step` of the way to the proposed sites, or raise NumericalError."""
