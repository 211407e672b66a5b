"""What is known of every user's taste: predictions for known, new and future users.

A user's utilities are f_u = Φ v_u + rest, so that all there is to know of a user is the mean and
covariance of r weights v_u = √ρ Wᵀφ_u + √(1−ρ) r_u. They are worked out on demand from the shared
posterior and the user's own sites; nothing of the size users × r² is kept.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from penchant.gp.posterior import Basis, EffectPosterior, Normal, Posterior
from penchant.gp.users.arrow import eliminate, outer_products
from penchant.gp.users.blocks import BLOCK_SIZE, Block, arrange
from penchant.gp.users.votes import Kept, VoteSites
from penchant.kernels import Constant, Inputs, Kernel
from penchant.likelihoods import Likelihood
from penchant.numerics.linalg import (
    apply_stack,
    cholesky,
    gram,
    multiply,
    multiply_stack,
    solve_lower,
    square_root_stack,
    transpose_stack,
)
from penchant.numerics.types import FloatArray, IntArray


class UserWeights(NamedTuple):
    """Posterior of v_u for k users: mean (k, r), cov (k, r, r); scale (k,): its prior variance."""

    mean: FloatArray
    cov: FloatArray
    scale: FloatArray


@dataclass(frozen=True, eq=False)
class UserPosteriors:
    """The posterior over all users' utilities, each user a `Posterior` of their own.

    items, users: Inputs of the universe; target: the items looked at, by default the same.
    shared_mean: (r_u, r) and shared_lower: the posterior of W. Users from `n_fitted` on came
    later: W does not know their sites, they are conditioned on it. kept: with Sparse-EP, whose
    sites these are. effects: of how comparisons were made, joint with W; users' own deviations
    take them at their means.
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

    def at(self, target: Inputs | None) -> "UserPosteriors":
        """The same users, looked at on other items (new ones, or a subset), if any."""
        return self if target is None else replace(self, target=target)

    def with_users(self, newcomers: Inputs) -> "UserPosteriors":
        """The same posterior with new users after the known ones, of whom nothing is known yet."""
        X, more = self.users.X, newcomers.X
        features = None if X is None or more is None else np.concatenate([X, more])
        n_users = len(self) + len(newcomers)
        return replace(self, users=replace(self.users, X=features, index=np.arange(n_users)))

    def __len__(self) -> int:
        return len(self.users)

    def for_user(self, user: int) -> Posterior:
        """One user's utilities, as a `Posterior` over the target items."""
        weights = self.weights(np.array([user]))
        return self._posterior(*(part[0] for part in weights))

    def population(self) -> Posterior:
        """What users share on average: utilities without anybody's deviation."""
        phi = self._user_features(np.arange(self.n_fitted)).mean(axis=0, keepdims=True)
        mean, cov = self._shared(phi)
        return self._posterior(mean[0], cov[0], self.sharing * float(np.vdot(phi, phi)))

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
        """`utilities` of known users, (k, n); the population's (n,) for None."""
        if users is not None:
            return self.utilities(users)
        population = self.population()
        return Normal(population.mean, population.var)

    def utilities(self, users: IntArray) -> Normal:
        """Means and variances of the target items' utilities, (k, n) each."""
        distinct, owner = np.unique(users, return_inverse=True)
        mean, var = np.empty((2, len(distinct), len(self.target)))
        for rows in self._chunks(len(distinct)):
            weights = self.weights(distinct[rows])
            mean[rows] = multiply(weights.mean, self._features.T)
            spread = np.einsum(
                "knr,nr->kn", multiply_stack(self._features, weights.cov), self._features
            )
            var[rows] = spread + weights.scale[:, None] * np.diagonal(self._rest)
        return Normal(mean[owner], var[owner])

    def differences(self, users: IntArray, first: IntArray, second: IntArray) -> Normal:
        """Marginals of f_u[first] − f_u[second], one user a pair, each (k,)."""
        mean, var = np.empty((2, len(users)))
        distinct, owner = np.unique(users, return_inverse=True)
        order = np.argsort(owner, kind="stable")
        for rows in self._chunks(len(distinct)):
            low, high = np.searchsorted(owner[order], [rows.start, rows.stop])
            pairs = order[low:high]
            row, a, b = owner[pairs] - rows.start, first[pairs], second[pairs]
            weights = self.weights(distinct[rows])
            utility = multiply(weights.mean, self._features.T)
            mean[pairs] = utility[row, a] - utility[row, b]
            cov = multiply_stack(multiply_stack(self._features, weights.cov), self._features.T)
            cov += weights.scale[:, None, None] * self._rest
            var[pairs] = cov[row, a, a] + cov[row, b, b] - 2.0 * cov[row, a, b]
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

    def _chunks(self, n_users: int) -> Iterator[slice]:
        size = max(len(self.target), self.item_basis.lower.shape[0]) ** 2
        step = max(1, BLOCK_SIZE // size)
        return (slice(start, min(start + step, n_users)) for start in range(0, n_users, step))

    @cached_property
    def _features(self) -> FloatArray:
        """Φ of the target items, (n, r)."""
        return self.item_basis.features(self.kernel, self.items, self.target)

    @cached_property
    def _rest(self) -> FloatArray:
        """(n, n) prior covariance of the target items that Φ leaves unexplained."""
        K = self.kernel(self.target)
        rest = K - gram(self._features.T)
        known = np.diagonal(rest) <= 1e-9 * np.diagonal(K)  # differences of the size of rounding
        rest[known] = rest[:, known] = 0.0
        return rest

    @cached_property
    def known_factor(self) -> FloatArray:
        """Φ of the items that were fitted, (n, r)."""
        return self.item_basis.features(self.kernel, self.items, self.items)

    @cached_property
    def _shared_cov(self) -> FloatArray:
        """(r_u², r, r) covariance blocks of W."""
        rank, r = self.shared_mean.shape
        half = solve_lower(self.shared_lower, np.eye(len(self.shared_lower)))
        blocks = gram(half).reshape(rank, r, rank, r)
        return blocks.transpose(0, 2, 1, 3).reshape(rank * rank, r, r)

    def _user_features(self, users: IntArray) -> FloatArray:
        return self.user_basis.features(self.user_kernel, self.users, self.users.take(users))

    def _shared(self, phi: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean (k, r) and covariance (k, r, r) of √ρ Wᵀφ."""
        mean = np.sqrt(self.sharing) * multiply(phi, self.shared_mean)
        cov = np.tensordot(outer_products(self.sharing**0.5 * phi), self._shared_cov, axes=1)
        return mean, cov

    def weights(self, users: IntArray) -> UserWeights:
        """Posterior weights of some users (each once), in the order asked for."""
        phi = self._user_features(users)
        mean, shared_cov = self._shared(phi)
        r = mean.shape[1]
        explained = np.einsum("ij,ij->i", phi, phi)
        later = users >= self.n_fitted
        missed = np.maximum(self.user_kernel.diag(self.users.take(users)) - explained, 0.0)
        personal = 1.0 - self.sharing + self.sharing * np.where(later, missed, 0.0)
        # what the user's own sites act on: for a later user the shared part is in it, because
        # W has not seen these sites; for a fitted one it is not, because W has
        prior = personal[:, None, None] * np.eye(r)
        prior[later] += shared_cov[later]
        gain = np.zeros_like(prior)
        for rows, block in self._own_sites(users):
            gain[rows], mean[rows] = self._condition(block, prior[rows], mean[rows])
        J = np.eye(r) - gain
        cov = multiply_stack(J, prior)
        through = multiply_stack(multiply_stack(J, shared_cov), transpose_stack(J))
        cov[~later] += through[~later]
        scale = personal + self.sharing * explained
        return UserWeights(mean, 0.5 * (cov + transpose_stack(cov)), scale)

    def _own_sites(self, users: IntArray) -> Iterator[tuple[IntArray, Block]]:
        """The comparisons of these users in blocks, with the rows of `users` that each is about."""
        row_of = np.full(len(self), -1, dtype=np.intp)
        row_of[users] = np.arange(len(users))
        mine = np.flatnonzero(row_of[self.sites.user] >= 0)
        rows = row_of[self.sites.user[mine]]
        winner, loser = self.sites.winner[mine], self.sites.loser[mine]
        for block in arrange(rows, winner, loser, len(self.items)):
            yield block.users, replace(block, edges=mine[block.edges])

    def _condition(
        self, block: Block, prior: FloatArray, mean: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Condition weights N(mean, prior) on a block's sites.

        Returns A Φᵀ R Φ, by which the covariance A shrinks, and the new means.
        """
        factor = self.known_factor[block.items]
        into = multiply_stack(prior, transpose_stack(factor))
        root = square_root_stack(multiply_stack(factor, into))
        own = eliminate(block.laplacian(self.sites.weight), root)
        alpha = apply_stack(transpose_stack(own.J), block.adjoint(self.sites.shift))
        alpha -= apply_stack(own.R, apply_stack(factor, mean))
        gain = multiply_stack(multiply_stack(into, own.R), factor)
        return gain, mean + apply_stack(into, alpha)
