"""The one inference loop: marginals → local rule → sites → refreshed Gaussian.

`infer` sweeps. `converge` goes to the fixed point in fewer sweeps: near it a plain sweep leaves a
third of every move, mostly because the means follow slowly; frozen steps take them there first,
and a sweep then leaves a twentieth.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from penchant.errors import DataError, NumericalError
from penchant.gp.posterior import Normal
from penchant.gp.rows import Rows
from penchant.gp.rules import BLOCK, RULES, Proposal, drift, propose, slopes
from penchant.gp.sites import Report, Sites
from penchant.likelihoods import Likelihood, Outcomes
from penchant.numerics.dispatch import memory_errors
from penchant.numerics.threads import for_row_blocks
from penchant.numerics.types import FloatArray, IntArray

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


class Seen(NamedTuple):
    """A sweep's proposals, added up over all sites.

    change: the largest move wanted; turn, straight: moves · the last ones, and those squared;
    skipped: sites that had to stay; log_scale, quadratic: of the evidence, of sites in parts.
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
        """log Z at the sites as `propose` found them."""

    @property
    def jitter(self) -> float:
        """What had to be added to a diagonal for a factor to succeed."""

    def propose(self, step: float) -> Seen:
        """Have the rule propose sites; step: how far the loop will go if they move straight on."""

    def move(self, step: float) -> None:
        """Go a step of the way to the proposed sites, or raise NumericalError and stay."""


def sweep_parts(
    parts: SweepParts,
    settings: Settings,
    log_concave: bool,
    watch: Callable[[int, float], None] | None = None,
) -> Report:
    """Sweep all sites in parallel until none moves by more than the tolerance.

    The step is halved when the sites turn back on themselves, or when a proposal leaves the
    posterior without a positive definite precision; it grows again while they move straight on, up
    to a limit that is halved whenever ten sweeps have not halved the largest move.
    """
    step = smallest = 1.0 if log_concave else 0.5
    n_sweeps, longest, milestone = 0, 1.0, np.inf
    while True:
        seen = parts.propose(min(longest, 1.5 * step))
        if watch is not None:
            watch(n_sweeps, parts.log_evidence)
        if seen.change < settings.tolerance or n_sweeps >= settings.max_sweeps:
            break
        if n_sweeps % PATIENCE == 0:
            stalled, milestone = seen.change > 0.5 * milestone, seen.change
            longest = max(0.5 * longest, SMALLEST_STEP) if stalled else longest
        turning = n_sweeps > 0 and seen.turn < -0.5 * seen.straight
        step = max(0.5 * step, SMALLEST_STEP) if turning else min(longest, 1.5 * step)
        step = _move(parts, step)
        smallest = min(smallest, step)
        n_sweeps += 1
    return Report(
        converged=bool(seen.change < settings.tolerance and not seen.skipped),
        n_sweeps=n_sweeps,
        change=seen.change,
        tolerance=settings.tolerance,
        step=smallest,
        jitter=parts.jitter,
        skipped=seen.skipped,
    )


def _move(parts: SweepParts, step: float) -> float:
    """Take the step, shortening it while the posterior precision is not positive definite."""
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
        refresh: Refresh[State],
        likelihood: Likelihood,
        outcomes: Outcomes,
        count: FloatArray,
        rule: str,
        sites: Sites | None,
    ) -> None:
        self.refresh, self.count, self.rule = refresh, count, RULES[rule]
        self.likelihood, self.outcomes = likelihood, outcomes
        self.state: Any
        self.state, self.sites = _begin(refresh, count, sites)
        self.proposal: Any = None
        self.moves: FloatArray | None = None

    @property
    def log_evidence(self) -> float:
        """Σ c log Z̃ − ½ log |I + K L| + ½ bᵀ Σ b."""
        scales = dot(self.count, self.proposal.log_scale)
        return scales - 0.5 * float(self.state.log_det) + 0.5 * float(self.state.quadratic)

    @property
    def jitter(self) -> float:
        """What had to be added to a diagonal for a factor to succeed."""
        return float(self.state.jitter)

    def propose(self, step: float) -> Seen:
        """By the rule, at the marginals of the present state."""
        mean, var = self.state.mean, self.state.var
        wanted = propose(self.rule, (mean, var), self.sites, self.likelihood, self.outcomes)
        self.proposal, skipped = hold_invalid(wanted, self.sites)
        last, moves = self.moves, scaled_moves(self.proposal, self.sites, self.count, var)
        self.moves = moves
        return Seen(
            float(max(moves.max(initial=0.0), -moves.min(initial=0.0))),
            0.0 if last is None else dot(moves, last),
            0.0 if last is None else dot(last, last),
            skipped,
        )

    def move(self, step: float) -> None:
        """Refresh the state at sites a step further."""
        moved = self.sites.towards(self.proposal.tau, self.proposal.nu, step)
        self.state = None  # its matrices make room for those of the next
        self.state = self.refresh(self.count * moved.tau, self.count * moved.nu)
        self.sites = moved


def infer(
    refresh: Refresh[State],
    likelihood: Likelihood,
    outcomes: Outcomes,
    count: FloatArray,
    settings: Settings,
    sites: Sites | None = None,
) -> Inference[State]:
    """Sweep all edges, see `sweep_parts`, from the given sites or from none.

    `refresh(cτ, cν)` conditions a Gaussian model on the sites, each counted c times.
    """
    part = OnePart(refresh, likelihood, outcomes, count, settings.rule, sites)
    report = sweep_parts(part, settings, likelihood.log_concave)
    wanted = Sites(part.proposal.tau, part.proposal.nu)
    return Inference(part.state, part.sites, part.log_evidence, report, wanted)


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


def dot(x: FloatArray, y: FloatArray) -> float:
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

    for_row_blocks(work, m, BLOCK)
    if not np.isfinite([moves.max(initial=0.0), moves.min(initial=0.0)]).all():
        raise NumericalError(
            "inference produced a site that is not finite; scale the features, lower the "
            "kernel's variance, or raise a Gaussian likelihood's noise"
        )
    return moves


def converge(
    prior: Prior[State],
    likelihood: Likelihood,
    edges: Rows,
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
    edges: Rows,
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


# What inference asks of a model: the protocol between the one engine and its implementations.
#
# `items` has one utility an item, `users` one a user and item. Each says how a Gaussian prior
# follows from hyperparameters, how a gradient is pulled back through it, and what posterior comes
# out; solving, learning and updating are written once, over these.


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


class Problem(Protocol[Hyper, State]):
    """Data and settings: everything but the hyperparameters."""

    @property
    def edges(self) -> Rows:
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


# Inference at given hyperparameters, and the gradient of its evidence.
#
# At a fixed point of the sites  ∂ log Z/∂θ = ½ αᵀ ∂K α − ½ tr(R ∂K)  with R = L − L Σ L: one matrix
# G = ½ (ααᵀ − R), pulled back through the kernel by the problem. No n × n × p array exists.


COARSE_TOLERANCE = 3e-4
ROUGH_TOLERANCE = 1e-3
"""Of the factor, and of the sites, when a first guess at the sites is made."""
COARSE_SHARE = 0.7
"""A coarse factor with more than this share of the full rank is not worth the detour."""


def solve(
    problem: Problem[Hyper, State],
    hyper: Hyper,
    sites: Sites | None = None,
    tolerance: float = 0.0,
) -> Solution[Hyper, State]:
    """Factor the prior and run inference, from the given sites or from a rough guess at them.

    tolerance: of the sites, where the problem's own is finer than need be.
    """
    settings = problem.settings
    settings = replace(settings, tolerance=max(tolerance, settings.tolerance))
    with _memory_named():
        prior = problem.prior(hyper)
        if sites is None:
            sites = _rough_sites(problem, hyper, prior)
        inference = converge(prior, hyper.likelihood, problem.edges, settings, sites)
    report = replace(inference.report, rank=prior.rank, residual=prior.residual, space=prior.space)
    return Solution(hyper, prior, replace(inference, report=report))


@contextmanager
def _memory_named() -> Iterator[None]:
    """What to do where memory runs out, the host's or a card's."""
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
    """Nearly the right sites at a fraction of the cost, from the factor's leading pivots; or where
    comparisons are very many beside effects, from some of them."""
    few = problem.while_learning() if problem.edges.shown is not None else problem
    if few.edges is not problem.edges:
        return _foreseen(problem, hyper, few.posterior(solve(few, hyper)))
    coarse = prior.coarse(COARSE_TOLERANCE)
    if coarse.rank > COARSE_SHARE * prior.rank:
        return None
    edges, settings = problem.edges, problem.settings
    settings = replace(settings, tolerance=max(ROUGH_TOLERANCE, settings.tolerance))
    return infer(coarse.refresh, hyper.likelihood, edges.outcomes, edges.count, settings).sites


def _foreseen(problem: Problem[Hyper, State], hyper: Hyper, known: Any) -> Sites:
    """The sites that all comparisons would have by what some of them taught, block by block."""
    edges, propose = problem.edges, RULES[problem.settings.rule].propose
    sites = Sites.zeros(len(edges))

    def work(block: slice) -> None:
        rows = np.arange(block.start, min(block.stop, len(edges)))
        rows, marginals = problem.expect(known, rows)
        outcomes, nothing = edges.outcomes.part(rows), Sites.zeros(len(rows))
        proposal = propose(*marginals, nothing, hyper.likelihood, outcomes)
        sites.tau[rows], sites.nu[rows] = proposal.tau, proposal.nu

    for_row_blocks(work, len(edges), BLOCK)
    return sites


def gradient(problem: Problem[Hyper, Any], solution: Solution[Hyper, Any]) -> FloatArray:
    """∂ log Z / ∂ theta at the solution's sites."""
    rule, edges = RULES[problem.settings.rule], problem.edges
    inference, likelihood = solution.inference, solution.hyper.likelihood
    marginals = inference.state.mean, inference.state.var
    moving = drift(rule, marginals, likelihood, edges.outcomes)
    moving = None if moving is None else edges.count * moving
    by_likelihood = slopes(rule, marginals, inference.sites, likelihood, edges.outcomes)
    with _memory_named():
        by_prior = problem.pullback(solution, moving)
    return np.concatenate([by_prior, by_likelihood @ edges.count])
