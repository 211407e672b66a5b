"""The one inference loop: marginals → local rule → sites → refreshed Gaussian."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

from penchant.errors import NumericalError
from penchant.inference.rules import RULES, Proposal
from penchant.inference.sites import Report, Sites
from penchant.likelihoods import Likelihood, Outcomes
from penchant.numerics.types import FloatArray

SMALLEST_STEP = 1.0 / 64.0


class GaussianState(Protocol):
    """A Gaussian posterior given sites: all that the loop needs of it."""

    @property
    def mean(self) -> FloatArray:
        """(m,) posterior means of the edges' differences."""

    @property
    def var(self) -> FloatArray:
        """(m,) posterior variances of the edges' differences."""

    @property
    def log_det(self) -> float:
        """log |I + K L|."""

    @property
    def quadratic(self) -> float:
        """bᵀ Σ b."""

    @property
    def jitter(self) -> float:
        """What had to be added to a diagonal for a factor to succeed."""


State = TypeVar("State", bound=GaussianState)
Refresh = Callable[[FloatArray, FloatArray], State]


@dataclass(frozen=True)
class Settings:
    """How long and how precisely to sweep."""

    rule: str = "ep"
    tolerance: float = 1e-6
    max_sweeps: int = 200


@dataclass(frozen=True)
class Inference(Generic[State]):
    """A converged (or reported as not converged) approximation."""

    state: State
    sites: Sites
    log_evidence: float
    report: Report


def infer(
    refresh: Refresh[State],
    likelihood: Likelihood,
    outcomes: Outcomes,
    count: FloatArray,
    settings: Settings,
    sites: Sites | None = None,
) -> Inference[State]:
    """Sweep all edges in parallel until no site moves by more than the tolerance.

    `refresh(cτ, cν)` conditions a Gaussian model on the sites, each counted c times. The step
    is halved whenever the sites move further than in the sweep before, or when a proposal
    leaves the posterior without a positive definite precision.
    """
    rule = RULES[settings.rule]
    sites = Sites.zeros(len(count)) if sites is None else sites
    state = refresh(count * sites.tau, count * sites.nu)
    step, previous, n_sweeps = 1.0, np.inf, 0
    while True:
        proposal, skipped = _hold_invalid(
            rule(state.mean, state.var, sites, likelihood, outcomes), sites
        )
        change = _largest_change(proposal, sites, state.var)
        if change < settings.tolerance or n_sweeps >= settings.max_sweeps:
            break
        if change > previous:
            step = max(0.5 * step, SMALLEST_STEP)
        previous = change
        state, sites, step = _move(refresh, count, sites, proposal, step)
        n_sweeps += 1
    log_evidence = float(count @ proposal.log_scale) - 0.5 * state.log_det + 0.5 * state.quadratic
    report = Report(
        converged=bool(change < settings.tolerance),
        n_sweeps=n_sweeps,
        change=change,
        tolerance=settings.tolerance,
        step=step,
        jitter=state.jitter,
        skipped=skipped,
    )
    return Inference(state, sites, log_evidence, report)


def _hold_invalid(proposal: Proposal, sites: Sites) -> tuple[Proposal, int]:
    """Keep the sites whose cavity was not a distribution where they are."""
    if proposal.valid is None:
        return proposal, 0
    held = proposal._replace(
        tau=np.where(proposal.valid, proposal.tau, sites.tau),
        nu=np.where(proposal.valid, proposal.nu, sites.nu),
    )
    return held, int(np.count_nonzero(~proposal.valid))


def _largest_change(proposal: Proposal, sites: Sites, var: FloatArray) -> float:
    """Largest site move, in units in which a site of precision 1/var or shift 1/sd counts one."""
    moves = np.maximum(
        np.abs(proposal.tau - sites.tau) * var, np.abs(proposal.nu - sites.nu) * np.sqrt(var)
    )
    largest = float(moves.max(initial=0.0))
    if not np.isfinite(largest):
        raise NumericalError(
            "inference produced a site that is not finite; scale the features or lower the "
            "kernel's variance"
        )
    return largest


def _move(
    refresh: Refresh[State], count: FloatArray, sites: Sites, proposal: Proposal, step: float
) -> tuple[State, Sites, float]:
    """Take the step, shortening it while the posterior precision is not positive definite."""
    while True:
        moved = sites.towards(proposal.tau, proposal.nu, step)
        try:
            return refresh(count * moved.tau, count * moved.nu), moved, step
        except NumericalError:
            if step <= SMALLEST_STEP:
                raise
            step *= 0.5
