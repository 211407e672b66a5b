"""The one inference loop: marginals → local rule → sites → refreshed Gaussian.

`infer` sweeps until the sites converge. `converge` needs fewer sweeps: near the fixed point a plain
sweep leaves a third of every move, mostly because the means follow slowly; steps at frozen
covariances take the means there first, and a sweep then leaves a twentieth.

`solve` is inference under given hyperparameters, `gradient` the slope of its evidence. A model is a
`Problem`: `items` has one utility an item, `users` one a user and item, `dynamic` one an item and
period.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Generic, NamedTuple, Protocol, Self

import numpy as np

from penchant.errors import DataError, NumericalError
from penchant.gp.posterior import Normal
from penchant.gp.protocol import (
    Callback,
    Hyper,
    Inference,
    Prior,
    Report,
    Schedule,
    Settings,
    State,
    SweepParts,
    SweepSummary,
)
from penchant.gp.rows import Rows
from penchant.gp.rules import BLOCK, RULES, Proposal, Sites, mean_slopes, parameter_slopes, propose
from penchant.likelihoods import Likelihood, Outcomes
from penchant.numerics.dispatch import memory_errors
from penchant.numerics.threads import for_row_blocks
from penchant.numerics.types import FloatArray, IntArray

SMALLEST_STEP = 1.0 / 64.0
"""Damping stops here; inference that needs shorter steps is reported as not converged."""
PATIENCE = 10
"""Sweeps in which the largest move should at least halve."""
NEAR = 0.5
"""Largest move, in posterior standard deviations of a row, from which frozen steps converge."""
FROZEN_STEPS = 10
"""Most steps between two sweeps, whose covariances grow out of date."""
RULE_FLOPS = 1000.0
"""Cost of a frozen step a row, in flops of the dense algebra that a sweep costs: with many rows of
few items a plain sweep is cheaper."""
FROZEN_SHARE = 0.03
"""Share of a move that may remain before the covariances are computed again."""
COARSE_TOLERANCE = 3e-4
"""Of the prior's factor, relative to its largest variance, when the first sites are computed."""
ROUGH_TOLERANCE = 1e-3
"""Of the sites then."""
COARSE_SHARE = 0.7
"""A coarse factor of more than this share of the full rank saves nothing."""


def sweep_parts(
    parts: SweepParts, settings: Settings, log_concave: bool, callback: Callback | None = None
) -> Report:
    """Sweep all sites in parallel until none moves by more than the tolerance.

    The step is halved when the sites turn back on themselves, or when a proposal leaves the
    posterior without a positive definite precision. It grows again while they move straight on, up
    to a limit that is halved whenever ten sweeps have not halved the largest move.
    """
    step = smallest = 1.0 if log_concave else 0.5
    n_sweeps, longest, milestone = 0, 1.0, np.inf
    while True:
        summary = parts.propose(min(longest, 1.5 * step))
        if callback is not None:
            callback(n_sweeps, parts.log_evidence)
        if summary.change < settings.tolerance or n_sweeps >= settings.max_sweeps:
            break
        if n_sweeps % PATIENCE == 0:
            stalled, milestone = summary.change > 0.5 * milestone, summary.change
            longest = max(0.5 * longest, SMALLEST_STEP) if stalled else longest
        turning = n_sweeps > 0 and summary.turn < -0.5 * summary.straight
        step = max(0.5 * step, SMALLEST_STEP) if turning else min(longest, 1.5 * step)
        step = _move(parts, step)
        smallest = min(smallest, step)
        n_sweeps += 1
    return Report(
        converged=bool(summary.change < settings.tolerance and not summary.skipped),
        n_sweeps=n_sweeps,
        change=summary.change,
        tolerance=settings.tolerance,
        step=smallest,
        jitter=parts.jitter,
        skipped=summary.skipped,
    )


def _move(parts: SweepParts, step: float) -> float:
    """Take the step, shortened while the posterior precision is not positive definite."""
    while True:
        try:
            parts.move(step)
            return step
        except NumericalError:
            if step <= SMALLEST_STEP:
                raise
        step *= 0.5


class OnePart(Generic[State]):
    """All comparisons at once, in memory."""

    def __init__(
        self,
        refresh: Callable[[FloatArray, FloatArray], State],
        likelihood: Likelihood,
        outcomes: Outcomes,
        count: FloatArray,
        rule: str,
        sites: Sites | None,
    ) -> None:
        self.refresh, self.count, self.rule = refresh, count, RULES[rule]
        self.likelihood, self.outcomes = likelihood, outcomes
        self.state: Any = None
        if sites is not None:
            try:
                self.state = refresh(count * sites.tau, count * sites.nu)
            except NumericalError:
                sites = None  # of negative precision, learned under another prior
        if sites is None:
            sites = Sites.zeros(len(count))
            self.state = refresh(sites.tau, sites.nu)
        self.sites = sites
        self.proposal: Any = None
        self.moves: FloatArray | None = None

    @property
    def log_evidence(self) -> float:
        """Σ c log Z̃ − ½ log |I + K L| + ½ bᵀ Σ b."""
        scales = dot(self.count, self.proposal.log_scale)
        return scales - 0.5 * float(self.state.log_det) + 0.5 * float(self.state.quadratic)

    @property
    def jitter(self) -> float:
        return float(self.state.jitter)

    def propose(self, step: float) -> SweepSummary:
        """Propose sites at the marginals of the present state."""
        mean, var = self.state.mean, self.state.var
        proposal = propose(self.rule, (mean, var), self.sites, self.likelihood, self.outcomes)
        self.proposal, skipped = hold_invalid(proposal, self.sites)
        last, moves = self.moves, scaled_moves(self.proposal, self.sites, self.count, var)
        self.moves = moves
        return SweepSummary(
            float(max(moves.max(initial=0.0), -moves.min(initial=0.0))),
            0.0 if last is None else dot(moves, last),
            0.0 if last is None else dot(last, last),
            skipped,
        )

    def move(self, step: float) -> None:
        """Refresh the state at sites a step further."""
        moved = self.sites.towards(self.proposal.tau, self.proposal.nu, step)
        self.state = None  # frees its matrices before the next ones are made
        self.state = self.refresh(self.count * moved.tau, self.count * moved.nu)
        self.sites = moved


def infer(
    refresh: Callable[[FloatArray, FloatArray], State],
    likelihood: Likelihood,
    outcomes: Outcomes,
    count: FloatArray,
    settings: Settings,
    sites: Sites | None = None,
) -> Inference[State]:
    """Sweep all rows, see `sweep_parts`, from the given sites or from none.

    `refresh(cτ, cν)` conditions a Gaussian model on the sites, each counted c times.
    """
    part = OnePart(refresh, likelihood, outcomes, count, settings.rule, sites)
    report = sweep_parts(part, settings, likelihood.log_concave)
    proposed = Sites(part.proposal.tau, part.proposal.nu)
    return Inference(part.state, part.sites, part.log_evidence, report, proposed)


def dot(x: FloatArray, y: FloatArray) -> float:
    """xᵀ y without NumPy's threaded BLAS: see `numerics.linalg`."""
    return float(np.einsum("i,i->", x, y))


def hold_invalid(proposal: Proposal, sites: Sites) -> tuple[Proposal, int]:
    """Return the proposal with the old sites where the cavity was invalid, and their number."""
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
    """(2m,) moves of τ and ν, in units of each row's posterior precision and standard deviation."""
    moves = np.empty((2, len(count)))

    def work(rows: slice) -> None:
        c, v = count[rows], var[rows]
        moves[0, rows] = c * (proposal.tau[rows] - sites.tau[rows]) * v
        moves[1, rows] = c * (proposal.nu[rows] - sites.nu[rows]) * np.sqrt(v)

    for_row_blocks(work, len(count), BLOCK)
    if not np.isfinite([moves.max(initial=0.0), moves.min(initial=0.0)]).all():
        raise NumericalError(
            "inference produced a site that is not finite; scale the features, lower the "
            "kernel's variance, or raise a Gaussian likelihood's noise"
        )
    return moves.ravel()


def converge(
    prior: Prior[State], likelihood: Likelihood, rows: Rows, settings: Settings, sites: Sites | None
) -> Inference[State]:
    """The loop's fixed point from the given sites (or none), in fewer sweeps than `infer`."""

    def sweep(tolerance: float, max_sweeps: int, start: Sites | None) -> Inference[State]:
        limits = Settings(settings.rule, tolerance, max_sweeps)
        return infer(prior.refresh, likelihood, rows.outcomes, rows.count, limits, start)

    n_frozen = min(FROZEN_STEPS, int(prior.flops / (RULE_FLOPS * max(1, len(rows)))))
    near = NEAR if likelihood.log_concave and n_frozen > 1 else 0.0
    inference = sweep(max(near, settings.tolerance), settings.max_sweeps, sites)
    n_sweeps = inference.report.n_sweeps
    while settings.tolerance <= inference.report.change < near and n_sweeps < settings.max_sweeps:
        before, known = inference.report.change, inference.sites
        stepped = _frozen_steps(inference, likelihood, rows, settings.rule, n_frozen)
        del inference  # frees its matrices before the next ones are made
        inference = sweep(settings.tolerance, 0, stepped)
        n_sweeps += 1
        if inference.report.change > 0.5 * before:
            inference = sweep(settings.tolerance, settings.max_sweeps - n_sweeps, known)
            n_sweeps += inference.report.n_sweeps
            break
    report = inference.report
    converged = report.change < settings.tolerance and not report.skipped
    report = replace(report, n_sweeps=n_sweeps, tolerance=settings.tolerance, converged=converged)
    return replace(inference, report=report)


def _frozen_steps(
    inference: Inference[State], likelihood: Likelihood, rows: Rows, rule: str, n_steps: int
) -> Sites:
    """Move the sites at fixed covariances, but for the effect of each row's own site.

    The means follow by one Newton step a round. With Σ the covariance of the state, whose sites
    have precision τ₀, the residual y of the present sites becomes y' = c(ν − τ g); the means move
    by Δg = A Σ Aᵀ(y' − y), and y' − cτ₀ Δg is the residual at the new means.
    """
    state, sites, count = inference.state, inference.sites, rows.count
    mean, var, known = state.mean, state.var, sites.tau
    residual = count * (sites.nu - known * mean)
    for _ in range(n_steps):
        proposal = propose(RULES[rule], (mean, var), sites, likelihood, rows.outcomes)
        moved = Sites(proposal.tau, proposal.nu)
        move = np.abs(count * (moved.nu - sites.nu) * np.sqrt(var)).max()
        sites = moved
        if move < FROZEN_SHARE * inference.report.change:
            break
        target = count * (sites.nu - sites.tau * mean)
        step = state.covariance_times(target - residual)
        mean, residual = mean + step, target - count * known * step
        var = state.var / (1.0 + count * (sites.tau - known) * state.var)
    return sites


class Solution(NamedTuple, Generic[Hyper, State]):
    """Inference under one setting of the hyperparameters."""

    hyper: Hyper
    prior: Any
    inference: Inference[State]

    @property
    def log_evidence(self) -> float:
        """log Z."""
        return self.inference.log_evidence

    def with_report(self, **changes: Any) -> "Solution[Hyper, State]":
        """The same solution, whose report has other values of some fields."""
        report = replace(self.inference.report, **changes)
        return self._replace(inference=replace(self.inference, report=report))

    def with_note(self, note: str) -> "Solution[Hyper, State]":
        """The same solution with a note before what its report says of the optimiser."""
        notes = (note, self.inference.report.optimizer)
        return self.with_report(optimizer="; ".join(part for part in notes if part))


class Problem(Protocol[Hyper, State]):
    """Data and settings: everything but the hyperparameters."""

    @property
    def edges(self) -> Rows:
        """The rows."""

    @property
    def settings(self) -> Settings:
        """How long and how precisely to sweep."""

    @property
    def schedule(self) -> Schedule:
        """Of EM."""

    @property
    def is_quick(self) -> bool:
        """Whether reconverging all sites after each answer takes no noticeable time."""

    def prior(self, hyper: Hyper) -> Prior[State]:
        """Factor the prior."""

    def pullback(
        self, solution: Solution[Hyper, State], mean_slopes: FloatArray | None
    ) -> FloatArray:
        """∂ log Z by the prior's parameters; mean_slopes: (m,) of the rule, times the counts."""

    def posterior(self, solution: Solution[Hyper, State]) -> Any:
        """The posterior of the utilities, from which predictions come."""

    def predict(self, posterior: Any, rows: IntArray) -> tuple[IntArray, Normal]:
        """Those of the rows that a posterior covers, and the marginals of their g."""

    def while_learning(self) -> Self:
        """The problem at tolerances, and if it is large of a size, that suffice for learning."""

    def m_step(self, solution: Solution[Hyper, State], start: Hyper) -> Hyper:
        """EM's next hyperparameters."""

    def m_penalty(self, hyper: Hyper, start: Hyper) -> float:
        """The log prior that EM's M-step adds to the evidence."""


# Inference at given hyperparameters, and the gradient of its evidence.
#
# At a fixed point of the sites  ∂ log Z/∂θ = ½ αᵀ ∂K α − ½ tr(R ∂K)  with R = L − L Σ L: one matrix
# G = ½ (ααᵀ − R), pulled back through the kernel by the problem. No n × n × p array exists.


def solve(
    problem: Problem[Hyper, State], hyper: Hyper, sites: Sites | None = None, tolerance: float = 0.0
) -> Solution[Hyper, State]:
    """Factor the prior and run inference, from the given sites or from those of a coarse factor.

    tolerance: of the sites, where less precision than the problem's suffices.
    """
    settings = problem.settings
    settings = replace(settings, tolerance=max(tolerance, settings.tolerance))
    with _explained_memory_errors():
        prior = problem.prior(hyper)
        if sites is None:
            sites = _rough_sites(problem, hyper, prior)
        inference = converge(prior, hyper.likelihood, problem.edges, settings, sites)
    solution = Solution(hyper, prior, inference)
    return solution.with_report(rank=prior.rank, residual=prior.residual, space=prior.space)


@contextmanager
def _explained_memory_errors() -> Iterator[None]:
    try:
        with memory_errors():
            yield
    except MemoryError as error:
        raise DataError(
            f"memory ran out ({error}): an exact fit holds a few matrices of items × items; give "
            "max_rank= (say max_rank=500; for many users max_user_rank=) to bound them, or leave "
            "out items"
        ) from None


def _rough_sites(problem: Problem[Hyper, State], hyper: Hyper, prior: Prior[State]) -> Sites | None:
    """Nearly the right sites at a fraction of the cost, from the factor's leading pivots."""
    coarse = prior.coarse(COARSE_TOLERANCE)
    if coarse.rank > COARSE_SHARE * prior.rank:
        return None
    rows, settings = problem.edges, problem.settings
    settings = replace(settings, tolerance=max(ROUGH_TOLERANCE, settings.tolerance))
    return infer(coarse.refresh, hyper.likelihood, rows.outcomes, rows.count, settings).sites


def gradient(problem: Problem[Hyper, Any], solution: Solution[Hyper, Any]) -> FloatArray:
    """∂ log Z / ∂ theta at the solution's sites."""
    rule, rows = RULES[problem.settings.rule], problem.edges
    inference, likelihood = solution.inference, solution.hyper.likelihood
    marginals = inference.state.mean, inference.state.var
    by_mean = mean_slopes(rule, marginals, likelihood, rows.outcomes)
    by_mean = None if by_mean is None else rows.count * by_mean
    by_likelihood = parameter_slopes(rule, marginals, inference.sites, likelihood, rows.outcomes)
    with _explained_memory_errors():
        by_prior = problem.pullback(solution, by_mean)
    return np.concatenate([by_prior, by_likelihood @ rows.count])
