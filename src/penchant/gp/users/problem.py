"""One utility a user and item: hyperparameters, gradient, EM, Sparse-EP and model choice."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import expit, logit

from penchant.data import components
from penchant.errors import DataError
from penchant.gp import learn
from penchant.gp.calibration import log_density, recalibrate
from penchant.gp.loop import Solution, solve
from penchant.gp.posterior import AS_IT_IS, Basis, EffectPosterior, Normal, Recalibration
from penchant.gp.protocol import Callback, Schedule, Settings
from penchant.gp.rows import Rows
from penchant.gp.rules import Sites, cavity
from penchant.gp.users import arrowhead
from penchant.gp.users.arrowhead import ArrowPrior, ArrowState
from penchant.gp.users.blocks import Arrangement, Block, tied_items
from penchant.gp.users.posterior import UserPosteriors, UserSites
from penchant.kernels import FreeCovariance, Independent, Inputs, Kernel
from penchant.kernels.base import bounded_factor
from penchant.likelihoods import Likelihood
from penchant.numerics import batched, linalg
from penchant.numerics.dispatch import CPU, Device
from penchant.numerics.optimize import weak_prior
from penchant.numerics.types import BoolArray, FloatArray, IntArray

# How the evidence of many users changes with the prior: derivatives, pulled back.
#
# With K = K_feat ⊗ (ρ K_x) + I ⊗ ((1−ρ) K_x), the gradient is ½ tr((ααᵀ − R) ∂K) over all users
# and items, R = (K + L⁻¹)⁻¹. Summed over users it becomes one n × n matrix for the shared part,
# one for the personal part, and a (U, r_u) matrix for the users' factor.

Signed = list[tuple[float, tuple[FloatArray, ...]]]
"""Vectors x per block with signs: the outer products Σ sign · x xᵀ stand in for ααᵀ."""


class Slopes(NamedTuple):
    """∂ log Z by covariances between items, with φ the directions of users but the first.

    common: (n, n) by what users share along the first direction; others: (n, s), X Φ₁ of X by what
    they share along the others, φ_uᵀφ_v Φ₁Φ₁ᵀ; personal, beyond: (n, n) by K_x and by Φ₂Φ₂ᵀ in
    users' own deviations; own, own_beyond: (U,) by the variances of each user's own deviation. By
    rows of Φ, others is about all directions, and personal is (n, r), X Φ.
    """

    common: FloatArray
    others: FloatArray
    personal: FloatArray
    beyond: FloatArray
    own: FloatArray
    own_beyond: FloatArray


def outer_vectors(state: ArrowState, mean_slopes: FloatArray | None = None) -> Signed:
    """α alone; where Laplace's mode moves, ααᵀ + uαᵀ + αuᵀ as two signed squares.

    mean_slopes: (m,) of log|B| in each row's mean; u = (I − L Σ) Aᵀ slopes.
    """
    alpha = state.residual(state.response)
    if mean_slopes is None:
        return [(1.0, alpha)]
    u = state.residual(state.response_to(mean_slopes))
    both = tuple(a + b for a, b in zip(alpha, u, strict=True))
    return [(1.0, both), (-1.0, u)]


def item_slopes(state: ArrowState, outer: Signed) -> Slopes:
    """Derivatives by the covariances between items."""
    prior = state.prior
    n, n_users, by_rows = len(prior.item_factor), len(prior.users.rows), prior.by_rows
    own_parts, by_user = np.zeros((2, *2 * (0 if by_rows else n,))), np.zeros((2, n_users))
    rows = prior.device.matrix(np.zeros((n, prior.rank if by_rows else 0)))
    common, others = _known_of_W(state)
    for number, block, part in state.each():
        R, phi = part.R, prior.phi(block)
        if not by_rows:
            others -= _known_by_others(state, block, phi, R)
        # R of one user's own utilities, the shared part's uncertainty included
        own = batched.multiply_stack(batched.multiply_stack(R, state.shared_at(block)), R) - R
        for x, y in _effect_outer(state, number, block, part):
            own += x[:, :, None] * y[:, None, :] + y[:, :, None] * x[:, None, :]
        for sign, vectors in outer:
            x = vectors[number]
            own += sign * x[:, :, None] * x[:, None, :]
        if by_rows:
            weight = np.broadcast_to(prior.personal(block), len(own))[:, None] / prior.sharing
            for some, G in prior.shared.first_columns(block):
                through = batched.multiply_stack(own[some], G)
                block.add_rows(rows, through, np.sqrt(prior.sharing) * weight[some], some)
                found = batched.inner_stack(through, G) / prior.sharing
                np.add.at(by_user[0], block.users[some], found)
            continue
        kinds = [(prior.personal(block), prior.covariance_there)]
        if (beyond := prior.beyond(block)) is not None:
            kinds.append((beyond, prior.beyond_there))
        for k, (weight, K) in enumerate(kinds):
            each = np.broadcast_to(weight, len(own))[:, None]
            own_parts[k] += linalg.to_numpy(block.weighted_sum(each, own))[0]
            there = block.weighted_pick(np.ones((len(own), 1)), K[None])
            np.add.at(by_user[k], block.users, batched.inner_stack(own, there))
    first, lead = prior.shared.factor[:, : prior.shared.depth], 0 if by_rows else 1
    for sign, vectors in outer:
        a = state.collect(vectors)
        if lead:
            common += sign * linalg.gram(a[:lead])
        others += sign * linalg.multiply(a[lead:].T, linalg.multiply(a[lead:], first))
    others /= np.sqrt(prior.sharing)  # of Φ₁, not of G₁
    personal, beyond = own_parts
    if by_rows:
        personal = linalg.to_numpy(rows)
    return Slopes(*(0.5 * each for each in (common, others, personal, beyond, *by_user)))


def _effect_outer(
    state: ArrowState, number: int, block: Block, part: arrowhead.Eliminated
) -> list[tuple[FloatArray, FloatArray]]:
    """Pairs x, y (k, p) whose x yᵀ + y xᵀ is what effects add: R Σ_sb Fᵀ + F Σ_bs R + F Σ_bb Fᵀ.

    F = Jᵀ X: what L f + X b follows the effects by.
    """
    if not state.shared.n_effects:
        return []
    cov, with_shared = state.shared.effect_cov
    F = [part.forced(x) for x, _ in state.pulls[number]]
    phi, outer = state.prior.phi(block), []
    for k, each in enumerate(with_shared):
        utility = block.pick(phi, state.shared_utilities(each))
        y = part.pulled(part.kept(utility))  # R Σ_sb
        for factor, f in zip(cov[k], F, strict=True):
            y = y + 0.5 * float(factor) * f
        outer.append((F[k], y))
    return outer


def _known_of_W(state: ArrowState) -> tuple[FloatArray, FloatArray]:
    """−Σ over pairs of users of what they share along the first direction times R(u, v), (n, n),
    and along the others times R(u, v) G₁, (n, s). Of the latter, where sums are not over items, the
    effects' part alone: see `_known_by_others`.

    With D the columns of W, effects before them, R(u, v) = δ_uv R_u − R_u D_u S⁻¹ D_vᵀ R_v. By rows
    of G, the sum over all directions is −Σ_ki T_ki (S⁻¹)_ik with T_ki = Σ_u φ_uk φ_ui R_u G, as
    GᵀT_jk = S_jk − δ_jk I.
    """
    shared, prior = state.shared, state.prior.shared
    n, q = len(prior.factor), shared.n_effects
    if prior.by_rows:
        covariance, with_effects = shared.marginal
        k, s = prior.rank, prior.depth
        flipped = covariance.others.reshape(k, k, s, s).swapaxes(0, 1).reshape(k * k * s, s)
        others = -linalg.to_numpy(linalg.multiply(shared.information.cross, flipped))
        for cross, with_effect in zip(shared.border.cross, with_effects, strict=True):
            others -= linalg.multiply(cross.T, with_effect)
        return np.zeros((0, 0)), others
    along, others = np.zeros((prior.rank, n, n)), np.zeros((n, prior.depth))
    for part, lower in zip(prior.parts, shared.lowers, strict=True):
        information = prior.over_part(shared.information, part)
        projected = part.before(information)
        for k, mine in enumerate(projected.swapaxes(0, 1)):
            joined = mine.reshape(-1, len(part.items))
            if not prior.over_items:
                joined = linalg.stack_rows(joined, shared.information.cross.reshape(-1, n))
            if q:
                joined = linalg.stack_rows(prior.device.matrix(shared.border.cross[:, k]), joined)
            half = linalg.solve_lower(lower, joined)
            left = linalg.to_numpy(linalg.gram(half) - information[k, k])
            along[k][np.ix_(part.items, part.items)] += left
    if prior.over_items:
        return along[0], linalg.multiply(along[1:].sum(axis=0), prior.factor)
    for cross, with_effect in zip(shared.border.cross, shared.marginal[1], strict=True):
        others -= linalg.multiply(cross[1:].T, with_effect)
    return along[0], others


def _known_by_others(
    state: ArrowState, block: Block, phi: FloatArray, R: FloatArray
) -> FloatArray | float:
    """(n, s): what users of a block share along the other directions, times R(u, v) G₁, over all v.

    The whole R D is (R_u D_u) S⁻¹.
    """
    prior, found = state.prior.shared, 0.0
    for some, G in prior.first_columns(block):
        beside, within = prior.mixed(block, phi, state.shared.marginal[0], some)
        rows = batched.multiply_stack(R[some], beside + batched.multiply_stack(G, within))
        one = np.ones((len(rows), 1))
        found = found + linalg.to_numpy(block.collect_rows(rows, one, some))[0].T
    return found


def user_slopes(state: ArrowState, outer: Signed) -> FloatArray:
    """(U, r_u) derivative by the users' factor Φ_u, variances of own deviations being fixed."""
    prior, shared = state.prior, state.prior.shared
    slopes = np.zeros_like(prior.users.rows)
    covariance, d, s = state.shared.covariance, shared.rank - 1, shared.depth
    first = shared.factor[:, :s]
    totals = []
    for sign, vectors in outer:
        a = state.collect(vectors)
        by_first = linalg.multiply(linalg.multiply(a[:1], shared.factor), shared.factor.T)
        by_others = linalg.multiply(linalg.multiply(a[1:], first), first.T)
        totals.append((sign, vectors, np.concatenate([by_first, by_others])))
    with_effects = []
    if state.shared.n_effects:
        with_effects = [
            linalg.multiply(each, shared.factor.T) for each in state.shared.effect_cov[1]
        ]
    flat, n = covariance.others.reshape(-1, s * s), len(shared.factor)
    n_over = 0 if shared.by_rows else 1 + d if shared.over_items else 1
    over_items = covariance.common.reshape(-1, max(1, n_over), n, n)
    for number, block, part in state.each():
        phi, R = prior.phi(block), part.R
        mine = np.zeros((len(phi), 1 + d))
        for column in range(n_over):
            # ⟨R_u, Σ_l φ_ul G C_l· Gᵀ⟩
            weights = phi if shared.over_items else phi[:, :1]
            there = block.weighted_pick(weights, over_items[:, column])
            mine[:, column] = -batched.inner_stack(R, there)
        for some, G in shared.first_columns(block):
            # ⟨R_u, G C₀ᵢ G₁ᵀ⟩ and ⟨R_u, G₁ C_ij G₁ᵀ⟩ of the other directions
            through = batched.multiply_stack(R[some], G)
            rows = shared.cross_rows(block, covariance, some)
            across = batched.inner_rows(rows, through)
            if shared.by_rows:
                across = across.reshape(-1, 1 + d, 1 + d)
                mine[some] -= np.einsum("ki,kij->kj", linalg.to_numpy(phi[some]), across)
                continue
            within = batched.multiply_stack(G.mT, through).reshape(-1, s * s)
            among = linalg.to_numpy(linalg.multiply(within, flat.T)).reshape(-1, d, d)
            own, one = linalg.to_numpy(phi[some, 1:]), linalg.to_numpy(phi[some, :1])
            mine[some, 0] -= np.einsum("kd,kd->k", own, across)
            mine[some, 1:] -= one * across + np.einsum("ki,kij->kj", own, among)
        for (x, _), each in zip(state.pulls[number], with_effects, strict=True):
            mine -= block.meet(part.forced(x), each)
        for sign, vectors, total in totals:
            mine += sign * block.meet(vectors[number], total)
        np.add.at(slopes, block.users, mine)
    return slopes


SHARED_SIZE = 3072
LEARNING_SIZE = 1024
"""Bounds on the rank of the users' kernel times the items', one dense system: in the end, and while
hyperparameters are learned."""
SHARING_BOUNDS = (1e-4, 1.0 - 1e-4)
LEARNING_COLUMNS = 100
"""Of the factor of very many items while hyperparameters are learned."""
LEARNING_VOTES = 500_000
"""Most distinct answers that hyperparameters are learned from, those of some of the users: a bound
on time."""
LEARNING_FLOPS = 3e9
"""Of a sweep over the users from whom hyperparameters are learned, at most."""
LARGEST_LEARNED = 800
LEARNING_ITEMS = 300
"""Where more items than the first are connected, hyperparameters are learned from so many of them:
an evaluation costs their cube."""
EXACT_VOTES = 3_000
"""Up to this many distinct answers all sites reconverge after each new answer."""
EM = Schedule(rounds=300, tolerance=1e-5)


class UserHyper(NamedTuple):
    """K_u ⊗ K_x with K_u = sharing · user_kernel + (1 − sharing) · I, and a likelihood.

    calibration: of predictions of users' answers; inference does not depend on it.
    """

    kernel: Kernel
    user_kernel: Kernel
    sharing: float
    likelihood: Likelihood
    calibration: Recalibration = AS_IT_IS

    @property
    def theta(self) -> FloatArray:
        """Item kernel, user kernel, logit of sharing, likelihood: on unconstrained scales."""
        parts = (self.kernel.theta, self.user_kernel.theta, [logit(self.sharing)])
        return np.concatenate([*parts, self.likelihood.theta])

    @property
    def bounds(self) -> FloatArray:
        """(p, 2) box of `theta`."""
        low, high = logit(SHARING_BOUNDS)
        here = logit(self.sharing)
        sharing = [[min(low, here), max(high, here)]]
        parts = (self.kernel.bounds, self.user_kernel.bounds, sharing)
        return np.concatenate([*parts, self.likelihood.bounds])

    def at(self, theta: FloatArray) -> "UserHyper":
        """The same kernels and likelihood with other parameters."""
        n_item, n_user = len(self.kernel.theta), len(self.user_kernel.theta)
        item, user, sharing, likelihood = np.split(theta, np.cumsum([n_item, n_user, 1]))
        return self._replace(
            kernel=self.kernel.with_theta(item),
            user_kernel=self.user_kernel.with_theta(user),
            sharing=float(expit(sharing[0])),
            likelihood=self.likelihood.with_theta(likelihood),
        )

    def log_prior(self, start: "UserHyper") -> tuple[float, FloatArray]:
        """Weak prior of all parameters around their start, and its slope."""
        items, by_items = self.kernel.log_prior(start.kernel)
        users, by_users = self.user_kernel.log_prior(start.user_kernel)
        rest = np.append(logit(self.sharing), self.likelihood.theta)
        centre = np.append(logit(start.sharing), start.likelihood.theta)
        value, by_rest = weak_prior(rest, centre)
        return items + users + value, np.concatenate([by_items, by_users, by_rest])


UserSolution = Solution[UserHyper, Any]


@dataclass(frozen=True)
class UserProblem:
    """Comparisons by many users between the same items; `edges` are their votes.

    device: where the arrays of users live; a pickled copy has none.
    """

    items: Inputs
    users: Inputs
    edges: Rows
    settings: Settings
    factor_tolerance: float = linalg.FACTOR_TOLERANCE
    max_user_rank: int | None = None
    divides_items: bool = True
    shared_size: int = SHARED_SIZE
    most_columns: int = arrowhead.FEW_COLUMNS
    device: Device = CPU
    arrangements: dict[bytes, Arrangement] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    schedule: ClassVar[Schedule] = EM

    @classmethod
    def of(
        cls,
        items: Inputs,
        users: Inputs,
        votes: Rows,
        settings: Settings,
        max_user_rank: int | None = None,
        divides_items: bool = True,
    ) -> "UserProblem":
        """Checked. max_user_rank: of the users' kernel; None for what one dense system holds.

        divides_items: see `SharedSize`.
        """
        found = cls(items, users, votes, settings, max_user_rank=max_user_rank)
        return replace(found, divides_items=divides_items)

    def __getstate__(self) -> dict[str, Any]:
        # blocks are as large as the device likes them
        return {**vars(self), "device": CPU, "arrangements": {}}

    def on(self, device: Device) -> "UserProblem":
        """The same problem, worked on elsewhere."""
        return self if device is self.device else replace(self, device=device)

    def over(self, users: Inputs, votes: Rows) -> "UserProblem":
        """The same items and settings, with other users and votes."""
        return replace(self, users=users, edges=votes)

    @property
    def is_quick(self) -> bool:
        """Whether reconverging all sites after each answer takes no noticeable time."""
        return len(self.edges) <= EXACT_VOTES

    def prior(self, hyper: UserHyper) -> ArrowPrior:
        """Factor both kernels."""
        tolerance = self.factor_tolerance
        by_rows, n = arrowhead.are_very_many(self.items), len(self.items)
        if by_rows:
            if isinstance(hyper.kernel, Independent):
                raise DataError(
                    f"{n:,} independent items: beyond {arrowhead.MOST_ITEMS:,} items their "
                    "covariance has to follow from features (X) or relations; give these, leave "
                    "out items that were hardly compared, or pool people by PreferenceGP"
                )
            items = bounded_factor(hyper.kernel, self.items, self.most_columns, tolerance)
            tied = np.zeros(n, dtype=np.intp)
        else:
            K = hyper.kernel(self.items)
            tied = tied_items(K)
            items = linalg.pivoted_cholesky(K, tolerance, overwrite=True)
        n_answers = float(self.edges.count.sum())
        how = (self.max_user_rank, n_answers, hyper.sharing, self.divides_items and not by_rows)
        size = arrowhead.size_by_rows(items.rows, self.shared_size) if by_rows else self.shared_size
        limits = arrowhead.SharedSize(size, *how)
        which = (hyper.user_kernel, self.users, limits)
        users = arrowhead.factor_users(*which, items.rows, tolerance)
        where = (self.arranged(tied), self.device, self.edges.shown)
        return ArrowPrior(items, users, hyper.sharing, *where, by_rows)

    def arranged(self, tied: IntArray) -> Arrangement:
        """The users in blocks, once for each way in which a prior ties the items together."""
        key = tied.tobytes()
        if key not in self.arrangements:
            ends = (self.edges.user, self.edges.winner, self.edges.loser)
            self.arrangements[key] = Arrangement.of(*ends, tied, self.device)
        return self.arrangements[key]

    def posterior(self, solution: UserSolution) -> UserPosteriors:
        """Over all users and all items."""
        hyper, inference = solution.hyper, solution.inference
        prior, state = solution.prior, solution.inference.state
        q, effects = state.shared.n_effects, None
        if self.edges.shown is not None:
            joint = linalg.to_numpy(state.shared.lowers[0])
            known, names, sd = state.response.effects, self.edges.shown.names, self.edges.shown.sd
            effects = EffectPosterior(names, sd, known, joint[:q, :q], joint[q:, :q])
        return UserPosteriors(
            kernel=hyper.kernel,
            user_kernel=hyper.user_kernel,
            likelihood=hyper.likelihood,
            sharing=hyper.sharing,
            items=self.items,
            users=self.users,
            target=self.items,
            item_basis=Basis(prior.items.pivots, None, prior.items.lower),
            user_basis=Basis(prior.users.pivots, None, prior.users.lower, prior.users.rotation),
            shared_mean=state.response.shared,
            shared_lower=state.shared.lower,
            sites=UserSites.of(self.edges, inference.sites, effects),
            n_fitted=len(self.users),
            effects=effects,
            calibration=hyper.calibration,
        ).on(self.device)

    def predict(self, posterior: UserPosteriors, rows: IntArray) -> tuple[IntArray, Normal]:
        """The rows of known users, and the marginals of their g."""
        votes = self.edges
        known = rows[votes.user[rows] < len(posterior)]
        where = (votes.user[known], votes.winner[known], votes.loser[known])
        z = None if votes.shown is None else votes.shown.z[:, known]
        return known, posterior.differences(*where, z)

    def with_effects(self, posterior: UserPosteriors) -> UserPosteriors:
        """A posterior that was read from a file, where sites do not say how pairs were shown."""
        votes, kept = self.edges, posterior.kept
        if votes.shown is None or posterior.effects is None:
            return posterior
        z = votes.shown.scaled.T
        if kept is not None:
            late = np.flatnonzero(votes.user >= posterior.n_fitted)
            z = z[np.append(kept.rows, late)]
        return posterior.changed(sites=replace(posterior.sites, z=z))

    def while_learning(self) -> "UserProblem":
        """Coarser tolerances, and of very many users or items some, with all their answers."""
        return self.few_items()._few_users().roughly()

    def roughly(self) -> "UserProblem":
        """The same answers at the tolerances of learning."""
        tolerance = max(learn.SITE_TOLERANCE, self.settings.tolerance)
        return replace(
            self,
            settings=replace(self.settings, tolerance=tolerance),
            factor_tolerance=max(learn.LEARNING_FACTOR_TOLERANCE, self.factor_tolerance),
            shared_size=min(LEARNING_SIZE, self.shared_size),
            most_columns=min(LEARNING_COLUMNS, self.most_columns),
        )

    def _few_users(self) -> "UserProblem":
        """Some users where there are very many, with all their answers."""
        votes = self.edges
        ends = np.concatenate([votes.winner, votes.loser])
        cells = np.unique(np.tile(votes.user, 2) * len(self.items) + ends)
        sizes = np.bincount(cells // len(self.items)).astype(float)
        flops = 10.0 * float(np.sum(sizes**3))
        share = min(LEARNING_VOTES / max(1, len(votes)), LEARNING_FLOPS / max(1.0, flops))
        if share >= 1.0:
            return self
        chosen = votes.content.user < np.uint64(share * 2.0**64)
        votes = votes.part(np.flatnonzero(chosen[votes.user]))
        return replace(self, edges=votes)

    def few_items(self) -> "UserProblem":
        """The items that were compared most, where very many are connected, and the rows between
        them."""
        votes, n = self.edges, len(self.items)
        is_small = n <= LARGEST_LEARNED or arrowhead.are_very_many(self.items)
        if is_small or votes.outcomes.cliques is not None:
            return self
        sizes = np.bincount(components(votes.winner, votes.loser, n)[1])
        if sizes.max() <= LARGEST_LEARNED:
            return self
        seen = np.bincount(np.concatenate([votes.winner, votes.loser]), minlength=n)
        kept = np.sort(np.argsort(-seen, kind="stable")[:LEARNING_ITEMS])
        place = np.full(n, -1, dtype=np.intp)
        place[kept] = np.arange(len(kept))
        inside = votes.part(np.flatnonzero((place[votes.winner] >= 0) & (place[votes.loser] >= 0)))
        few = replace(inside, winner=place[inside.winner], loser=place[inside.loser])
        return replace(self, items=self.items.take(kept), edges=few)

    def pullback(self, solution: UserSolution, mean_slopes: FloatArray | None) -> FloatArray:
        """∂ log Z by the parameters of both kernels and the logit of ρ."""
        hyper, rho = solution.hyper, solution.hyper.sharing
        prior, state = solution.prior, solution.inference.state
        outer = outer_vectors(state, mean_slopes)
        slopes, missed = item_slopes(state, outer), prior.users.missed
        rows, first = prior.users.rows[:, 1:], prior.item_factor[:, : prior.depth]
        lean = float(np.einsum("ij,ij->", slopes.others, first))
        if not prior.by_rows:
            lean += float(np.einsum("ij,ij->", slopes.common, prior.item_covariance))
        lean += float(np.sum(slopes.own * (-1.0 if missed is None else missed - 1.0)))
        lean += float(np.sum(slopes.own_beyond * linalg.row_squares(rows)))
        by_users = np.zeros(0)
        if len(hyper.user_kernel.theta):
            by_factor = user_slopes(state, outer)
            by_factor[:, 1:] += 2.0 * rho * slopes.own_beyond[:, None] * rows
            own = rho * slopes.own
            by_users = prior.users.pullback(hyper.user_kernel, self.users, by_factor, own)
        by_items = self._by_first_columns(hyper, prior, slopes)
        if not prior.by_rows:
            by_K = rho * slopes.common + slopes.personal + slopes.beyond
            by_items = by_items + hyper.kernel.pullback(self.items, by_K)
        return np.concatenate([by_items, by_users, [rho * (1.0 - rho) * lean]])

    def _by_first_columns(self, hyper: UserHyper, prior: ArrowPrior, slopes: Slopes) -> FloatArray:
        """⟨X, ∂N⟩ of N = Φ₁Φ₁ᵀ = V K_PP Vᵀ, V = K_xP K_PP⁻¹, P the pivots of Φ₁; X V suffices."""
        s = prior.depth
        if prior.shared.rank == 1 and not prior.by_rows:
            return np.zeros(len(hyper.kernel.theta))
        first = prior.item_factor[:, :s]
        own = slopes.personal if prior.by_rows else -linalg.multiply(slopes.beyond, first)
        X = hyper.sharing * slopes.others + own  # X Φ₁
        lower, pivots = prior.items.lower[:s, :s], self.items.take(prior.items.pivots[:s])
        V = linalg.solve_lower(lower, first.T, transposed=True)
        M = linalg.solve_lower(lower, X.T, transposed=True).T
        through = linalg.multiply(V, M)
        within = hyper.kernel.pullback(pivots, 0.5 * (through + through.T))
        return 2.0 * hyper.kernel.pullback(self.items, M, pivots) - within

    def m_step(self, solution: UserSolution, start: UserHyper) -> UserHyper:
        """The covariance at the current sharing, then both scales at the new covariance.

        Both increase the same expected log prior of the deviations (one draw from (1−ρ) K a user)
        and of the shared utilities (one draw from ρ K a user feature). User kernel and likelihood
        stay as given.
        """
        hyper, state = solution.hyper, solution.inference.state
        rho, kernel = hyper.sharing, _free(hyper.kernel)
        slopes = item_slopes(state, outer_vectors(state))
        n_users = len(np.unique(self.edges.user))
        n_shared = state.prior.users.rows.shape[1]
        by_shared = rho * slopes.common
        if n_shared > 1:  # X = (X Φ)(ΦᵀΦ)⁻¹Φᵀ, as all directions have all columns
            factor = state.prior.item_factor
            found = linalg.solve_square(linalg.gram(factor), slopes.others.T)
            by_shared += rho * linalg.multiply(found.T, factor.T)
        new = kernel.updated(by_shared + slopes.personal, n_users + n_shared)
        shared = rho * kernel.fitted_scale(new, by_shared, n_shared)
        personal = (1.0 - rho) * kernel.fitted_scale(new, slopes.personal, n_users)
        total = shared + personal
        return hyper._replace(kernel=new.scaled(total), sharing=shared / total)

    def m_penalty(self, hyper: UserHyper, start: UserHyper) -> float:
        """The inverse-Wishart prior of the covariance's entries."""
        return _free(hyper.kernel).wishart_prior()[0]


def _free(kernel: Kernel) -> FreeCovariance:
    """The kernel, if EM has a closed form for it."""
    if not isinstance(kernel, FreeCovariance):
        raise DataError(
            f"optimize='em' with item kernel {kernel!r}: EM has a closed form for a free "
            "covariance only; use optimize='evidence', or kernel='free'"
        )
    return kernel


# How far a bounded rank of the users' kernel puts results off.
#
# The factor leaves out E = K_u − Φ_uΦ_uᵀ, of which the diagonal was given back to each user. What
# that changes is measured: the answers of some users, at their sites, are conditioned on with the
# factor and with K_u itself, the latter over the answers: K_g = A (K_u ⊗ K_x) Aᵀ is m × m.

EXACT_ANSWERS = 2_000
"""Most answers of those users: K_g is one dense system."""
NOTICEABLE = 0.01
"""Error of a probability that is worth a warning."""


class RankError(NamedTuple):
    """Errors of the probabilities of so many answers: their mean, and the largest."""

    n_answers: int
    mean: float
    largest: float

    @property
    def description(self) -> str:
        """For a report."""
        return (
            f"probabilities of {self.n_answers:,} answers are off by {self.mean:.2g} on average, "
            f"{self.largest:.2g} at most, by exact inference from these answers"
        )


def rank_error(problem: UserProblem, solution: UserSolution) -> RankError:
    """Of some users, at their sites, with the users' factor and with their kernel itself."""
    hyper, whole = solution.hyper, solution.inference.state
    rows = _answers_of_some(problem.edges, EXACT_ANSWERS)
    some = replace(problem, edges=problem.edges.part(rows))
    tau, nu = whole.weight[rows], whole.shift[rows]
    state = some.prior(hyper).refresh(tau, nu)
    K = _row_covariance(some, hyper, state.prior.item_factor)
    root = np.sqrt(tau)
    B = root[:, None] * K * root
    linalg.add_to_diagonal(B, 1.0)
    half = linalg.solve_lower(linalg.cholesky(B)[0], root[:, None] * K)
    mean = linalg.multiply(K, nu) - linalg.multiply(half.T, linalg.multiply(half, nu))
    var = np.maximum(np.diagonal(K) - linalg.column_squares(half), 0.0)
    exact, found = (hyper.likelihood.prob(*each) for each in ((mean, var), (state.mean, state.var)))
    error = np.abs(exact - found)
    return RankError(len(rows), float(error.mean()), float(error.max()))


def _answers_of_some(votes: Rows, most: int) -> IntArray:
    """Rows of as many users as made so many, drawn by content, or of one who made more."""
    users, n_votes = np.unique(votes.user, return_counts=True)
    order = np.argsort(votes.content.user[users], kind="stable")
    inside = np.cumsum(n_votes[order]) <= most
    inside[0] = True
    return np.flatnonzero(np.isin(votes.user, users[order[inside]]))[:most]


def _row_covariance(problem: UserProblem, hyper: UserHyper, factor: FloatArray) -> FloatArray:
    """K_g, (m, m): prior covariance of the rows, effects included; factor: Φ."""
    votes = problem.edges
    users, place = np.unique(votes.user, return_inverse=True)
    K_user = hyper.sharing * hyper.user_kernel(problem.users.take(users))
    linalg.add_to_diagonal(K_user, 1.0 - hyper.sharing)
    K = linalg.gram((factor[votes.winner] - factor[votes.loser]).T)
    K *= K_user[np.ix_(place, place)]
    return K if votes.shown is None else K + linalg.gram(votes.shown.scaled)


def _cavities(problem: UserProblem, solution: UserSolution) -> Normal:
    """(m,) predictions of each answer by all others."""
    state, power = solution.inference.state, problem.edges.outcomes.power
    others = cavity(state.mean, state.var, solution.inference.sites, power)
    return Normal(others.mean, others.var)


# Which covariance between items suits many users: chosen by held-out answers.
#
# Evidence favours covariances of many parameters that predict worse. So users are halved. Each half
# in turn trains every candidate, and the other half scores it by the log predictive density of each
# of their answers when it alone is left out, which the cavities give at no cost. A richer candidate
# is preferred only where its gain exceeds the standard error of the gain over users. Halves are
# drawn by content, so that neither names nor order decide. The user kernel has a low rank here: the
# cost of a sweep grows with its cube.


TRAINING_ANSWERS = 5_000
"""Most answers of each half of the users."""
FEWEST_USERS = 8
"""With fewer users no candidate is scored."""
TRIAL_USER_RANK = 1
"""Directions of users' features in the trial. With eight, 20 fits took 1.4 times as long, and
held-out answers were as likely (.0001 ± .0006 nats)."""
LEARNING = learn.Limits(learn.MAX_STEPS, least_gain=0.02)
"""Steps that gain less than so many nats of log evidence change no prediction that is noticed."""
TRIAL = learn.Limits(10, least_gain=0.1)
"""The same for a candidate. What beats the fallback then is learned to the end and scored again:
one of many parameters may predict worse after a hundred steps than after ten."""
HOPELESS = 3.0
"""Standard errors behind the best one, at which a candidate is scored on one half alone."""

Start = Callable[[UserHyper], UserHyper]
"""From the hyperparameters of the simplest candidate to the start of another one."""


@dataclass(frozen=True)
class CovarianceChoice:
    """The chosen candidate: its start (the centre of its prior), and its theta so far.

    scores: mean log predictive density of left-out answers, by candidate. calibration: of the
    chosen candidate's predictions of them; None where no candidate was scored.
    """

    name: str
    start: UserHyper
    theta: FloatArray
    scores: Mapping[str, float]
    calibration: Recalibration | None = None

    @property
    def description(self) -> str:
        """The choice and its reason, for a report."""
        if len(self.scores) < 2:
            return f"item covariance: {self.name}"
        every = ", ".join(f"{name} {score:.4f}" for name, score in self.scores.items())
        return f"item covariance: {self.name} (answers left out: {every})"


def choose_covariance(
    problem: UserProblem,
    simplest: UserHyper,
    others: Mapping[str, Start],
    fallback: str,
    callback: Callback | None = None,
) -> CovarianceChoice:
    """Choose the candidate that predicts best; `simplest`, called "independent", is one of them.

    others: from simple to rich. fallback: the one that any other must beat, and the choice where
    users are too few. Choices are scored by the pairs that they decide, discounted: choices share
    edges, so that no cavity leaves out a single one.
    """
    problem = replace(problem, edges=problem.edges.as_pairs()).few_items()
    halves = _halves(problem.edges)
    if len(halves) < 2 or not others:
        start = others[fallback](simplest) if fallback in others else simplest
        return CovarianceChoice(fallback, start, start.theta, {})
    problem = replace(problem, max_user_rank=TRIAL_USER_RANK)
    both = _of(problem, np.concatenate(halves)).roughly()
    trial = _Trial(both, [np.isin(both.edges.user, users) for users in halves], callback)
    names = ["independent", *others]
    for training in (0, 1):
        for name in names:
            known = trial.ends.get("independent", simplest)
            trial.learn(name, others[name](known) if name in others else simplest, training, TRIAL)
        names = trial.level(names, HOPELESS)
    order = sorted(names, key=lambda name: name != fallback)
    finished = {fallback}
    while (best := trial.level(order, 1.0)[0]) not in finished:
        for training in (0, 1):
            trial.learn(best, trial.starts[best], training, LEARNING)
        finished.add(best)
    start, theta = _in_frame(trial.starts[best], trial.ends[best])
    return CovarianceChoice(best, start, theta, trial.scores, trial.calibrations[best])


class _Trial:
    """Candidates, each learned from one half of the users and scored by the answers of the other.

    inside: (m,) the answers of each half. starts, ends: hyperparameters by candidate; left_out:
    (m,) predictions of each answer by all others; density: (m,) their log density, NaN as long as
    an answer was only learned from.
    """

    def __init__(
        self, both: UserProblem, inside: list[BoolArray], callback: Callback | None
    ) -> None:
        self.both, self.inside, self.callback = both, inside, callback
        self.halves = [
            replace(both, edges=both.edges.part(np.flatnonzero(mine))) for mine in inside
        ]
        self.sites: Sites | None = None
        self.starts: dict[str, UserHyper] = {}
        self.ends: dict[str, UserHyper] = {}
        self.left_out: dict[str, Normal] = {}
        self.density: dict[str, FloatArray] = {}
        self.scores: dict[str, float] = {}
        self.calibrations: dict[str, Recalibration] = {}

    def learn(self, name: str, start: UserHyper, training: int, limits: learn.Limits) -> None:
        """Learn from one half, and predict each answer of the other half by all other answers."""
        half, mine, rows = self.halves[training], self.inside[training], self.both.edges
        start = self.starts.setdefault(name, start)
        theta = self.ends[name].theta if name in self.ends else _begin(half, start)
        sites = None if self.sites is None else self.sites.part(np.flatnonzero(mine))
        begin = learn.StartingPoint(theta, sites)
        learned = learn.maximize_evidence(
            half, start, begin=begin, callback=self.callback, limits=limits
        )
        self.ends[name] = learned.hyper
        solution = solve(self.both, learned.hyper, self.sites)
        self.sites = solution.inference.sites
        unknown = Normal(*np.full((2, len(rows)), np.nan))
        before, found = self.left_out.get(name, unknown), _cavities(self.both, solution)
        others = Normal(*(np.where(mine, *each) for each in zip(before, found, strict=True)))
        scored = np.flatnonzero(np.isfinite(others.mean))
        known, part = Normal(others.mean[scored], others.var[scored]), rows.part(scored)
        calibration = recalibrate(learned.hyper.likelihood, known, part).calibration
        density = np.full(len(rows), np.nan)
        density[scored] = log_density(learned.hyper.likelihood, calibration, known, part)
        self.left_out[name], self.density[name] = others, density
        self.calibrations[name] = calibration
        self.scores[name] = float(np.average(density[scored], weights=part.count))

    def level(self, names: list[str], n_errors: float) -> list[str]:
        """Those that the best one does not beat by more than so many standard errors, which are
        clustered by user."""
        best = max(names, key=lambda name: self.scores[name])
        scored = np.flatnonzero(np.isfinite(self.density[best]))
        votes = self.both.edges.part(scored)
        share = np.bincount(votes.user, votes.count) / votes.count.sum()
        found = []
        for name in names:
            gain = votes.count * (self.density[best] - self.density[name])[scored]
            by_user = np.bincount(votes.user, gain) / votes.count.sum()
            error = float(np.sqrt(np.sum((by_user - share * by_user.sum()) ** 2)))
            if by_user.sum() <= n_errors * error:
                found.append(name)
        return found


def _in_frame(start: UserHyper, end: UserHyper) -> tuple[UserHyper, FloatArray]:
    """The start, and the theta of the end, in the frame of the end where the covariance is free."""
    if isinstance(start.kernel, FreeCovariance) and isinstance(end.kernel, FreeCovariance):
        start = start._replace(kernel=start.kernel.around(end.kernel))
        end = end._replace(kernel=end.kernel.around(end.kernel))
    return start, end.theta


def scaled_start(
    problem: UserProblem, simplest: UserHyper, start: Start, callback: Callback | None = None
) -> CovarianceChoice:
    """The choice of a covariance that was asked for, its start learned from half of the users."""
    problem = problem.few_items()
    half = _of(problem, _halves(problem.edges)[0]).roughly()
    centre = start(learn.maximize_evidence(half, simplest, callback=callback).hyper)
    return CovarianceChoice("free", centre, _begin(half, centre), {})


def _begin(problem: UserProblem, start: UserHyper) -> FloatArray:
    """Where to maximise from: a free covariance's start is a mode of its prior, and can be one of
    the evidence times the prior; a step of EM leaves it."""
    if not isinstance(start.kernel, FreeCovariance):
        return start.theta
    step = problem.m_step(solve(problem, start), start)
    return step._replace(kernel=_free(step.kernel).around(start.kernel)).theta


def _halves(votes: Rows) -> list[IntArray]:
    """The users in two halves of at most `TRAINING_ANSWERS` each; one part where users are few."""
    users, n_votes = np.unique(votes.user, return_counts=True)
    if len(users) < FEWEST_USERS:
        return [users]
    order, halves = np.argsort(votes.content.user[users], kind="stable"), []
    for half in (order[::2], order[1::2]):
        inside = np.cumsum(n_votes[half]) <= TRAINING_ANSWERS
        inside[0] = True
        halves.append(users[half[inside]])
    return halves


def _of(problem: UserProblem, users: IntArray) -> UserProblem:
    """The answers of some users."""
    rows = np.flatnonzero(np.isin(problem.edges.user, users))
    return replace(problem, edges=problem.edges.part(rows))
