"""Covariances between items before a user's own sites: of their deviation, and of what is shared.

Everything of the size items × items or items × r that answers about many users need, each worked
out once, when it is first asked for.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from penchant.gp.posterior import Basis
from penchant.gp.users.arrow import outer_products
from penchant.gp.users.conditioned import Asked
from penchant.kernels import Inputs, Kernel
from penchant.numerics.batched import (
    multiply_stack,
    row_products_stack,
    scale_stack,
    take_columns_stack,
    transpose_stack,
)
from penchant.numerics.dispatch import Device
from penchant.numerics.linalg import gram, multiply, solve_lower
from penchant.numerics.types import FloatArray, IntArray


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

    @cached_property
    def _shared_cov(self) -> FloatArray:
        """(r_u², r, r) covariance blocks of W."""
        rank, r = self.shared_mean.shape
        half = solve_lower(self.shared_lower, np.eye(len(self.shared_lower)))
        blocks = gram(half).reshape(rank, r, rank, r)
        return blocks.transpose(0, 2, 1, 3).reshape(rank * rank, r, r)

    def shared(self, phi: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean (k, r) and covariance (k, r, r) of √ρ Wᵀφ."""
        mean = np.sqrt(self.sharing) * multiply(phi, self.shared_mean)
        # neighbours are often one person, asked about several pairs
        begins = np.append(True, (phi[1:] != phi[:-1]).any(axis=1))[: len(phi)]
        weights = outer_products(self.sharing**0.5 * phi[begins])
        cov = np.tensordot(weights, self._shared_cov, axes=1)
        return mean, cov[np.cumsum(begins) - 1]

    def prior_of(self, items: IntArray, personal: FloatArray, phi: FloatArray | None) -> FloatArray:
        """(k, p, p) covariance before a user's own sites: their deviation's, with φ the shared too.

        items: (k, p) positions of fitted items.
        """
        K = scale_stack(self._prior_there[items[:, :, None], items[:, None, :]], personal)
        return K if phi is None else K + self.shared_within(phi, items)

    def shared_mean_at(self, phi: FloatArray, items: IntArray) -> FloatArray:
        """(k, p) mean of the shared utilities of users φ at fitted items (k, p)."""
        picked: FloatArray = np.einsum("kq,qkp->kp", phi, self._known_shared[:, items])
        return picked

    def whole(self, phi: FloatArray, items: IntArray) -> Asked:
        """All target items of users φ who compared `items` (k, p)."""
        cross = take_columns_stack(self._cross_there, items)
        prior = np.broadcast_to(self._target_var, (len(items), len(self.target)))
        across, within = self._shared_across(phi, items, None)
        within = within + self._unseen(phi)[:, None] * self._rest(None)
        mean = multiply(phi, self._target_shared)
        return Asked(mean, prior, cross, within, across)

    def contrast(
        self, phi: FloatArray, items: IntArray, first: IntArray, second: IntArray
    ) -> Asked:
        """One difference of target items a user."""
        wide = self._cross_there
        cross = wide[first[:, None], items] - wide[second[:, None], items]
        prior = self._target_var[first] + self._target_var[second]
        prior = prior - 2.0 * self._kernel_between(first, second)
        across, within = self._shared_across(phi, items, (first, second))
        within = within + self._unseen(phi) * self._rest((first, second))
        shared = self._target_shared[:, first] - self._target_shared[:, second]
        mean = np.einsum("kq,qk->k", phi, shared)
        return Asked(mean[:, None], prior[:, None], cross[:, None], within[:, None], across)

    def _kernel_between(self, first: IntArray, second: IntArray) -> FloatArray:
        """(k,) prior covariances of target items."""
        if self.target is self.items:
            picked: FloatArray = self._prior[first, second]
            return picked
        return self.kernel.paired(self.target.take(first), self.target.take(second))

    def shared_within(self, phi: FloatArray, items: IntArray) -> FloatArray:
        """(k, p, p) covariance of the shared utilities of users φ at fitted items."""
        if self._is_single:
            scale = self.sharing * phi[:, 0] ** 2
            picked = self._single_known_there[items[:, :, None], items[:, None, :]]
            return scale_stack(picked, scale)
        factor = self._known_factor_there[items]
        inner = multiply_stack(factor, self.device.matrix(self.shared(phi)[1]))
        return multiply_stack(inner, transpose_stack(factor))

    def _shared_across(
        self, phi: FloatArray, items: IntArray, pairs: tuple[IntArray, IntArray] | None
    ) -> tuple[FloatArray, FloatArray]:
        """Covariance of shared utilities: of targets with fitted items (k, t, p), of targets alone.

        pairs: the contrasts asked, one a row; None for all targets.
        """
        if self._is_single:
            scale = self.sharing * phi[:, 0] ** 2
            if pairs is None:
                across = take_columns_stack(self._single_across_there, items)
                within = np.broadcast_to(self._single_var, across.shape[:2])
                return scale_stack(across, scale), scale[:, None] * within
            first, second = pairs
            wide = self._single_across_there
            across = wide[first[:, None], items] - wide[second[:, None], items]
            D = self._features[first] - self._features[second]
            within = np.einsum("kr,kr->k", multiply(D, self._shared_cov[0]), D)
            return scale_stack(across[:, None], scale), scale * within
        cov, features = self.device.matrix(self.shared(phi)[1]), self._features_there
        if pairs is None:
            rows = features[None]
        else:
            rows = (features[pairs[0]] - features[pairs[1]])[:, None]
        through = multiply_stack(rows, cov)
        across = multiply_stack(through, transpose_stack(self._known_factor_there[items]))
        within = row_products_stack(through, rows)
        return across, within if pairs is None else within[:, 0]

    def _unseen(self, phi: FloatArray) -> FloatArray:
        """(k,) prior variance of the shared utility, in units of K_x."""
        explained: FloatArray = np.einsum("kq,kq->k", phi, phi)
        return self.sharing * explained

    def _rest(self, pairs: tuple[IntArray, IntArray] | None) -> FloatArray:
        """Prior variance that Φ leaves unexplained, of all targets or of contrasts of them."""
        if self.target is self.items:  # so is their average, which pivots explain, too
            return np.zeros(len(self.items) if pairs is None else len(pairs[0]))
        if pairs is None:
            prior, rows = self._target_var, self._features
        else:
            first, second = pairs
            prior = self._target_var[first] + self._target_var[second]
            prior = prior - 2.0 * self._kernel_between(first, second)
            rows = self._features[first] - self._features[second]
        left = prior - np.einsum("ij,ij->i", rows, rows)
        return np.where(left > 1e-9 * prior, left, 0.0)  # differences of the size of rounding

    @property
    def _is_single(self) -> bool:
        """Whether users share one thing, so that one matrix serves everybody."""
        return len(self.shared_mean) == 1

    @cached_property
    def _target_var(self) -> FloatArray:
        """(t,) K_x variance."""
        own = self.kernel.diag(self.target)
        if not self.relative:
            return own
        # K_tt − 2 K_t· + K_··, a dot for the mean over fitted items; `_cross` is K_tj − K_·j
        less: FloatArray = own - 2.0 * self._cross.mean(axis=1) - self._prior.mean()
        return less

    @cached_property
    def _prior(self) -> FloatArray:
        """(n, n) K_x of the fitted items."""
        return self.kernel(self.items)

    @cached_property
    def _cross(self) -> FloatArray:
        """(t, n) K_x between the target and the fitted items."""
        cross = self._prior if self.target is self.items else self.kernel(self.target, self.items)
        return cross - self._prior.mean(axis=0) if self.relative else cross

    @cached_property
    def _known_shared(self) -> FloatArray:
        """(r_u, n): √ρ Wᵀ at the fitted items."""
        wide: FloatArray = self.sharing**0.5 * multiply(self.shared_mean, self.known_factor.T)
        return wide

    @cached_property
    def _target_shared(self) -> FloatArray:
        """(r_u, t): √ρ Wᵀ at the target items."""
        wide: FloatArray = self.sharing**0.5 * multiply(self.shared_mean, self._features.T)
        return wide

    @cached_property
    def _single_half(self) -> FloatArray:
        """(r, n) with halfᵀ half the covariance of the one shared utility of fitted items."""
        return solve_lower(self.shared_lower, self.known_factor.T)

    @cached_property
    def _single_known(self) -> FloatArray:
        return gram(self._single_half)

    @cached_property
    def _single_across(self) -> FloatArray:
        if self.target is self.items and not self.relative:
            return self._single_known
        return multiply(solve_lower(self.shared_lower, self._features.T).T, self._single_half)

    @cached_property
    def _single_var(self) -> FloatArray:
        half = solve_lower(self.shared_lower, self._features.T)
        variances: FloatArray = np.einsum("rt,rt->t", half, half)
        return variances

    # The same where stacks live; on the host these are the arrays themselves.

    @cached_property
    def _prior_there(self) -> FloatArray:
        return self.device.matrix(self._prior)

    @cached_property
    def _cross_there(self) -> FloatArray:
        return self.device.matrix(self._cross)

    @cached_property
    def _features_there(self) -> FloatArray:
        return self.device.matrix(self._features)

    @cached_property
    def _known_factor_there(self) -> FloatArray:
        return self.device.matrix(self.known_factor)

    @cached_property
    def _single_known_there(self) -> FloatArray:
        return self.device.matrix(self._single_known)

    @cached_property
    def _single_across_there(self) -> FloatArray:
        return self.device.matrix(self._single_across)
