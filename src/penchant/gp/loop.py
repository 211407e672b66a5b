"""The one inference loop: marginals → local rule → sites → refreshed Gaussian.

`infer` sweeps. `converge` goes to the fixed point in fewer sweeps: near it a plain sweep leaves a
third of every move, mostly because the means follow slowly; frozen steps take them there first,
and a sweep then leaves a twentieth.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

import numpy as np

from penchant.errors import NumericalError
from penchant.gp.rules import BLOCK, RULES, Proposal, propose
from penchant.gp.sites import Report, Sites
from penchant.likelihoods import Likelihood, Outcomes
from penchant.numerics.threads import in_blocks
from penchant.numerics.types import FloatArray

SMALLEST_STEP = 1.0 / 64.0
PATIENCE = 10
"""Sweeps in which the largest move should at least halve."""
NEAR = 0.5
"""Largest move, in an edge's own standard deviations, that the frozen steps are trusted with."""
FROZEN_STEPS = 10
RULE_FLOPS = 1000.0
"""What a frozen step costs an edge, in flops of the dense algebra that a sweep costs: with many
comparisons of few items a plain sweep is cheaper."""
FROZEN_SHARE = 0.03
"""What may remain of a move before the covariances are worked out again."""


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

    def respond(self, pull: FloatArray) -> FloatArray:
        """A Σ Aᵀ pull, (m,): how the differences' means answer to a pull on each of them."""


State = TypeVar("State", bound=GaussianState)
State_co = TypeVar("State_co", bound=GaussianState, covariant=True)
Refresh = Callable[[FloatArray, FloatArray], State]


class Conditionable(Protocol[State_co]):
    """A prior that sites can be put on."""

    @property
    def flops(self) -> float:
        """Of the dense algebra of one `refresh`."""

    def refresh(self, weight: FloatArray, shift: FloatArray) -> State_co:
        """The posterior given sites of precision `weight` and shift `shift`, (m,) each."""


class Observed(Protocol):
    """Comparisons as inference sees them."""

    @property
    def count(self) -> FloatArray:
        """(m,) how often each was seen."""

    @property
    def outcomes(self) -> Outcomes:
        """What was observed beyond the orientation."""

    def __len__(self) -> int:
        """m."""


@dataclass(frozen=True)
class Settings:
    """How long and how precisely to sweep."""

    rule: str = "ep"
    tolerance: float = 1e-7
    max_sweeps: int = 200


@dataclass(frozen=True)
class Inference(Generic[State]):
    """A converged (or reported as not converged) approximation.

    wanted: the sites that the rule would have next, closer to the fixed point than `sites`.
    """

    state: State
    sites: Sites
    log_evidence: float
    report: Report
    wanted: Sites | None = None


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
    is halved when the sites turn back on themselves, or when a proposal leaves the posterior
    without a positive definite precision; it grows again while they move straight on, up to a
    limit that is halved whenever ten sweeps have not halved the largest move.
    """
    rule = RULES[settings.rule]
    state, sites = _begin(refresh, count, sites)
    step = smallest = 1.0 if likelihood.log_concave else 0.5
    n_sweeps, previous, longest, milestone = 0, np.zeros(0), 1.0, np.inf
    while True:
        proposal, skipped = hold_invalid(
            propose(rule, (state.mean, state.var), sites, likelihood, outcomes), sites
        )
        moves = scaled_moves(proposal, sites, count, state.var)
        change = float(max(moves.max(initial=0.0), -moves.min(initial=0.0)))
        if change < settings.tolerance or n_sweeps >= settings.max_sweeps:
            break
        if n_sweeps % PATIENCE == 0:
            stalled, milestone = change > 0.5 * milestone, change
            longest = max(0.5 * longest, SMALLEST_STEP) if stalled else longest
        turning = n_sweeps > 0 and _dot(moves, previous) < -0.5 * _dot(previous, previous)
        step = max(0.5 * step, SMALLEST_STEP) if turning else min(longest, 1.5 * step)
        previous = moves
        del state  # its matrices make room for those of the next
        state, sites, step = _move(refresh, count, sites, proposal, step)
        smallest = min(smallest, step)
        n_sweeps += 1
    log_evidence = _dot(count, proposal.log_scale) - 0.5 * state.log_det + 0.5 * state.quadratic
    report = Report(
        converged=bool(change < settings.tolerance and not skipped),
        n_sweeps=n_sweeps,
        change=change,
        tolerance=settings.tolerance,
        step=smallest,
        jitter=state.jitter,
        skipped=skipped,
    )
    return Inference(state, sites, log_evidence, report, Sites(proposal.tau, proposal.nu))


def _begin(refresh: Refresh[State], count: FloatArray, sites: Sites | None) -> tuple[State, Sites]:
    """The state at the given sites; at none, or if they do not fit this prior, at zero."""
    if sites is not None:
        try:
            return refresh(count * sites.tau, count * sites.nu), sites
        except NumericalError:
            # sites of negative precision, learned under another prior
            pass
    zeros = Sites.zeros(len(count))
    return refresh(zeros.tau, zeros.nu), zeros


def _dot(x: FloatArray, y: FloatArray) -> float:
    """xᵀ y without NumPy's threaded BLAS: see `numerics.linalg`."""
    return float(np.einsum("i,i->", x, y))


def hold_invalid(proposal: Proposal, sites: Sites) -> tuple[Proposal, int]:
    """Keep the sites whose cavity was not a distribution where they are."""
    if proposal.valid is None:
        return proposal, 0
    held = proposal._replace(
        tau=np.where(proposal.valid, proposal.tau, sites.tau),
        nu=np.where(proposal.valid, proposal.nu, sites.nu),
    )
    return held, int(np.count_nonzero(~proposal.valid))


def scaled_moves(
    proposal: Proposal, sites: Sites, count: FloatArray, var: FloatArray
) -> FloatArray:
    """(2m,) site moves, in units of each edge's posterior precision and standard deviation."""
    m = len(count)
    moves = np.empty(2 * m)

    def work(rows: slice) -> None:
        c, v, further = count[rows], var[rows], slice(m + rows.start, m + min(rows.stop, m))
        moves[:m][rows] = c * (proposal.tau[rows] - sites.tau[rows]) * v
        moves[further] = c * (proposal.nu[rows] - sites.nu[rows]) * np.sqrt(v)

    in_blocks(work, m, BLOCK)
    if not np.isfinite([moves.max(initial=0.0), moves.min(initial=0.0)]).all():
        raise NumericalError(
            "inference produced a site that is not finite; scale the features, lower the "
            "kernel's variance, or raise a Gaussian likelihood's noise"
        )
    return moves


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


def converge(
    prior: Conditionable[State],
    likelihood: Likelihood,
    edges: Observed,
    settings: Settings,
    sites: Sites | None,
) -> Inference[State]:
    """The loop's fixed point from the given sites (or none), in fewer sweeps than it needs."""

    def sweep(tolerance: float, max_sweeps: int, start: Sites | None) -> Inference[State]:
        limits = replace(settings, tolerance=tolerance, max_sweeps=max_sweeps)
        return infer(prior.refresh, likelihood, edges.outcomes, edges.count, limits, start)

    n_frozen = min(FROZEN_STEPS, int(prior.flops / (RULE_FLOPS * max(1, len(edges)))))
    near = NEAR if likelihood.log_concave and n_frozen > 1 else 0.0
    inference = sweep(max(near, settings.tolerance), settings.max_sweeps, sites)
    n_sweeps = inference.report.n_sweeps
    while settings.tolerance <= inference.report.change < near and n_sweeps < settings.max_sweeps:
        before, known = inference.report.change, inference.sites
        stepped = _frozen_steps(inference, likelihood, edges, settings.rule, n_frozen)
        del inference  # its matrices make room for those of the next
        inference = sweep(settings.tolerance, 0, stepped)
        n_sweeps += 1
        if inference.report.change > 0.5 * before:
            inference = sweep(settings.tolerance, settings.max_sweeps - n_sweeps, known)
            n_sweeps += inference.report.n_sweeps
            break
    report = inference.report
    return replace(
        inference,
        report=replace(
            report,
            n_sweeps=n_sweeps,
            tolerance=settings.tolerance,
            converged=report.change < settings.tolerance and not report.skipped,
        ),
    )


def _frozen_steps(
    inference: Inference[State],
    likelihood: Likelihood,
    edges: Observed,
    rule: str,
    n_steps: int,
) -> Sites:
    """Move the sites while covariances stand still, but for what each edge's own site does.

    Means follow by one Newton step a round: with the covariance Σ of the state, whose sites have
    precision τ₀, the pull y of the present sites becomes y' = c(ν − τ g), and the means move by
    A Σ Aᵀ(y' − y), which answers to τ₀ and leaves y' − cτ₀ Δg as the pull that they rest on.
    """
    state, sites, count = inference.state, inference.sites, edges.count
    mean, var, known = state.mean, state.var, sites.tau
    pull = count * (sites.nu - known * mean)
    for _ in range(n_steps):
        proposal = propose(RULES[rule], (mean, var), sites, likelihood, edges.outcomes)
        moved = Sites(proposal.tau, proposal.nu)
        move = np.abs(count * (moved.nu - sites.nu) * np.sqrt(var)).max()
        sites = moved
        if move < FROZEN_SHARE * inference.report.change:
            break
        wanted = count * (sites.nu - sites.tau * mean)
        step = state.respond(wanted - pull)
        mean, pull = mean + step, wanted - count * known * step
        var = state.var / (1.0 + count * (sites.tau - known) * state.var)
    return sites
