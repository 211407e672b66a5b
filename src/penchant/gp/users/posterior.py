"""The posterior of every user's utilities: predictions for known, new and future users.

A user's utilities are f_u = Φ v_u + rest with r weights v_u = √ρ Wᵀφ_u + √(1−ρ) r_u. Their mean and
covariance are computed on demand from the shared posterior and the user's own sites; nothing of the
size users × r² is stored.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from penchant.gp.posterior import (
    AS_IT_IS,
    Basis,
    EffectPosterior,
    Normal,
    Posterior,
    Recalibration,
)
from penchant.gp.rows import Rows
from penchant.gp.rules import Sites
from penchant.gp.users.arrowhead import (
    are_very_many,
    eliminate,
    entries,
    outer_products,
    variance_by_column,
)
from penchant.gp.users.blocks import Block, arrange
from penchant.kernels import Constant, Inputs, Kernel
from penchant.likelihoods import Likelihood
from penchant.numerics import linalg
from penchant.numerics.batched import (
    apply_stack,
    multiply_stack,
    row_products_stack,
    scale_stack,
    split_blocks,
    square_root_stack,
    take_columns_stack,
)
from penchant.numerics.dispatch import CPU, Device
from penchant.numerics.linalg import gram, multiply, solve_lower, to_numpy
from penchant.numerics.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class UserSites:
    """Converged sites with their rows: all of the data that predictions need.

    user, winner, loser: (m,) as in `Rows`; weight = count · τ; shift = count · ν, less weight · zᵀβ̂
    where there are effects: sites on the difference of utilities alone. z: (m, q) weights of the
    scaled effects b in the rows, where there are any.
    """

    user: IntArray
    winner: IntArray
    loser: IntArray
    weight: FloatArray
    shift: FloatArray
    z: FloatArray | None = None

    @classmethod
    def of(cls, votes: Rows, sites: Sites, effects: EffectPosterior | None = None) -> "UserSites":
        """From rows and their sites."""
        where = (votes.user, votes.winner, votes.loser)
        weight, shift = votes.count * sites.tau, votes.count * sites.nu
        z = None if effects is None or votes.shown is None else votes.shown.scaled.T
        return cls(*where, weight, shift - weight * votes.offset(effects), z)

    def per_copy(self, votes: Rows, effects: EffectPosterior | None = None) -> Sites:
        """The sites of one copy each, on g with its effects."""
        shift = self.shift + self.weight * votes.offset(effects)
        return Sites(self.weight / votes.count, shift / votes.count)

    def take(self, rows: IntArray) -> "UserSites":
        """Some of them, or all in another order."""
        taken: Any = (None if each is None else each[rows] for each in vars(self).values())
        return UserSites(*taken)

    def join(self, more: "UserSites") -> "UserSites":
        """These and more."""
        both = zip(vars(self).values(), vars(more).values(), strict=True)
        joined: Any = (None if one is None else np.concatenate([one, two]) for one, two in both)
        return UserSites(*joined)


class Asked(NamedTuple):
    """Utilities or contrasts of some rows, before the user's own sites.

    mean, prior, shared_var: (s, t) shared mean, variances of the user's own deviation and of the
    shared utility; cross, shared_cross: (s, t, p) covariances of both with the user's items;
    with_effects: (s, t, q) covariances of the shared utility with the scaled effects b.
    """

    mean: FloatArray
    prior: FloatArray
    cross: FloatArray
    shared_var: FloatArray
    shared_cross: FloatArray
    with_effects: FloatArray


class Own(NamedTuple):
    """Of users' own deviations, with covariance a_u K_x + c_u Φ₂Φ₂ᵀ: a and c, (k,) each."""

    personal: FloatArray
    beyond: FloatArray

    def take(self, some: IntArray) -> "Own":
        """Of some of them."""
        return Own(self.personal[some], self.beyond[some])


class Conditioned(NamedTuple):
    """k users who compared p items each.

    rows: (k,) where they stand among those asked for; items: (k, p); phi: (k, r_u); own: of their
    deviations; R: (k, p, p) and alpha: (k, p) of their own sites; shared:
    (k, p, p) covariance of what is shared, None for users who came after the fit; of_effects: F =
    Jᵀ X, by which α falls with the effects b, and covariances of what is shared with b, (k, p, q)
    each. R, alpha and what follows may live on a device; largest: most numbers of an array there.
    """

    rows: IntArray
    items: IntArray
    phi: FloatArray
    own: Own
    R: FloatArray
    alpha: FloatArray
    shared: FloatArray | None
    of_effects: tuple[FloatArray, FloatArray]
    largest: int

    def chunks(self, n_asked: int, of: IntArray | None = None) -> Iterator[IntArray]:
        """Positions of rows (or of `of`, whose entries are rows) whose arrays fit at once."""
        n_rows = len(self.rows) if of is None else len(of)
        p = max(1, self.items.shape[1])
        step = max(1, self.largest // (p * max(p, n_asked)))
        return (np.arange(at, min(at + step, n_rows)) for at in range(0, n_rows, step))

    def moments(
        self, some: IntArray, asked: Asked, effect_cov: FloatArray, z: FloatArray | float = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """Means and variances (s, t) of what is asked of rows `some`, and zᵀb − zᵀb̂ more.

        effect_cov: (q, q) of the scaled effects b; z: (s, 1, q).
        """
        cross = asked.cross
        if self.shared is None:
            cross = cross + asked.shared_cross
        through = multiply_stack(cross, self.R[some])
        mean = asked.mean + to_numpy(apply_stack(cross, self.alpha[some]))
        var = asked.prior + asked.shared_var - row_products_stack(through, cross)
        if self.shared is not None:
            var -= 2.0 * row_products_stack(through, asked.shared_cross)
            inner = multiply_stack(through, self.shared[some])
            var += row_products_stack(inner, through)
        if len(effect_cov):
            F, c = (each[some] for each in self.of_effects)
            t = z - to_numpy(multiply_stack(cross, F))
            follows = asked.with_effects - to_numpy(multiply_stack(through, c))
            var += np.einsum("stq,stq->st", t, 2.0 * follows + multiply_stack(t, effect_cov))
        return mean, var


# Covariances between items before a user's own sites: of their deviation, and of what is shared.
#
# Everything of the size items × items or items × r that answers about many users need, each worked
# out once, when it is first asked for.


@dataclass(frozen=True, eq=False)
class ItemCovariances:
    """Of the fitted items and of the target items, under K_x and the posterior of W.

    The fields are those of `UserPosteriors`; relative: whether `whole` is about target items less
    the average fitted item.
    """

    kernel: Kernel
    items: Inputs
    target: Inputs
    item_basis: Basis
    sharing: float
    shared_mean: FloatArray
    shared_lower: FloatArray
    effects: EffectPosterior | None
    device: Device
    relative: bool = False

    @cached_property
    def known_factor(self) -> FloatArray:
        """Φ of the items that were fitted, (n, r)."""
        return self.item_basis.features(self.kernel, self.items, self.items)

    @cached_property
    def _features(self) -> FloatArray:
        """Φ of the target items, (n, r)."""
        features = self.item_basis.features(self.kernel, self.items, self.target)
        return features - self.known_factor.mean(axis=0) if self.relative else features

    @property
    def depth(self) -> int:
        """s, how many columns of Φ directions but the first have: W has r + (r_u − 1) s entries."""
        rank, r = self.shared_mean.shape
        return r if rank == 1 else (len(self.shared_lower) - r) // (rank - 1)

    @cached_property
    def mask(self) -> BoolArray:
        """(r_u, r) which entries W has; they stand row by row in `shared_lower`."""
        rank, r = self.shared_mean.shape
        return entries(rank, r, self.depth)

    @cached_property
    def _shared_cov(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Covariances of W along the first direction (r, r), of it with the others (r, d·s), and
        between these (d², s, s)."""
        C, r = gram(solve_lower(self.shared_lower, np.eye(len(self.shared_lower)))), self._rank
        return C[:r, :r], C[:r, r:], split_blocks(C[r:, r:], max(1, len(self.shared_mean) - 1))

    @property
    def _rank(self) -> int:
        return int(self.shared_mean.shape[1])

    def shared(self, phi: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean (k, r) and covariance (k, r, r) of √ρ Wᵀφ."""
        mean = np.sqrt(self.sharing) * multiply(phi, self.shared_mean)
        # neighbours are often one person, asked about several pairs
        begins = np.append(True, (phi[1:] != phi[:-1]).any(axis=1))[: len(phi)]
        first, rest = np.split(self.sharing**0.5 * phi[begins], [1], axis=1)
        common, cross, others = self._shared_cov
        cov = first[:, :, None] ** 2 * common
        if rest.shape[1]:
            s, each = self.depth, cross.reshape(self._rank, rest.shape[1], -1)
            beside = np.einsum("kd,rds->krs", first * rest, each, optimize=True)
            cov[:, :, :s] += beside
            cov[:, :s] += beside.swapaxes(1, 2)
            cov[:, :s, :s] += np.tensordot(outer_products(rest), others, axes=1)
        return mean, cov[np.cumsum(begins) - 1]

    @cached_property
    def of_effects(self) -> tuple[FloatArray, FloatArray]:
        """Covariances of the scaled effects b, (q, q), and of b with √ρ W, (q, r_u, r)."""
        if self.effects is None:
            return np.zeros((0, 0)), np.zeros((0, *self.shared_mean.shape))
        # the inverse of the joint factor [[l, 0], [coupling, L]] has −L⁻¹ coupling l⁻¹ below l⁻¹
        half = solve_lower(self.effects.lower, np.eye(len(self.effects.names)))
        below = -multiply(self.effects.coupled(self.shared_lower), half)
        with_W = np.zeros((len(half), *self.shared_mean.shape))
        solved = solve_lower(self.shared_lower, below, transposed=True)
        with_W[:, self.mask] = np.sqrt(self.sharing) * solved.T
        return gram(half) + gram(below), with_W

    def effects_with(self, phi: FloatArray, features: FloatArray) -> FloatArray:
        """(k, t, q) covariances of the shared utilities of users φ with b; features: (k, t, r), or
        (1, t, r) of all of them."""
        weights = np.tensordot(phi, self.of_effects[1], axes=(1, 1))  # (k, q, r)
        return multiply_stack(features, weights.swapaxes(1, 2))

    def prior_of(self, items: IntArray, own: Own, phi: FloatArray | None) -> FloatArray:
        """(k, p, p) covariance before a user's own sites: their deviation's, with φ the shared too.

        items: (k, p) positions of fitted items.
        """
        K = scale_stack(self._within("_prior", items), own.personal)
        if self._has_beyond:
            K = K + scale_stack(self._within("_prior_beyond", items), own.beyond)
        return K if phi is None else K + self.shared_within(phi, items)

    def shared_mean_at(self, phi: FloatArray, items: IntArray) -> FloatArray:
        """(k, p) mean of the shared utilities of users φ at fitted items (k, p)."""
        return np.einsum("kq,qkp->kp", phi, self._known_shared[:, items])

    def asked(
        self,
        phi: FloatArray,
        own: Own,
        items: IntArray,
        pairs: tuple[IntArray, IntArray] | None = None,
    ) -> Asked:
        """All target items of users φ who compared `items` (k, p), or one difference a user."""
        features, prior, shared = self._features, self.target_var, self._target_shared
        if pairs is None:
            mean = multiply(phi, shared)
        else:
            first, second = pairs
            features = features[first] - features[second]
            prior = prior[first] + prior[second] - 2.0 * self._kernel_between(first, second)
            mean = np.einsum("kq,qk->k", phi, shared[:, first] - shared[:, second])[:, None]
        axis = 0 if pairs is None else 1  # of the users, where one row serves all of them
        if self._is_single:
            scale = self.sharing * phi[:, 0] ** 2
            across = scale_stack(self._columns("_single_across", items, pairs), scale)
            single = self._single_var if pairs is None else self._single_quadratic(features)
            within = scale[:, None] * np.expand_dims(single, axis)
        else:
            rows = self._there("_features") if pairs is None else self.device.matrix(features)
            rows = rows[None] if pairs is None else rows[:, None]
            through = multiply_stack(rows, self.device.matrix(self.shared(phi)[1]))
            across = multiply_stack(through, self._there("known_factor")[items].mT)
            within = row_products_stack(through, rows)
        if self.target is not self.items or self._by_rows:  # else the pivots explain everything
            left = prior - np.einsum("ij,ij->i", features, features)
            rest = np.where(left > 1e-9 * prior, left, 0.0)  # less is of the size of rounding
            unseen = self.sharing * np.einsum("kq,kq->k", phi, phi)
            unseen = (unseen - own.beyond)[:, None]  # which has its own part of the rest
            within = within + unseen * np.expand_dims(rest, axis)
        cross = scale_stack(self._columns("_cross", items, pairs), own.personal)
        deviation = own.personal[:, None] * np.expand_dims(prior, axis)
        if self._has_beyond:
            more = scale_stack(self._columns("_cross_beyond", items, pairs), own.beyond)
            cross = cross + more
            first_part = np.einsum("ij,ij->i", *2 * (features[:, : self.depth],))
            deviation = deviation + own.beyond[:, None] * np.expand_dims(prior - first_part, axis)
        with_effects = self.effects_with(phi, np.expand_dims(features, axis))
        return Asked(mean, deviation, cross, within, across, with_effects)

    def _columns(
        self, name: str, items: IntArray, pairs: tuple[IntArray, IntArray] | None
    ) -> FloatArray:
        """(k, t, p): of a matrix (t, n) the columns of each user's items, all rows or a
        difference of two."""
        if self._by_rows:
            rows, known = map(self._there, self._FACTORS[name])
            rows = rows[None] if pairs is None else (rows[pairs[0]] - rows[pairs[1]])[:, None]
            return multiply_stack(rows, known[items].mT)
        matrix = self._there(name)
        if pairs is None:
            return take_columns_stack(matrix, items)
        first, second = pairs
        return (matrix[first[:, None], items] - matrix[second[:, None], items])[:, None]

    def _within(self, name: str, items: IntArray) -> FloatArray:
        """(k, p, p): of a matrix (n, n) what stands between the items of each user."""
        if self._by_rows:
            rows, known = (self._there(each)[items] for each in self._FACTORS[name])
            return multiply_stack(rows, known.mT)
        return self._there(name)[items[:, :, None], items[:, None, :]]

    _FACTORS: ClassVar = {
        "_prior": ("known_factor", "known_factor"),
        "_cross": ("_features", "known_factor"),
        "_single_known": ("_known_half", "_known_half"),
        "_single_across": ("_half", "_known_half"),
    }
    """By rows each matrix is the product of two, A Bᵀ."""

    @property
    def _by_rows(self) -> bool:
        """Whether no matrix of items × items is made."""
        return are_very_many(self.items)

    def _kernel_between(self, first: IntArray, second: IntArray) -> FloatArray:
        """(k,) prior covariances of target items."""
        if self.target is self.items and not self._by_rows:
            return self._prior[first, second]
        return self.kernel.paired(self.target.take(first), self.target.take(second))

    def shared_within(self, phi: FloatArray, items: IntArray) -> FloatArray:
        """(k, p, p) covariance of the shared utilities of users φ at fitted items."""
        if self._is_single:
            scale = self.sharing * phi[:, 0] ** 2
            return scale_stack(self._within("_single_known", items), scale)
        factor = self._there("known_factor")[items]
        inner = multiply_stack(factor, self.device.matrix(self.shared(phi)[1]))
        return multiply_stack(inner, factor.mT)

    @property
    def _is_single(self) -> bool:
        """Whether users have one shared feature, so that one matrix serves all of them."""
        return len(self.shared_mean) == 1

    @cached_property
    def target_var(self) -> FloatArray:
        """(t,) K_x variance."""
        own = self.kernel.diag(self.target)
        if not self.relative:
            return own
        if self._by_rows:  # of what the pivots leave unexplained, no covariances
            features = self._features + self.known_factor.mean(axis=0)
            return own - linalg.row_squares(features) + linalg.row_squares(self._features)
        # K_tt − 2 K_t· + K_··, a dot for the mean over fitted items; `_cross` is K_tj − K_·j
        return own - 2.0 * self._cross.mean(axis=1) - self._prior.mean()

    @property
    def _has_beyond(self) -> bool:
        """Whether some columns of Φ are those of the first direction alone."""
        return self.depth < self._rank

    @cached_property
    def _prior(self) -> FloatArray:
        """(n, n) K_x of the fitted items."""
        return self.kernel(self.items)

    @cached_property
    def _prior_beyond(self) -> FloatArray:
        """(n, n) Φ₂Φ₂ᵀ of the fitted items."""
        return gram(self.known_factor[:, self.depth :].T)

    @cached_property
    def _cross_beyond(self) -> FloatArray:
        """(t, n) what K_x has beyond Φ₁Φ₁ᵀ between the target and the fitted items."""
        s = self.depth
        return self._cross - multiply(self._features[:, :s], self.known_factor[:, :s].T)

    @cached_property
    def _cross(self) -> FloatArray:
        """(t, n) K_x between the target and the fitted items."""
        cross = self._prior if self.target is self.items else self.kernel(self.target, self.items)
        return cross - self._prior.mean(axis=0) if self.relative else cross

    @cached_property
    def _known_shared(self) -> FloatArray:
        """(r_u, n): √ρ Wᵀ at the fitted items."""
        return self.sharing**0.5 * multiply(self.shared_mean, self.known_factor.T)

    @cached_property
    def _target_shared(self) -> FloatArray:
        """(r_u, t): √ρ Wᵀ at the target items."""
        return self.sharing**0.5 * multiply(self.shared_mean, self._features.T)

    @cached_property
    def _known_half(self) -> FloatArray:
        """(n, r) with half halfᵀ the covariance of the one shared utility of fitted items."""
        return solve_lower(self.shared_lower, self.known_factor.T).T

    @cached_property
    def _half(self) -> FloatArray:
        """(t, r) the same of the target items."""
        return solve_lower(self.shared_lower, self._features.T).T

    @cached_property
    def _single_known(self) -> FloatArray:
        return gram(self._known_half.T)

    @cached_property
    def _single_across(self) -> FloatArray:
        if self.target is self.items and not self.relative:
            return self._single_known
        return multiply(self._half, self._known_half.T)

    @cached_property
    def _single_var(self) -> FloatArray:
        return self._single_quadratic(self._features)

    def _single_quadratic(self, features: FloatArray) -> FloatArray:
        """(t,) variances of the one shared utility of features (t, r), in units of ρ φ²."""
        return linalg.column_squares(solve_lower(self.shared_lower, features.T))

    @cached_property
    def _on_device(self) -> dict[str, FloatArray]:
        return {}

    def _there(self, name: str) -> FloatArray:
        """One of these arrays where the stacks of users live."""
        if name not in self._on_device:
            self._on_device[name] = self.device.matrix(getattr(self, name))
        return self._on_device[name]


# Some users given their own comparisons, and what follows for anything asked of them.
#
# On the p items that a user compared: R, α of their own sites (see `arrow`). For utilities t with
# covariance k to those items through the user's deviation, and covariances s and S to and among
# those items through what users share: mean = shared mean + k α and, with v = k R, var = k_tt − v
# kᵀ + s_tt − 2 v sᵀ + v S vᵀ. Whoever came after the fit has the shared part in k.
#
# With effects b, a fitted user's α falls by F b, F = Jᵀ X (see `arrowhead`). So what is asked, and
# zᵀb, move with b by t = z − Fᵀkᵀ, and have the variance 2 tᵀ(c_t − c vᵀ) + tᵀ Cov(b) t more, c_t
# and c being the covariances of b with the shared utilities there and at the user's items.


@dataclass(frozen=True, eq=False)
class ActiveSet:
    """The users and items that Sparse-EP keeps, most important first.

    users, items: positions; user_entropy (U,), item_entropy (n,): entropy, in nats, that answers
    were expected to remove, or did under the printed rule; rows: of the data of the users kept,
    those whose sites predictions rest on.
    """

    users: IntArray
    items: IntArray
    user_entropy: FloatArray
    item_entropy: FloatArray
    rows: IntArray

    @property
    def n_comparisons(self) -> int:
        """How many rows of data predictions rest on."""
        return len(self.rows)


@dataclass(frozen=True, eq=False)
class UserPosteriors:
    """The posterior over all users' utilities, each user a `Posterior` of their own.

    items, users: Inputs of the universe; target: the items looked at, by default the same.
    shared_mean: (r_u, r) and shared_lower: the posterior of W. Users from `n_fitted` on came
    later: W does not know their sites, they are conditioned on it. kept: with Sparse-EP, whose
    sites these are. effects: of how comparisons were made, joint with W; users who came later take
    them at their means. calibration: of predictions of known users' answers. device: where stacks
    of users live; a pickled copy has none.
    """

    kernel: Kernel
    user_kernel: Kernel
    likelihood: Likelihood
    sharing: float
    items: Inputs
    users: Inputs
    target: Inputs
    item_basis: Basis
    user_basis: Basis
    shared_mean: FloatArray
    shared_lower: FloatArray
    sites: UserSites
    n_fitted: int
    kept: ActiveSet | None = None
    effects: EffectPosterior | None = None
    calibration: Recalibration = AS_IT_IS
    device: Device = field(default=CPU, init=False)

    def __getstate__(self) -> dict[str, Any]:
        # cached arrays may live on the device
        return {each.name: getattr(self, each.name) for each in fields(self)} | {"device": CPU}

    def on(self, device: Device) -> "UserPosteriors":
        """The same, with many users' stacks worked on elsewhere."""
        if device is self.device:
            return self
        moved = replace(self)
        object.__setattr__(moved, "device", device)
        return moved

    def changed(self, **changes: Any) -> "UserPosteriors":
        """With other values of some fields, on the same device."""
        return replace(self, **changes).on(self.device)

    def at(self, target: Inputs | None) -> "UserPosteriors":
        """The same users, looked at on other items (new ones, or a subset), if any."""
        return self if target is None else self.changed(target=target)

    def with_users(self, newcomers: Inputs) -> "UserPosteriors":
        """The same posterior with new users after the known ones, of whom nothing is known yet."""
        X, more = self.users.X, newcomers.X
        features = None if X is None or more is None else np.concatenate([X, more])
        n_users = len(self) + len(newcomers)
        users = replace(self.users, X=features, index=np.arange(n_users))
        return self.changed(users=users)

    def __len__(self) -> int:
        return len(self.users)

    def population(self) -> Posterior:
        """What users share on average: utilities without anybody's deviation."""
        phi = self.user_features(np.arange(self.n_fitted)).mean(axis=0, keepdims=True)
        mean, cov = self.covariances.shared(phi)
        (with_effects,) = self.covariances.effects_with(phi, np.eye(mean.shape[1])[None])
        scale = self.sharing * float(np.vdot(phi, phi))
        return self._posterior(mean[0], cov[0], scale, with_effects)

    def shared_utilities(self, phi: FloatArray) -> FloatArray:
        """(k, n) means of what users φ (k, r_u) share with others, at the target items."""
        features = self.item_basis.features(self.kernel, self.items, self.target)
        shared = np.sqrt(self.sharing) * multiply(phi, self.shared_mean)
        return multiply(shared, features.T)

    def spread(self) -> FloatArray:
        """(n,) standard deviation between people of a utility relative to the average item: of
        what their features explain, and of their own deviations."""
        phi = self.user_features(np.arange(self.n_fitted))
        shared = self.shared_utilities(np.eye(phi.shape[1]))
        shared -= shared.mean(axis=1, keepdims=True)
        between = np.atleast_2d(np.cov(phi.T, bias=True))
        own = self.relative_covariances.target_var
        variance = (1.0 - self.sharing) * own
        variance += np.einsum("ki,ki->i", shared, multiply(between, shared))
        return np.sqrt(np.maximum(variance, 0.0))

    def _posterior(
        self, mean: FloatArray, cov: FloatArray, scale: float, with_effects: FloatArray
    ) -> Posterior:
        """Weights of prior variance `scale` as the item-space posterior that they amount to.

        with_effects: (r, q) covariances of the weights with the scaled effects.
        """
        root, q = np.sqrt(scale), with_effects.shape[1]
        beside = with_effects / root
        joint = np.block([[self.covariances.of_effects[0], beside.T], [beside, cov / scale]])
        half = solve_lower(linalg.cholesky(joint).lower, np.eye(len(joint)))
        lower, effects = linalg.cholesky(gram(half)).lower, self.effects
        if effects is not None:
            effects = replace(effects, lower=lower[:q, :q], coupling=lower[q:, :q])
        return Posterior(
            kernel=Constant(scale) * self.kernel,
            likelihood=self.likelihood,
            universe=self.items,
            target=self.target,
            basis=replace(self.item_basis, lower=root * self.item_basis.lower),
            coefficients=mean / root,
            lower=linalg.trailing_block(lower, q),
            effects=effects,
        )

    def belief(self, user: int | None) -> Posterior:
        """One user's utilities, or the population's."""
        return self.population() if user is None else self.for_user(user)

    def known_utilities(self, users: IntArray | None) -> Normal:
        """`utilities` of known users, (k, n), less the average item's of the fit; the population's
        (n,) for None."""
        if users is not None:
            return self.utilities(users, relative=True)
        population = self.population()
        average = population if self.target is self.items else population.at(self.items)
        return population.relative_to(average)

    def utilities(self, users: IntArray, relative: bool = False) -> Normal:
        """Means and variances of the target items' utilities, (k, n) each; relative: of these less
        the average of the fitted items'."""
        items = self.relative_covariances if relative else self.covariances
        distinct, owner = np.unique(users, return_inverse=True)
        mean, var = np.empty((2, len(distinct), len(self.target)))
        for known in self._own(distinct):
            for some in known.chunks(len(self.target)):
                asked = items.asked(known.phi[some], known.own.take(some), known.items[some])
                moments = known.moments(some, asked, items.of_effects[0])
                mean[known.rows[some]], var[known.rows[some]] = moments
        return Normal(mean[owner], np.maximum(var, 0.0)[owner])

    def differences(
        self, users: IntArray, first: IntArray, second: IntArray, z: FloatArray | None = None
    ) -> Normal:
        """Marginals of f_u[first] − f_u[second], one user a pair, each (k,); z: (q, k), of zᵀβ
        more."""
        mean, var = np.empty((2, len(users)))
        effect_cov = self.covariances.of_effects[0]
        shown = np.zeros((len(users), len(effect_cov)))
        if z is not None and self.effects is not None:
            shown = z.T * self.effects.sd
        distinct, owner = np.unique(users, return_inverse=True)
        order = np.argsort(owner, kind="stable")
        starts = np.searchsorted(owner[order], np.arange(len(distinct) + 1))
        for known in self._own(distinct):
            pairs = np.concatenate([order[starts[row] : starts[row + 1]] for row in known.rows])
            place = np.repeat(np.arange(len(known.rows)), np.diff(starts)[known.rows])
            for part in known.chunks(1, place):
                some, asked = place[part], pairs[part]
                pair = first[asked], second[asked]
                who = known.phi[some], known.own.take(some), known.items[some]
                contrast = self.covariances.asked(*who, pair)
                moments = known.moments(some, contrast, effect_cov, shown[asked][:, None])
                mean[asked], var[asked] = (moment[:, 0] for moment in moments)
        if self.effects is not None:
            mean += multiply(shown, self.effects.scaled_mean)
        return Normal(mean, np.maximum(var, 0.0))

    def known_differences(
        self, users: IntArray | None, first: IntArray, second: IntArray, z: FloatArray | None = None
    ) -> Normal:
        """`differences` of known users, and the population's where a user is −1, or None."""
        if users is None:
            return self.population().difference(first, second, z)
        mean, var = np.empty((2, len(first)))
        known = users >= 0
        here = (users[known], first[known], second[known])
        mean[known], var[known] = self.differences(*here, None if z is None else z[:, known])
        if not known.all():
            there = (first[~known], second[~known], None if z is None else z[:, ~known])
            mean[~known], var[~known] = self.population().difference(*there)
        return Normal(mean, var)

    @cached_property
    def covariances(self) -> ItemCovariances:
        """Between items, before anybody's own sites."""
        shared = [each.name for each in fields(ItemCovariances) if each.name != "relative"]
        return ItemCovariances(**{name: getattr(self, name) for name in shared})

    @cached_property
    def relative_covariances(self) -> ItemCovariances:
        """The same of target items less the average fitted one."""
        return replace(self.covariances, relative=True)

    def user_features(self, users: IntArray) -> FloatArray:
        """(k, r_u) φ of users."""
        return self.user_basis.features(self.user_kernel, self.users, self.users.take(users))

    def own(self, users: IntArray, phi: FloatArray) -> Own:
        """Of these users' deviations."""
        missed = self.user_kernel.diag(self.users.take(users)) - np.einsum("ij,ij->i", phi, phi)
        personal = 1.0 - self.sharing + self.sharing * np.maximum(missed, 0.0)
        rest = phi[:, 1:]
        if self.covariances.depth == self.shared_mean.shape[1]:
            return Own(personal, np.zeros(len(phi)))
        return Own(personal, self.sharing * np.einsum("ij,ij->i", rest, rest))

    def for_user(self, user: int) -> Posterior:
        """One user's utilities, as a `Posterior` over the target items."""
        (known,) = self._own(np.array([user]))
        (mean,), (shared,) = self.covariances.shared(known.phi)
        (R,), (alpha,) = to_numpy(known.R), to_numpy(known.alpha)
        factor, is_later = self.covariances.known_factor[known.items[0]], user >= self.n_fitted
        (variance,) = variance_by_column(*known.own, len(mean), self.covariances.depth)
        prior = np.diag(variance)
        if is_later:  # W has not seen these sites, so that they act on the shared part as well
            prior += shared
        into = multiply(prior, factor.T)
        J = np.eye(len(mean)) - multiply(multiply(into, R), factor)
        cov = multiply(J, prior)
        if not is_later:
            cov += multiply(multiply(J, shared), J.T)
        # with the effects b the weights fall by H b
        H = multiply(into, to_numpy(known.of_effects[0])[0])
        (c,) = self.covariances.effects_with(known.phi, np.eye(len(mean))[None])
        c, between = multiply(J, c), self.covariances.of_effects[0]
        cov += multiply(multiply(H, between), H.T) - multiply(c, H.T) - multiply(H, c.T)
        scale = float(known.own.personal[0] + self.sharing * np.vdot(known.phi, known.phi))
        mean, cov = mean + multiply(into, alpha), 0.5 * (cov + cov.T)
        return self._posterior(mean, cov, scale, c - multiply(H, between))

    def _own(self, users: IntArray) -> Iterator[Conditioned]:
        """These users, each once, in groups that compared equally much, given their own sites."""
        sites, row_of = self.sites, np.full(len(self), -1, dtype=np.intp)
        row_of[users] = np.arange(len(users))
        mine = np.flatnonzero(row_of[sites.user] >= 0)
        ends = row_of[sites.user[mine]], sites.winner[mine], sites.loser[mine]
        silent = np.ones(len(users), dtype=bool)
        for block in arrange(*ends, len(self.items), self.device):
            silent[block.users] = False
            later = users[block.users] >= self.n_fitted
            for is_later in np.unique(later):
                some = np.flatnonzero(later == is_later)
                few = block if len(some) == len(later) else block.part(some)
                few = replace(few, edges=mine[few.edges])
                yield self._conditioned(users[few.users], few.users, few, bool(is_later))
        rows = np.flatnonzero(silent)
        if len(rows):
            nothing = Block.silent(len(rows), len(self.items))
            yield self._conditioned(users[rows], rows, nothing, False)

    def _conditioned(
        self, users: IntArray, rows: IntArray, block: Block, is_later: bool
    ) -> Conditioned:
        phi = self.user_features(users)
        variances = self.own(users, phi)
        prior = self.covariances.prior_of(block.items, variances, phi if is_later else None)
        weight, shift = self._sites_there
        own = eliminate(block.laplacian(weight), square_root_stack(prior))
        R, mean = own.R, self.device.matrix(self.covariances.shared_mean_at(phi, block.items))
        alpha = own.forced(block.adjoint(shift))
        alpha -= apply_stack(R, mean)
        shared = None if is_later else self.covariances.shared_within(phi, block.items)
        forced = c = np.zeros((*block.items.shape, len(self.covariances.of_effects[0])))
        if forced.shape[2]:
            c = self.covariances.effects_with(phi, self.covariances.known_factor[block.items])
        if self.sites.z is not None and not is_later:
            for j, z in enumerate(self.sites.z.T):
                X = block.adjoint(self.device.matrix(self.sites.weight * z))
                forced[:, :, j] = to_numpy(own.forced(X))
        of_effects = self.device.matrix(forced), self.device.matrix(c)
        known = (rows, block.items, phi, variances, R, alpha, shared)
        return Conditioned(*known, of_effects, self.device.stack_size)

    @cached_property
    def _sites_there(self) -> tuple[FloatArray, FloatArray]:
        return self.device.matrix(self.sites.weight), self.device.matrix(self.sites.shift)
