"""Inference for users in parts: the posterior of W down, one small sum up, a sweep.

What the loop does to all comparisons at once is done here part by part. A part keeps its sites;
it is told the posterior of W that they led to, proposes sites, moves, and returns what its users
then know of W. The driver adds that up, and holds nothing that grows with the users.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penchant.data import Comparisons
from penchant.errors import NumericalError
from penchant.gp.loop import PATIENCE, SMALLEST_STEP, Settings, hold_invalid, scaled_moves
from penchant.gp.rules import RULES, propose
from penchant.gp.sites import Report, Sites
from penchant.gp.users.arrowhead import (
    ArrowPrior,
    ArrowState,
    Eliminated,
    SharedState,
    eliminate,
    gather,
)
from penchant.gp.users.blocks import Arrangement, Points
from penchant.gp.users.votes import Votes
from penchant.likelihoods import Likelihood
from penchant.numerics.types import FloatArray, IntArray

State = dict[str, NDArray[Any]]
Watch = Callable[[int, float], None]


@dataclass(frozen=True, eq=False)
class UserPart:
    """The votes of some users, arranged; number: of the part."""

    number: int
    votes: Votes
    n_users: int
    blocks: tuple[Points, ...]

    @classmethod
    def of(cls, number: int, data: Comparisons, tied: IntArray) -> "UserPart":
        """tied: (n,) labels of items that the prior ties together."""
        votes = Votes.of(data)
        if not len(votes):
            return cls(number, votes, data.n_users, ())
        blocks = Arrangement.of(votes.user, votes.winner, votes.loser, tied).blocks
        return cls(number, votes, data.n_users, blocks)

    @property
    def nbytes(self) -> int:
        """What it takes in memory."""
        columns = [self.votes.user, self.votes.winner, self.votes.loser, self.votes.count]
        for block in self.blocks:
            columns += block.columns
        return sum(column.nbytes for column in columns)


@dataclass(frozen=True)
class Broadcast:
    """What a sweep tells every part.

    prior: of no users, with the one φ that all have; shared, mean: the posterior of W at the sites
    that parts have, a step `taken` of the way that they last wanted to go; step: how far to go now.
    """

    prior: ArrowPrior
    likelihood: Likelihood
    rule: str
    shared: SharedState
    mean: FloatArray
    taken: float
    step: float

    def prior_of(self, part: UserPart) -> ArrowPrior:
        """The prior of a part's users."""
        phi = np.broadcast_to(self.prior.user_factor, (part.n_users, 1))
        prior = replace(self.prior, user_factor=phi, blocks=part.blocks)
        for worked_out in ("item_covariance", "shared"):  # of items alone, the same for all parts
            vars(prior)[worked_out] = getattr(self.prior, worked_out)
        return prior


class Taught(NamedTuple):
    """What users know of W: information, shift (r_u, n) and the log-determinant of their own
    deviations; sound: whether their precisions are positive definite."""

    information: FloatArray
    collected: FloatArray
    log_det: float
    sound: bool = True


class Seen(NamedTuple):
    """Of the sites as a sweep found them.

    change: the largest move wanted; turn, straight: moves · the last ones, and those squared;
    skipped: sites that had to stay; log_scale, quadratic: of the evidence.
    """

    change: float
    turn: float
    straight: float
    skipped: int
    log_scale: float
    quadratic: float


def add_taught(one: Taught, two: Taught) -> Taught:
    """Of the users of both."""
    return Taught(
        one.information + two.information,
        one.collected + two.collected,
        one.log_det + two.log_det,
        one.sound and two.sound,
    )


def add_seen(one: Seen, two: Seen) -> Seen:
    """Of the sites of both."""
    sums = (a + b for a, b in zip(one[1:], two[1:], strict=True))
    return Seen(max(one.change, two.change), *sums)  # type: ignore[arg-type]


def sites_of(part: UserPart, state: State, taken: float) -> Sites:
    """The sites of a part, a step on the way from those it had to those it wanted."""
    if not state:
        return Sites.zeros(len(part.votes))
    return Sites(state["tau"], state["nu"]).towards(state["to_tau"], state["to_nu"], taken)


def advance(part: UserPart, state: State, told: Broadcast) -> tuple[State, tuple[Seen, Taught]]:
    """Propose sites by the posterior of W, go a step of the way, say what is known of W there."""
    votes, sites = part.votes, sites_of(part, state, told.taken)
    before = told.prior_of(part)
    weight, shift = votes.count * sites.tau, votes.count * sites.nu
    here = ArrowState(before, weight, shift, (), 0.0, told.shared)
    mean, var = here.edges_given(told.mean)
    proposal, skipped = hold_invalid(
        propose(RULES[told.rule], (mean, var), sites, told.likelihood, votes.outcomes), sites
    )
    moves = scaled_moves(proposal, sites, votes.count, var)
    turn = straight = 0.0
    if state:
        to_tau, to_nu = state["to_tau"] - state["tau"], state["to_nu"] - state["nu"]
        scale = votes.count * var, votes.count * np.sqrt(var)
        last = np.concatenate([scale[0] * to_tau, scale[1] * to_nu])
        turn, straight = _dot(moves, last), _dot(last, last)
    change = float(np.abs(moves).max(initial=0.0))
    log_scale = _dot(votes.count, proposal.log_scale)
    seen = Seen(change, turn, straight, skipped, log_scale, _dot(shift, mean))
    state = {"tau": sites.tau, "nu": sites.nu, "to_tau": proposal.tau, "to_nu": proposal.nu}
    return state, (seen, _known(part, state, told))


def again(part: UserPart, state: State, told: Broadcast) -> tuple[State, Taught]:
    """What is known of W after another step the same way."""
    return state, _known(part, state, told)


def _known(part: UserPart, state: State, told: Broadcast) -> Taught:
    prior, sites = told.prior_of(part), sites_of(part, state, told.step)
    weight, shift = part.votes.count * sites.tau, part.votes.count * sites.nu
    information, log_det = prior.shared.nothing(), 0.0
    collected = np.zeros((1, len(prior.item_factor)))
    try:
        for number, block in enumerate(part.blocks):
            own: Eliminated = eliminate(block.laplacian(weight), prior.local_factor_of(number))
            gather(prior, block, own, information)
            log_det += own.log_det
            collected += block.collect(prior.phi(block), own.forced(block.adjoint(shift)))
    except NumericalError:
        return Taught(information, collected, log_det, sound=False)
    return Taught(information, collected, log_det)


def _dot(x: FloatArray, y: FloatArray) -> float:
    return float(np.einsum("i,i->", x, y))


class Swept(NamedTuple):
    """Where sweeps ended: the posterior of W; parts have their sites (at `taken` = 0)."""

    shared: SharedState
    mean: FloatArray
    log_evidence: float
    report: Report


@dataclass(frozen=True)
class Sweeps:
    """The driver. prior: of no users; sweep, look: of an engine, with results added up."""

    prior: ArrowPrior
    likelihood: Likelihood
    settings: Settings
    sweep: Callable[..., tuple[Seen, Taught]]
    look: Callable[..., Taught]

    @cached_property
    def _nothing(self) -> Taught:
        n = len(self.prior.item_factor)
        return Taught(self.prior.shared.nothing(), np.zeros((1, n)), 0.0)

    def run(self, watch: Watch | None = None) -> Swept:
        """To the loop's fixed point, by the loop's own steps: see `gp.loop.infer`."""
        known, shared = self._nothing, self.prior.shared.given(self._nothing.information)
        step = smallest = 1.0 if self.likelihood.log_concave else 0.5
        n_sweeps, taken, longest, milestone = 0, 0.0, 1.0, np.inf
        while True:
            mean = shared.respond(known.collected)
            told = self._told(shared, mean, taken, min(longest, 1.5 * step))
            seen, ahead = self.sweep(advance, told)
            done = seen.change < self.settings.tolerance or n_sweeps >= self.settings.max_sweeps
            log_det = known.log_det + shared.log_det
            evidence = seen.log_scale - 0.5 * log_det + 0.5 * seen.quadratic
            if watch is not None:
                watch(n_sweeps, evidence)
            if done:
                break
            if n_sweeps % PATIENCE == 0:
                stalled, milestone = seen.change > 0.5 * milestone, seen.change
                longest = max(0.5 * longest, SMALLEST_STEP) if stalled else longest
            turning = n_sweeps > 0 and seen.turn < -0.5 * seen.straight
            step = max(0.5 * step, SMALLEST_STEP) if turning else min(longest, told.step)
            known, shared, step = self._move(told, ahead, step)
            taken, smallest, n_sweeps = step, min(smallest, step), n_sweeps + 1
        report = Report(
            converged=bool(seen.change < self.settings.tolerance and not seen.skipped),
            n_sweeps=n_sweeps,
            change=seen.change,
            tolerance=self.settings.tolerance,
            step=smallest,
            jitter=shared.jitter,
            skipped=seen.skipped,
        )
        return Swept(shared, mean, evidence, report)

    def _told(self, shared: SharedState, mean: FloatArray, taken: float, step: float) -> Broadcast:
        _ = shared.covariance  # worked out once, for all parts
        likelihood, rule = self.likelihood, self.settings.rule
        return Broadcast(self.prior, likelihood, rule, shared, mean, taken, step)

    def _move(
        self, told: Broadcast, ahead: Taught, step: float
    ) -> tuple[Taught, SharedState, float]:
        """Take the step, shortening it while a precision is not positive definite."""
        tried = told.step
        while True:
            known = ahead if step == tried else self.look(again, replace(told, step=step))
            try:
                if known.sound:
                    return known, self.prior.shared.given(known.information), step
                raise NumericalError("a user's posterior precision is not positive definite")
            except NumericalError:
                if step <= SMALLEST_STEP:
                    raise
            step *= 0.5
