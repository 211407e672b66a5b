"""Inference for users in parts: each sweep sends the posterior of W down and one small sum up.

A part keeps its sites. It receives the posterior of W at these sites, proposes and moves sites, and
returns the information of its users about W. The driver sums that; it holds nothing that grows with
the users.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penchant.data import Comparisons
from penchant.errors import NumericalError
from penchant.gp.loop import dot, hold_invalid, scaled_moves, sweep_parts
from penchant.gp.protocol import Callback, Report, Settings, SweepSummary
from penchant.gp.rows import Rows
from penchant.gp.rules import RULES, Sites, propose
from penchant.gp.users.arrowhead import (
    ArrowPrior,
    ArrowState,
    Response,
    Shared,
    SharedState,
    SharedSum,
    eliminate,
)
from penchant.gp.users.blocks import Arrangement, Block
from penchant.likelihoods import Likelihood
from penchant.numerics.types import FloatArray, IntArray

State = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class UserPart:
    """The votes of some users, arranged; number: of the part."""

    number: int
    votes: Rows
    n_users: int
    blocks: tuple[Block, ...]

    @classmethod
    def of(cls, number: int, data: Comparisons, tied: IntArray, choice_size: int = 2) -> "UserPart":
        """tied: (n,) labels of items that the prior ties together; choice_size: see `Rows`."""
        votes = Rows.by_user(data.bare(), choice_size=choice_size)
        if not len(votes):
            return cls(number, votes, data.n_users, ())
        blocks = Arrangement.of(votes.user, votes.winner, votes.loser, tied).blocks
        return cls(number, votes, data.n_users, blocks)

    @property
    def nbytes(self) -> int:
        """What it takes in memory."""
        columns = self.votes.user, self.votes.winner, self.votes.loser, self.votes.count
        return sum(c.nbytes for c in columns) + sum(block.nbytes for block in self.blocks)


@dataclass(frozen=True)
class Broadcast:
    """The message of a sweep to every part.

    prior: of no users, with the one φ that all have; shared, mean: the posterior of W at the sites
    of the parts, a share `taken` of the way to those proposed last; step: the share to go now.
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
        phi = np.broadcast_to(self.prior.users.rows, (part.n_users, 1))
        users = self.prior.users._replace(rows=phi)
        prior = replace(self.prior, users=users, arranged=Arrangement(part.blocks, None))
        whole = () if prior.by_rows else ("item_covariance",)
        for name in ("item_factor", "shared", *whole):  # the same for all parts
            vars(prior)[name] = getattr(self.prior, name)
        return prior


class SharedInformation(NamedTuple):
    """Users' information about W, shift (r_u, n) and the log-determinant of their own deviations;
    sound: whether their precisions are positive definite."""

    information: FloatArray
    collected: FloatArray
    log_det: float
    sound: bool = True


def _summed(prior: ArrowPrior, information: Shared) -> FloatArray:
    """Of users who share one direction, what information is added up in."""
    return information.cross if prior.by_rows else information.common


def add_information(one: SharedInformation, two: SharedInformation) -> SharedInformation:
    """Of the users of both."""
    return SharedInformation(
        one.information + two.information,
        one.collected + two.collected,
        one.log_det + two.log_det,
        one.sound and two.sound,
    )


def add_summaries(one: SweepSummary, two: SweepSummary) -> SweepSummary:
    """Of the sites of both."""
    sums = (a + b for a, b in zip(one[1:], two[1:], strict=True))
    return SweepSummary(max(one.change, two.change), *sums)  # type: ignore[arg-type]


def sites_of(part: UserPart, state: State, taken: float) -> Sites:
    """The sites of a part, a share `taken` of the way to the proposed ones."""
    if not state:
        return Sites.zeros(len(part.votes))
    return Sites(state["tau"], state["nu"]).towards(state["to_tau"], state["to_nu"], taken)


def advance(
    part: UserPart, state: State, broadcast: Broadcast
) -> tuple[State, tuple[SweepSummary, SharedInformation]]:
    """Propose sites given the posterior of W, move, and return the information about W there."""
    votes, sites = part.votes, sites_of(part, state, broadcast.taken)
    weight, shift = votes.count * sites.tau, votes.count * sites.nu
    here = ArrowState(broadcast.prior_of(part), weight, shift, (), 0.0, broadcast.shared, ())
    response = Response(np.zeros(0), broadcast.mean, here.adjoint(shift))
    mean, var = here.edges_given(response)
    proposal, skipped = hold_invalid(
        propose(RULES[broadcast.rule], (mean, var), sites, broadcast.likelihood, votes.outcomes),
        sites,
    )
    moves = scaled_moves(proposal, sites, votes.count, var)
    turn = straight = 0.0
    if state:
        to_tau, to_nu = state["to_tau"] - state["tau"], state["to_nu"] - state["nu"]
        scale = votes.count * var, votes.count * np.sqrt(var)
        last = np.concatenate([scale[0] * to_tau, scale[1] * to_nu])
        turn, straight = dot(moves, last), dot(last, last)
    change = float(np.abs(moves).max(initial=0.0))
    log_scale = dot(votes.count, proposal.log_scale)
    seen = SweepSummary(change, turn, straight, skipped, log_scale, dot(shift, mean))
    state = {"tau": sites.tau, "nu": sites.nu, "to_tau": proposal.tau, "to_nu": proposal.nu}
    return state, (seen, again(part, state, broadcast)[1])


def again(part: UserPart, state: State, broadcast: Broadcast) -> tuple[State, SharedInformation]:
    """The information about W after a step towards the proposal."""
    prior, sites = broadcast.prior_of(part), sites_of(part, state, broadcast.step)
    weight, shift = part.votes.count * sites.tau, part.votes.count * sites.nu
    information, log_det, sound = SharedSum(prior.shared), 0.0, True
    collected = np.zeros((1, len(prior.item_factor)))
    try:
        for number, block in enumerate(part.blocks):
            phi = prior.phi(block)
            own = eliminate(block.laplacian(weight), prior.local_factor_of(number))
            information.add(block, phi, own.R)
            log_det += own.log_det
            collected += block.collect(phi, own.forced(block.adjoint(shift)))
    except NumericalError:
        sound = False
    return state, SharedInformation(_summed(prior, information.total()), collected, log_det, sound)


@dataclass
class Sweeps:
    """All parts, as the loop drives them; nothing here grows with the users.

    prior: of no users; added: `Engine.added`, by which parts work. known: the information about W
    at the present sites, a share `taken` of the way to those proposed last; ahead: the same after
    the step that `broadcast` announced. shared, mean: the posterior of W at the present sites.
    """

    prior: ArrowPrior
    likelihood: Likelihood
    settings: Settings
    added: Callable[..., tuple[Any, ...]]

    def __post_init__(self) -> None:
        none = _summed(self.prior, self.prior.shared.nothing())
        self.known = SharedInformation(none, np.zeros((1, len(self.prior.item_factor))), 0.0)
        self.shared = self._given(none)
        self.mean, self.taken = np.zeros(0), 0.0
        self.broadcast: Any = None
        self.ahead, self.seen = self.known, SweepSummary(0.0, 0.0, 0.0, 0)

    def run(self, callback: Callback | None = None) -> Report:
        """To the loop's fixed point, by the loop's own steps."""
        return sweep_parts(self, self.settings, self.likelihood.log_concave, callback)

    @property
    def log_evidence(self) -> float:
        """With the log-determinants of the users' own deviations and of what they share."""
        log_det = self.known.log_det + self.shared.log_det
        return self.seen.log_scale - 0.5 * log_det + 0.5 * self.seen.quadratic

    @property
    def jitter(self) -> float:
        """What had to be added to the diagonal of S."""
        return self.shared.jitter

    def propose(self, step: float) -> SweepSummary:
        """Send all parts the posterior of W; they propose sites, and move the announced step."""
        _, self.mean = self.shared.solve(self.known.collected, np.zeros(0))
        _ = self.shared.covariance  # computed once, for all parts
        how = (self.prior, self.likelihood, self.settings.rule)
        self.broadcast = Broadcast(*how, self.shared, self.mean, self.taken, step)
        joins = {SweepSummary: add_summaries, SharedInformation: add_information}
        self.seen, self.ahead = self.added(advance, self.broadcast, joins, True)
        return self.seen

    def move(self, step: float) -> None:
        """Take the step: the one announced, or another."""
        known = self.ahead
        if step != self.broadcast.step:
            broadcast = replace(self.broadcast, step=step)
            (known,) = self.added(again, broadcast, {SharedInformation: add_information})
        if not known.sound:
            raise NumericalError("a user's posterior precision is not positive definite")
        self.shared = self._given(known.information)
        self.known, self.taken = known, step

    def _given(self, information: FloatArray) -> SharedState:
        shared, name = self.prior.shared, "cross" if self.prior.by_rows else "common"
        return shared.given(shared.nothing()._replace(**{name: information}))
