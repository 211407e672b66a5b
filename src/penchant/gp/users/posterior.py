"""What is known of every user's taste: predictions for known, new and future users.

A user's utilities are f_u = Φ v_u + rest, so that all there is to know of a user is the mean and
covariance of r weights v_u = √ρ Wᵀφ_u + √(1−ρ) r_u. They are worked out on demand from the shared
posterior and the user's own sites; nothing of the size users × r² is kept.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from penchant.gp.posterior import Basis, EffectPosterior, Normal, Posterior
from penchant.gp.users.arrangement import arrange
from penchant.gp.users.arrow import eliminate
from penchant.gp.users.blocks import Block
from penchant.gp.users.conditioned import Conditioned
from penchant.gp.users.covariances import ItemCovariances
from penchant.gp.users.votes import Kept, VoteSites
from penchant.kernels import Constant, Inputs, Kernel
from penchant.likelihoods import Likelihood
from penchant.numerics.batched import (
    apply_stack,
    multiply_stack,
    square_root_stack,
    transpose_stack,
)
from penchant.numerics.dispatch import HOST, Device
from penchant.numerics.linalg import cholesky, gram, multiply, solve_lower
from penchant.numerics.types import FloatArray, IntArray


class UserWeights(NamedTuple):
    """Posterior of v_u of one user: mean (r,), cov (r, r); scale: its prior variance."""

    mean: FloatArray
    cov: FloatArray
    scale: float


@dataclass(frozen=True, eq=False)
class UserPosteriors:
    """The posterior over all users' utilities, each user a `Posterior` of their own.

    items, users: Inputs of the universe; target: the items looked at, by default the same.
    shared_mean: (r_u, r) and shared_lower: the posterior of W. Users from `n_fitted` on came
    later: W does not know their sites, they are conditioned on it. kept: with Sparse-EP, whose
    sites these are. effects: of how comparisons were made, joint with W; users' own deviations
    take them at their means. device: where many users' stacks are worked on; a copy knows none.
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
    sites: VoteSites
    n_fitted: int
    kept: Kept | None = None
    effects: EffectPosterior | None = None
    device: Device = field(default=HOST, init=False)

    def __getstate__(self) -> dict[str, Any]:
        # what was worked out from the fields may live on the device
        return {each.name: getattr(self, each.name) for each in fields(self)} | {"device": HOST}

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

    def for_user(self, user: int) -> Posterior:
        """One user's utilities, as a `Posterior` over the target items."""
        return self._posterior(*self.weights(user))

    def population(self) -> Posterior:
        """What users share on average: utilities without anybody's deviation."""
        phi = self.user_features(np.arange(self.n_fitted)).mean(axis=0, keepdims=True)
        mean, cov = self.covariances.shared(phi)
        return self._posterior(mean[0], cov[0], self.sharing * float(np.vdot(phi, phi)))

    def shared_utilities(self, phi: FloatArray) -> FloatArray:
        """(k, n) means of what users φ (k, r_u) share with others, at the target items."""
        features = self.item_basis.features(self.kernel, self.items, self.target)
        shared = np.sqrt(self.sharing) * multiply(phi, self.shared_mean)
        return multiply(shared, features.T)

    def spread(self) -> FloatArray:
        """(n,) standard deviation between people of a utility relative to the average item: of
        what their features tell, and of their own deviations."""
        phi = self.user_features(np.arange(self.n_fitted))
        told = self.shared_utilities(np.eye(phi.shape[1]))
        told -= told.mean(axis=1, keepdims=True)
        between = np.atleast_2d(np.cov(phi.T, bias=True))
        K = self.kernel(self.target)
        own = np.diagonal(K) - 2.0 * K.mean(axis=0) + K.mean()
        variance = np.einsum("ki,ki->i", told, multiply(between, told)) + (1.0 - self.sharing) * own
        spread: FloatArray = np.sqrt(np.maximum(variance, 0.0))
        return spread

    def _posterior(self, mean: FloatArray, cov: FloatArray, scale: float) -> Posterior:
        """Weights of prior variance `scale` as the item-space posterior that they amount to."""
        root = np.sqrt(scale)
        half = solve_lower(cholesky(cov / scale).lower, np.eye(len(mean)))
        return Posterior(
            kernel=Constant(scale) * self.kernel,
            likelihood=self.likelihood,
            universe=self.items,
            target=self.target,
            basis=replace(self.item_basis, lower=root * self.item_basis.lower),
            coefficients=mean / root,
            lower=cholesky(gram(half)).lower,
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
                asked = items.whole(known.phi[some], known.items[some])
                mean[known.rows[some]], var[known.rows[some]] = known.moments(some, asked)
        return Normal(mean[owner], np.maximum(var, 0.0)[owner])

    def differences(self, users: IntArray, first: IntArray, second: IntArray) -> Normal:
        """Marginals of f_u[first] − f_u[second], one user a pair, each (k,)."""
        mean, var = np.empty((2, len(users)))
        distinct, owner = np.unique(users, return_inverse=True)
        order = np.argsort(owner, kind="stable")
        starts = np.searchsorted(owner[order], np.arange(len(distinct) + 1))
        for known in self._own(distinct):
            pairs = np.concatenate([order[starts[row] : starts[row + 1]] for row in known.rows])
            place = np.repeat(np.arange(len(known.rows)), np.diff(starts)[known.rows])
            for part in known.chunks(1, place):
                some, asked = place[part], pairs[part]
                pair = first[asked], second[asked]
                contrast = self.covariances.contrast(known.phi[some], known.items[some], *pair)
                moments = known.moments(some, contrast)
                mean[asked], var[asked] = (moment[:, 0] for moment in moments)
        return Normal(mean, np.maximum(var, 0.0))

    def known_differences(
        self, users: IntArray | None, first: IntArray, second: IntArray
    ) -> Normal:
        """`differences` of known users, and the population's where a user is −1, or None."""
        if users is None:
            return self.population().difference(first, second)
        mean, var = np.empty((2, len(first)))
        known = users >= 0
        mean[known], var[known] = self.differences(users[known], first[known], second[known])
        if not known.all():
            population = self.population()
            mean[~known], var[~known] = population.difference(first[~known], second[~known])
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

    def personal(self, users: IntArray, phi: FloatArray) -> FloatArray:
        """(k,) variance of each user's own deviation, in units of K_x."""
        missed = self.user_kernel.diag(self.users.take(users)) - np.einsum("ij,ij->i", phi, phi)
        own: FloatArray = 1.0 - self.sharing + self.sharing * np.maximum(missed, 0.0)
        return own

    def weights(self, user: int) -> UserWeights:
        """Posterior weights of one user."""
        users = np.array([user])
        phi = self.user_features(users)
        mean, shared_cov = self.covariances.shared(phi)
        r, is_later = mean.shape[1], user >= self.n_fitted
        personal = self.personal(users, phi)
        # what the user's own sites act on: for a later user the shared part is in it, because
        # W has not seen these sites; for a fitted one it is not, because W has
        prior = personal[:, None, None] * np.eye(r)
        if is_later:
            prior += shared_cov
        gain = np.zeros_like(prior)
        for _, block in self._own_sites(users):
            gain, mean = self._condition(block, prior, mean)
        J = np.eye(r) - gain
        cov = multiply_stack(J, prior)
        if not is_later:
            cov += multiply_stack(multiply_stack(J, shared_cov), transpose_stack(J))
        scale = personal + self.sharing * np.einsum("ij,ij->i", phi, phi)
        return UserWeights(mean[0], 0.5 * (cov + transpose_stack(cov))[0], float(scale[0]))

    def _own_sites(self, users: IntArray) -> Iterator[tuple[IntArray, Block]]:
        """The comparisons of these users in blocks, with the rows of `users` that each is about."""
        row_of = np.full(len(self), -1, dtype=np.intp)
        row_of[users] = np.arange(len(users))
        mine = np.flatnonzero(row_of[self.sites.user] >= 0)
        rows = row_of[self.sites.user[mine]]
        winner, loser = self.sites.winner[mine], self.sites.loser[mine]
        for block in arrange(rows, winner, loser, len(self.items), self.device.stack_size):
            yield block.users, replace(block, edges=mine[block.edges])

    def _condition(
        self, block: Block, prior: FloatArray, mean: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Condition weights N(mean, prior) on a block's sites.

        Returns A Φᵀ R Φ, by which the covariance A shrinks, and the new means.
        """
        factor = self.covariances.known_factor[block.items]
        into = multiply_stack(prior, transpose_stack(factor))
        root = square_root_stack(multiply_stack(factor, into))
        own = eliminate(block.laplacian(self.sites.weight), root)
        R = own.R
        alpha = own.forced(block.adjoint(self.sites.shift))
        alpha -= apply_stack(R, apply_stack(factor, mean))
        gain = multiply_stack(multiply_stack(into, R), factor)
        return gain, mean + apply_stack(into, alpha)

    def _own(self, users: IntArray) -> Iterator[Conditioned]:
        """These users, each once, in groups that compared equally much, given their own sites."""
        silent = np.ones(len(users), dtype=bool)
        for rows, block in self._own_sites(users):
            silent[rows] = False
            later = users[rows] >= self.n_fitted
            for is_later in np.unique(later):
                some = np.flatnonzero(later == is_later)
                few = block if len(some) == len(rows) else block.part(some)
                yield self._conditioned(users[rows[some]], rows[some], few, bool(is_later))
        rows = np.flatnonzero(silent)
        if len(rows):
            nothing = Block.silent(len(rows), len(self.items))
            yield self._conditioned(users[rows], rows, nothing, False)

    def _conditioned(
        self, users: IntArray, rows: IntArray, block: Block, is_later: bool
    ) -> Conditioned:
        phi = self.user_features(users)
        personal = self.personal(users, phi)
        prior = self.covariances.prior_of(block.items, personal, phi if is_later else None)
        weight, shift = self._sites_there
        own = eliminate(block.laplacian(weight), square_root_stack(prior))
        R, mean = own.R, self.device.matrix(self.covariances.shared_mean_at(phi, block.items))
        alpha = own.forced(block.adjoint(shift))
        alpha -= apply_stack(R, mean)
        shared = None if is_later else self.covariances.shared_within(phi, block.items)
        largest = self.device.stack_size
        return Conditioned(rows, block.items, phi, personal, R, alpha, shared, largest)

    @cached_property
    def _sites_there(self) -> tuple[FloatArray, FloatArray]:
        return self.device.matrix(self.sites.weight), self.device.matrix(self.sites.shift)
