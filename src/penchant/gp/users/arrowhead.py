"""The arrow: exact Gaussian algebra for many users, linear in their number.

Prior: f_u = Φ (√ρ Wᵀφ_u + √(1−ρ) r_u) with shared W and personal r_u, all standard normal, so
that Cov(f) = (ρ Φ_u Φ_uᵀ + (1−ρ) I) ⊗ Φ Φᵀ, the K_u ⊗ K_x of paper 003 Eq. 3. Given sites, the
precision of (W, r_1, …, r_U) is an arrow: each r_u meets only W. Eliminating every r_u leaves one
system of the size of W; no matrix over users × items exists.

For one user, on the p items that they compared: L the Laplacian of their sites, b its shift,
C = F (I + FᵀLF)⁻¹ Fᵀ the covariance of their deviation when W is known (F Fᵀ = (1−ρ) K_x there),
J = I − C L, R = L J. Then S = I + Σ_u (φ_u φ_uᵀ) ⊗ (ρ Φᵀ R_u Φ) is the precision of W.

Everything is a sum over blocks of users given a small broadcast: `gather` takes the prior, a block
and its sites to what S is made of, `ArrowState` takes S back to the block's differences. What a
block needs in between is stored where it fits in memory, and computed again where it does not.

The variance of users that Φ_u leaves out is theirs alone: user u deviates by (1−ρ) + ρ missed_u.
Where W would be too large, the first direction of Φ_u, that of most variance, keeps all columns of
Φ = [Φ₁ Φ₂], and the others have Φ₁ alone, the columns of the first pivots. What they have by Φ₂ is
each user's own, too: deviations have the covariance a_u K_x + c_u Φ₂Φ₂ᵀ with
a_u = (1−ρ) + ρ missed_u and c_u = ρ Σ φ_uk² over the directions k but the first.

Where items are very many, Φ has few columns, and no array has the size items × items: what would be
looked up in one is a product of rows of Φ.

Effects of order and of covariates join W: with rows g = A f + zᵀb and X = Aᵀ D z of a user, b and W
are coupled by Σ_u φ_u ⊗ (√ρ Φᵀ Jᵀ X), and b's own precision is I + Zᵀ D Z − Σ_u Xᵀ C X. The weights
b stand before W in one Cholesky factor.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, NamedTuple, Self

import numpy as np
from scipy.linalg import svd

from penchant.gp.effects import Covariates
from penchant.gp.users.blocks import Arrangement, Block, tied_items
from penchant.kernels import Inputs, Kernel
from penchant.numerics import batched, linalg
from penchant.numerics.dispatch import CPU, Device
from penchant.numerics.types import BoolArray, FloatArray, IntArray

# The users' kernel through a few of its users (Nyström), linear in their number
#
# With many pivots K ≈ N = whole wholeᵀ, and whole = U Λ^½ Vᵀ. Of bounded rank k the factor is
# Φ = whole V_k = U_k Λ_k^½, the directions along which users differ most: k pivots alone leave out
# several times as much.

DIAGONAL_BLOCK = 256
"""Users a block, when the diagonal of their kernel is differentiated."""
PIVOTS_A_DIRECTION = 8
"""Pivots from which each direction is taken."""
FEWEST_PIVOTS = 256
"""Pivots that are looked for where the number of directions is not given."""
STEEPEST_MIX = 100.0
"""Bound on λ_i / (λ_i − λ_j): where a direction that is kept meets one that is not, the factor has
no derivative."""


class UserFactor(NamedTuple):
    """K ≈ rows @ rows.T over users; rows: (U, k), pivots: (r,).

    missed: (U,) variances that the factor leaves out, None where they are within the tolerance.
    whole: (U, r) factor through the pivots, where rows = whole @ rotation are k directions of it,
    those of most variance first. depth: how many columns of the items' factor directions but the
    first have; None: all.
    """

    rows: FloatArray
    pivots: IntArray
    missed: FloatArray | None
    whole: FloatArray | None = None
    rotation: FloatArray | None = None
    depth: int | None = None

    @property
    def residual(self) -> float:
        """The largest variance that was left out."""
        return 0.0 if self.missed is None else float(self.missed.max(initial=0.0))

    @property
    def lower(self) -> FloatArray:
        """(r, r) lower triangular factor of the pivots' own covariance."""
        return (self.rows if self.whole is None else self.whole)[self.pivots]

    def pullback(
        self, kernel: Kernel, users: Inputs, slopes: FloatArray, own: FloatArray
    ) -> FloatArray:
        """Gradient by the kernel's theta; slopes: (U, k) by the rows, own: (U,) by `missed`.

        K ≈ K_UP K_PP⁻¹ K_PU, each factor differentiated; `missed` is the diagonal of K less that of
        the product.
        """
        by_diagonal = np.zeros(len(kernel.theta))
        if self.missed is not None:
            slopes = slopes - 2.0 * own[:, None] * self.rows
            for start in range(0, len(users), DIAGONAL_BLOCK):
                some = np.arange(start, min(start + DIAGONAL_BLOCK, len(users)))
                by_diagonal += kernel.pullback(users.take(some), np.diag(own[some]))
        whole = self.rows
        if self.whole is not None:
            whole, slopes = self.whole, _by_whole(self.whole, slopes, self.depth is not None)
        M = 0.5 * linalg.solve_lower(self.lower, slopes.T, transposed=True).T
        through = linalg.solve_lower(self.lower, linalg.multiply(whole.T, M), transposed=True)
        pivots = users.take(self.pivots)
        through = kernel.pullback(pivots, 0.5 * (through + through.T))
        return by_diagonal + 2.0 * kernel.pullback(users, M, pivots) - through


def _by_whole(whole: FloatArray, slopes: FloatArray, first_apart: bool) -> FloatArray:
    """(U, r) slopes by `whole` of a function of groups of directions, from those by Φ, (U, k).

    A group's part of N is P = Σ λ_i u_i u_iᵀ over its directions; with S = ∂/∂P its slopes are
    2 S Φ. The kept directions are one group, or two with the first apart. A change of N moves u_i
    of a group towards any u_j: ⟨S, dP⟩ = Σ_ij γ_ij S_ij dN_ij in the eigenvectors of N, with γ = 1
    within the group, and λ_i / (λ_i − λ_j) where u_j is outside.
    """
    k = slopes.shape[1]
    U, roots, V_T = svd(whole, full_matrices=False)
    values, S_U = roots**2, 0.5 * slopes / roots[:k]
    group = np.full(len(roots), 2)
    group[:k] = (np.arange(k) > 0) & first_apart
    is_outside = group[:, None] != group[:k]
    gap = np.where(is_outside, values[:k] - values[:, None], values[:k])
    gap = np.copysign(np.maximum(np.abs(gap), values[:k] / STEEPEST_MIX), gap)
    there = linalg.multiply(U.T, S_U)
    moved = there * values[:k] / gap  # (r, k)
    by_N = np.hstack([moved, np.zeros((len(roots), len(roots) - k))])
    by_N[:k] += np.where(is_outside, moved, 0.0).T
    outside_U = S_U - linalg.multiply(U, there)  # λ_j = 0 there
    found = linalg.multiply(U, by_N)
    found[:, :k] += outside_U
    return linalg.multiply(2.0 * found * roots, V_T)


class SharedSize(NamedTuple):
    """Bounds on what users share: the size of W, and the number of directions of users, if any.

    n_answers, sharing: m and ρ, which tell how much sharing a direction is worth. divides_items:
    whether directions but the first may have fewer columns of the items' factor.
    """

    size: int
    max_rank: int | None = None
    n_answers: float = 1.0
    sharing: float = 0.5
    divides_items: bool = True


MOST_COLUMNS = 64
"""Of the items' factor for directions but the first, if not all: products with more take longer
than sums over items."""
NEGLIGIBLE = 0.001
"""Variance of a difference, in units of an answer's noise, that need not be known to be shared."""


def factor_users(
    kernel: Kernel, users: Inputs, limits: SharedSize, items: FloatArray, tolerance: float
) -> UserFactor:
    """Pivoted Cholesky by columns: each pivot is the user of the largest residual variance.

    items: (n, r) the items' factor. It takes U × p numbers and U p² flops for p pivots. Where all
    directions with all columns are more than the limits, as many are kept as matter.
    """
    r, n_users = items.shape[1], len(users)
    most, fewest = max(1, limits.size // r), FEWEST_PIVOTS
    if limits.max_rank is not None:
        most, fewest = min(most, limits.max_rank), 0
    width = min(max(PIVOTS_A_DIRECTION * most, fewest), n_users)
    whole, order, left, is_exact = linalg.pivoted_columns(
        kernel.diag(users),
        lambda pivot: kernel(users, users.take(np.array([pivot])))[:, 0],
        tolerance,
        width,
    )
    rank = len(order)
    if rank <= most:
        return UserFactor(whole, order, None if is_exact else np.maximum(left, 0.0))
    _, roots, V_T = svd(whole, full_matrices=False)
    kept, depth = _kept(_losses(roots**2, items, limits, n_users), limits)
    rotation = V_T[:kept].T
    found = linalg.multiply(whole, rotation)
    missed = np.maximum(kernel.diag(users) - linalg.row_squares(found), 0.0)
    return UserFactor(found, order, missed, whole, rotation, depth if depth < r else None)


def _losses(
    directions: FloatArray, items: FloatArray, limits: SharedSize, n_users: int
) -> FloatArray:
    """(p, r): by how much the variance of a difference grows where a column of the items' factor in
    a direction is each user's own instead of shared.

    directions: Σ_u φ_uk² of each, the largest first. A difference has the prior variance
    v_kj = 2 ρ λ_k κ_j / (U n) by that column, λ_k and κ_j being sums of squares. All answers tell
    m v_kj about it, and one user's own answers o_j = (m/U) 2 (1−ρ) κ_j / n; noise has variance one.
    """
    n, m, rho = len(items), limits.n_answers, limits.sharing
    columns = linalg.column_squares(items) / n
    v = 2.0 * rho * np.outer(directions / n_users, columns)
    own = 1.0 + 2.0 * (1.0 - rho) * m / n_users * columns
    return np.asarray(v / own - v / (own + m * v))


def _kept(losses: FloatArray, limits: SharedSize) -> tuple[int, int]:
    """How many directions to keep, and how many columns for all but the first: the fewest whose
    loss is negligible, or those of least loss. A number of directions that was given is kept.

    >>> losses = np.array([[9.0, 9.0], [4.0, 0.1], [0.1, 0.001]])
    >>> [_kept(losses, SharedSize(size)) for size in (2, 3, 4)]
    [(1, 2), (2, 1), (2, 2)]
    """
    p, r = losses.shape
    most = p if limits.max_rank is None else min(limits.max_rank, p)
    if limits.max_rank is not None and most * r <= limits.size:
        return most, r  # as was asked for
    beyond = losses[:, ::-1].cumsum(axis=1)[:, ::-1]  # of the columns from each on
    without = np.append(beyond[::-1, 0].cumsum()[::-1], 0.0)  # of the directions from each on
    found, depth = [], r
    while depth:
        kept = np.arange(1, 1 + min(most, 1 + max(0, limits.size - r) // depth))
        tail = beyond[1:, depth].cumsum() if depth < r else np.zeros(p - 1)
        loss = without[kept] + np.append(0.0, tail)[kept - 1]
        enough = np.flatnonzero(loss <= max(NEGLIGIBLE, 1.05 * loss.min()))[0]
        at = max(NEGLIGIBLE, float(loss[enough])), int(enough) * depth
        found.append((*at, int(kept[enough]), -depth))
        # few depths, so that few hyperparameters lie between two of them
        depth = min(depth // 2, MOST_COLUMNS) if limits.divides_items else 0
    _, _, most, depth = min(found)
    return most, -depth


# Very many items

MOST_ITEMS = 5_000
"""Up to so many, arrays of items × items are made."""
FEW_COLUMNS = 300
"""Of the factor of more items."""
ROWS_SIZE = 2**26
"""Most numbers about W by rows of the factor: r_u² r n."""


def are_very_many(items: Inputs) -> bool:
    """Whether no array of items × items is made."""
    return len(items) > MOST_ITEMS


def matrix_size(items: Inputs) -> int:
    """Of the largest matrices of a fit."""
    return FEW_COLUMNS if are_very_many(items) else len(items)


def size_by_rows(factor: FloatArray, size: int) -> int:
    """The bound on the size of W by which sums over rows of the factor fit in memory, too."""
    n, r = factor.shape
    return min(size, r * max(1, int(np.sqrt(ROWS_SIZE / (n * r)))))


# The shared part: W, its prior through the items' factor, and its posterior.
#
# With G = √ρ Φ and G₁ its first columns, W has (r_u, r) entries, of which the first row and the
# first columns are there. S = I + Σ_u D_uᵀ R_u D_u with D_u the columns φ_u0 G, φ_u1 G₁, φ_u2 G₁, …
# Of users who share one direction, or of as many columns as items, Σ φφᵀ ⊗ R is added up over items
# and contracted with G once. Else only the first direction is, and the others are contracted user
# by user, so that no array of (r_u², n, n) exists. Of very many items Σ φφᵀ ⊗ GᵀR is added up over
# the rows of G. Where items fall into parts that nothing ties together and users share one
# direction, S falls into parts, too.


class SharedPart(NamedTuple):
    """Connected items, the columns of the factor that belong to them, and its block G.

    there: the block where W's matrices live. weights: (r,) its diagonal, where it has nothing else,
    as independent items have.
    """

    items: IntArray
    columns: IntArray
    factor: FloatArray
    there: FloatArray
    weights: FloatArray | None

    @classmethod
    def of(cls, items: IntArray, columns: IntArray, factor: FloatArray, device: Device) -> Self:
        """From the whole factor."""
        block = factor[np.ix_(items, columns)]
        weights = block.diagonal().copy()
        is_plain = device is CPU and np.count_nonzero(block) == len(items) == len(columns)
        known = weights if is_plain and weights.all() else None
        return cls(items, columns, block, device.matrix(block), known)

    def before(self, stack: FloatArray) -> FloatArray:
        """Gᵀ X of matrices (…, n, n)."""
        if self.weights is not None:
            return self.weights[:, None] * stack
        return batched.multiply_stack(self.there.T, stack)

    def within(self, stack: FloatArray) -> FloatArray:
        """Gᵀ X G of matrices (…, n, n)."""
        if self.weights is not None:
            return np.outer(self.weights, self.weights) * stack
        return batched.multiply_stack(self.before(stack), self.there)

    def around(self, stack: FloatArray) -> FloatArray:
        """G C Gᵀ of matrices (…, r, r)."""
        if self.weights is not None:
            return self.within(stack)
        return batched.multiply_stack(batched.multiply_stack(self.there, stack), self.there.T)


class Shared(NamedTuple):
    """Matrices about W by pairs of its directions, of which d others come after the first.

    Over items, common: (r_u², n, n), of information Σ φ_u φ_uᵀ ⊗ R_u, of the covariance C of W
    G C_ij Gᵀ. Else common is that of the first direction, (1, n, n). With φ the others, cross of
    information is (d, s, n) Σ φ_u0 φ_u G₁ᵀR_u, others (d², s, s) Σ φ_u φ_uᵀ G₁ᵀR_u G₁; cross of the
    covariance is (n, d·s) G C₀ᵢ, others C_ij.

    By rows of G there is no common; cross is (n, r_u²·r), of information Σ φ_u φ_uᵀ ⊗ R_u G, of the
    covariance G C_ij with others (r_u², r, r) C_ij.
    """

    common: FloatArray
    cross: FloatArray
    others: FloatArray


@dataclass(frozen=True)
class SharedPrior:
    """W ~ N(0, I), seen as G Wᵀ. factor: G, (n, r); rank: r_u; depth: s, the columns that
    directions but the first have; device: of users' stacks, of the information about W, and of its
    covariance; by_rows: whether sums are over the rows of G.
    """

    factor: FloatArray
    rank: int
    depth: int
    parts: tuple[SharedPart, ...]
    device: Device = CPU
    by_rows: bool = False

    @classmethod
    def of(
        cls,
        factor: FloatArray,
        rank: int,
        parts: tuple[IntArray, ...] | None,
        device: Device = CPU,
        depth: int | None = None,
        by_rows: bool = False,
    ) -> "SharedPrior":
        """From the items of each part; None: all in one part. See `benchmarks/paths.py`."""
        n, r = factor.shape
        owner, split = np.zeros(n, dtype=np.intp), []
        if parts is not None and rank == 1:
            for number, items in enumerate(parts):
                owner[items] = number
            about = owner[np.abs(factor).argmax(axis=0)]
            split = [(items, np.flatnonzero(about == i)) for i, items in enumerate(parts)]
            split = [(items, columns) for items, columns in split if len(columns)]
        if len(split) < 2:
            split = [(np.arange(n), np.arange(r))]
        found = tuple(SharedPart.of(*each, factor, device) for each in split)
        return cls(factor, rank, r if depth is None else min(depth, r), found, device, by_rows)

    @cached_property
    def mask(self) -> BoolArray:
        """(r_u, r) which entries W has."""
        return entries(self.rank, self.factor.shape[1], self.depth)

    @property
    def over_items(self) -> bool:
        """Whether information is added up over items, not over columns of the factor."""
        n, r = self.factor.shape
        return not self.by_rows and (self.rank == 1 or self.depth == r == n)

    @property
    def flops(self) -> float:
        """Of the dense algebra with S."""
        others = (self.rank - 1) * self.depth
        return float(sum((len(part.columns) + others) ** 3 for part in self.parts))

    def nothing(self) -> Shared:
        """No information."""
        n, d, s = len(self.factor), self.rank - 1, self.depth
        shapes: tuple[tuple[int, ...], ...] = (1, n, n), (d, s, n), (d * d, s, s)
        if self.over_items:
            shapes = (self.rank**2, n, n), (0, 0, n), (0, 0, 0)
        if self.by_rows:
            shapes = (0, n, n), (n, self.rank**2 * s), (0, 0, 0)
        return Shared(*(self.device.matrix(np.zeros(shape)) for shape in shapes))

    @cached_property
    def _first_there(self) -> FloatArray:
        return self.device.matrix(np.ascontiguousarray(self.factor[:, : self.depth]))

    def first_columns(self, block: Block) -> Iterator[tuple[slice, FloatArray]]:
        """A block's users a few at a time, with G₁ at their points, (k, p, s); none where sums are
        over items."""
        if self.over_items:
            return
        k, p = block.shape
        wide = self.rank**2 if self.by_rows else self.rank - 1
        step = max(1, self.device.stack_size // (p * wide * self.depth))
        for start in range(0, k, step):
            some = slice(start, min(start + step, k))
            yield some, block.rows(self._first_there, some)

    def pick(self, block: Block, phi: FloatArray, covariance: Shared) -> FloatArray:
        """(k, p, p): D_u C D_uᵀ of a block's users at their points."""
        if self.by_rows:
            outer = outer_products(phi)
            some_rows = (
                (batched.mix_rows(self.cross_rows(block, covariance, some), outer[some]), G)
                for some, G in self.first_columns(block)
            )
            return batched.join_stacks(*(batched.multiply_stack(x, G.mT) for x, G in some_rows))
        weights = outer_products(phi) if self.over_items else phi[:, :1] ** 2
        picked = block.weighted_pick(weights, covariance.common)
        for some, G in self.first_columns(block):
            beside, within = self.mixed(block, phi, covariance, some)
            half = beside + 0.5 * batched.multiply_stack(G, within)
            through = batched.multiply_stack(half, G.mT)
            picked[some] += through + through.mT
        return picked

    def mixed(
        self, block: Block, phi: FloatArray, covariance: Shared, some: slice
    ) -> tuple[FloatArray, FloatArray]:
        """With φ the other directions of some users: Σ_i φ_u0 φ_ui G C₀ᵢ at their points,
        (k, p, s), and Σ_ij φ_ui φ_uj C_ij, (k, s, s)."""
        first, rest = phi[some, :1], phi[some, 1:]
        rows = self.cross_rows(block, covariance, some)
        within = batched.mix_stack(covariance.others, outer_products(rest))
        return batched.mix_rows(rows, first * rest), within

    def cross_rows(self, block: Block, covariance: Shared, some: slice) -> FloatArray:
        """(k, p, d·s): G C₀ᵢ of each other direction at the points of some users."""
        return block.rows(covariance.cross, some)

    def given(self, information: Shared, border: "Border | None" = None) -> "SharedState":
        """The posterior of W, and of effects beside it."""
        border = NO_EFFECTS if border is None else border
        factors = []
        for part in self.parts:
            S = self._precision(information, part)
            if len(border.corner):
                pull = linalg.multiply(border.cross.reshape(-1, len(part.items)), part.factor)
                pull = pull.reshape(-1, *self.mask.shape)[:, self.mask]
                S = linalg.bordered(S, pull.T, border.corner)
            factors.append(linalg.cholesky(S))
        lowers, jitters = zip(*factors, strict=True)
        return SharedState(self, information, lowers, max(jitters), border)

    def over_part(self, information: Shared, part: SharedPart) -> FloatArray:
        """What is added up over items, about the items of one part; (k, k, n, n)."""
        found = information.common
        if len(self.parts) > 1:
            found = found[:, part.items[:, None], part.items]
        k = self.rank if self.over_items else 1
        return found.reshape(k, k, *found.shape[1:])

    def _precision(self, information: Shared, part: SharedPart) -> FloatArray:
        """The block of S that is about one part; of all of it the lower triangle."""
        if self.by_rows:
            blocks = linalg.multiply(information.cross.T, part.there)
            S = batched.join_blocks(blocks.reshape(self.rank, self.rank, *2 * (self.depth,)))
            linalg.add_to_diagonal(S, 1.0)
            return S
        S = batched.join_blocks(part.within(self.over_part(information, part)))
        if not self.over_items:
            d, s, n = information.cross.shape
            beside = linalg.multiply(information.cross.reshape(d * s, n), part.there)
            rest = batched.join_blocks(information.others.reshape(d, d, s, s))
            S = linalg.bordered(rest, beside, S)
        linalg.add_to_diagonal(S, 1.0)
        return S


class SharedSum:
    """Information about W, added up over blocks of users."""

    def __init__(self, prior: SharedPrior) -> None:
        self.prior, self._sum = prior, prior.nothing()
        self._within: list[tuple[FloatArray, FloatArray]] = []
        self._size = 0

    def add(self, block: Block, phi: FloatArray, R: FloatArray) -> None:
        """A block's users: φ (k, r_u) and R (k, p, p)."""
        common, cross, _ = self._sum
        if self.prior.by_rows:
            outer = outer_products(phi)
            for some, G in self.prior.first_columns(block):
                block.add_rows(cross, batched.multiply_stack(R[some], G), outer[some], some)
            return
        weights = outer_products(phi) if self.prior.over_items else phi[:, :1] ** 2
        common += block.weighted_sum(weights, R)
        for some, G in self.prior.first_columns(block):
            first, rest = phi[some, :1], phi[some, 1:]
            through = batched.multiply_stack(R[some], G)
            cross += block.collect_rows(through, first * rest, some)
            # one product for many blocks: the sum may be larger than what a block adds to it
            self._within.append((batched.multiply_stack(G.mT, through), outer_products(rest)))
            self._size += len(G) * G.shape[2] ** 2
            if self._size > self.prior.device.stack_size:
                self._add_within()

    def _add_within(self) -> None:
        if self._within:
            within, weights = (
                batched.join_stacks(*each) for each in zip(*self._within, strict=True)
            )
            others = self._sum.others
            others += batched.sum_stack(within, weights).reshape(others.shape)
            self._within, self._size = [], 0

    def total(self) -> Shared:
        """Of all that were added."""
        self._add_within()
        return self._sum


class Border(NamedTuple):
    """Information about effects: cross (q, r_u, n), their coupling with W before G, and corner
    (q, q), the effects' precision, both with all deviations integrated out."""

    cross: FloatArray
    corner: FloatArray


NO_EFFECTS = Border(np.zeros((0, 1, 0)), np.zeros((0, 0)))


@dataclass(frozen=True)
class SharedState:
    """The posterior of W: the information about it, and the Cholesky factor of S of each part.

    The entries of W that are there stand row by row. border: of q effects, whose weights b then
    stand before those of W in the one factor.
    """

    prior: SharedPrior
    information: Shared
    lowers: tuple[FloatArray, ...]
    jitter: float
    border: Border

    @property
    def n_effects(self) -> int:
        """q."""
        return len(self.border.corner)

    @property
    def log_det(self) -> float:
        """log |S|."""
        return sum(map(linalg.log_det_lower, self.lowers))

    @property
    def lower(self) -> FloatArray:
        """Cholesky factor of the whole S."""
        if len(self.lowers) == 1:
            return linalg.to_numpy(linalg.trailing_block(self.lowers[0], self.n_effects))
        whole = np.eye(self.prior.factor.shape[1])
        for part, lower in zip(self.prior.parts, self.lowers, strict=True):
            whole[np.ix_(part.columns, part.columns)] = linalg.to_numpy(lower)
        return whole

    def solve(self, collected: FloatArray, pull: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Effects b (q,) and W (r_u, r): S⁻¹ applied to what pulls at the effects, (q,), and to
        Σ_u φ_u x_uᵀ G, given the (r_u, n) before G."""
        q, effects = len(pull), pull
        shared = np.zeros(self.prior.mask.shape)
        for part, lower in zip(self.prior.parts, self.lowers, strict=True):
            own = linalg.multiply(np.ascontiguousarray(collected[:, part.items]), part.factor)
            mask = self.prior.mask[:, part.columns]
            right = np.append(pull, own[mask])
            w = linalg.solve_lower(lower, linalg.solve_lower(lower, right), transposed=True)
            own[:] = 0.0
            own[mask] = w[q:]
            effects, shared[:, part.columns] = w[:q], own
        return effects, shared

    @cached_property
    def effect_cov(self) -> tuple[FloatArray, FloatArray]:
        """Covariances of effects, (q, q), and of effects with W, (q, r_u, r)."""
        q, (lower,) = self.n_effects, self.lowers
        half = linalg.solve_lower(lower, np.eye(len(lower), q))
        cov = linalg.to_numpy(linalg.solve_lower(lower, half, transposed=True))
        with_W = np.zeros((q, *self.prior.mask.shape))
        with_W[:, self.prior.mask] = cov[q:].T
        return cov[:q], with_W

    @cached_property
    def covariance(self) -> Shared:
        """Of W, effects being known."""
        prior, total = self.prior, self.prior.nothing() if len(self.lowers) > 1 else None
        for part, joint in zip(prior.parts, self.lowers, strict=True):
            lower, r = linalg.trailing_block(joint, self.n_effects), len(part.columns)
            C = linalg.mirrored(linalg.inverse_of_lower(lower))
            if prior.by_rows:
                others = batched.split_blocks(C, prior.rank)
                beside = linalg.contiguous(others.swapaxes(0, 1).reshape(r, -1))
                cross = linalg.contiguous(linalg.multiply(part.there, beside))
                return Shared(C[:0, None, :0], cross, others)
            flat = batched.split_blocks(C, prior.rank) if prior.over_items else C[None, :r, :r]
            flat = part.around(flat)
            if total is not None:
                total.common[:, part.items[:, None], part.items] = flat
        return total or self._arranged(flat, C)

    @cached_property
    def marginal(self) -> tuple[Shared, FloatArray]:
        """Covariance of W without its `common`, effects being unknown; with these, (q, d, s)."""
        prior = self.prior
        q, d = self.n_effects, prior.rank if prior.by_rows else prior.rank - 1
        if not q or prior.over_items:
            return self.covariance, np.zeros((0, d, prior.depth))
        C = linalg.mirrored(linalg.inverse_of_lower(self.lowers[0] + 0.0))
        if prior.by_rows:
            found = self.covariance._replace(others=batched.split_blocks(C[q:, q:], d))
            return found, linalg.to_numpy(C[:q, q:]).reshape(q, d, -1)
        with_effects = linalg.to_numpy(C[:q, q + self.prior.factor.shape[1] :])
        found = self._arranged(self.covariance.common, C[q:, q:])
        return found, with_effects.reshape(q, d, -1)

    def _arranged(self, common: FloatArray, C: FloatArray) -> Shared:
        """By directions, from the covariance C of all of W; common: what is over items."""
        prior, (part,) = self.prior, self.prior.parts
        r = prior.factor.shape[1]
        if prior.over_items:
            return Shared(common, C[:0, :0], C[:0, None, :0])
        cross = linalg.contiguous(linalg.multiply(part.there, C[:r, r:]))
        return Shared(common, cross, batched.split_blocks(C[r:, r:], prior.rank - 1))


def entries(rank: int, r: int, depth: int) -> BoolArray:
    """(r_u, r) which entries W has: the first row, and the first columns."""
    found = np.ones((rank, r), dtype=bool)
    found[1:, depth:] = False
    return found


def variance_by_column(
    personal: FloatArray, beyond: FloatArray | float, r: int, depth: int
) -> FloatArray:
    """(k, r) variances of users' own weights of Φ's columns: a_u, and a_u + c_u from `depth` on."""
    found = np.repeat(personal[:, None], r, axis=1)
    found[:, depth:] += np.reshape(beyond, (-1, 1))
    return found


# One block of users


class Eliminated(NamedTuple):
    """A block's users with their deviations integrated out: see the module's head.

    L: (k, p, p) of the sites, or its diagonals (k, p); half: (k, q, p) with C = halfᵀ half;
    log_det: Σ log|I + FᵀLF|.
    """

    L: FloatArray
    half: FloatArray
    log_det: float

    @property
    def C(self) -> FloatArray:
        """(k, p, p) covariance of the deviations when W is known."""
        return batched.multiply_stack(self.half.mT, self.half)

    def left_by(self, C: FloatArray) -> FloatArray:
        """(k, p, p): J = I − C L."""
        J = _times(-C, self.L)
        batched.add_identity(J)
        return J

    @property
    def R(self) -> FloatArray:
        """(k, p, p): L − L C L; as L J it would carry the rounding of C where L is zero."""
        pulled = _times(self.half, self.L)
        lost = batched.multiply_stack(pulled.mT, pulled)
        if self.L.ndim == 3:
            R: FloatArray = self.L - lost
            return 0.5 * (R + R.mT)
        diagonal = np.arange(self.L.shape[1])
        lost[:, diagonal, diagonal] -= self.L
        return -0.5 * (lost + lost.mT)

    def deviation(self, shift: FloatArray) -> FloatArray:
        """(k, p): C x."""
        return batched.apply_stack(self.half.mT, batched.apply_stack(self.half, shift))

    def kept(self, shared: FloatArray) -> FloatArray:
        """(k, p): J x, what the sites leave of a shared utility."""
        return shared - self.deviation(self.pulled(shared))

    def forced(self, shift: FloatArray) -> FloatArray:
        """(k, p): Jᵀ x."""
        return shift - self.pulled(self.deviation(shift))

    def pulled(self, x: FloatArray) -> FloatArray:
        """(k, p): L x."""
        return self.L * x if self.L.ndim == 2 else batched.apply_stack(self.L, x)


def _times(A: FloatArray, L: FloatArray) -> FloatArray:
    """A L of each, where L may be diagonal."""
    return A * L[:, None, :] if L.ndim == 2 else batched.multiply_stack(A, L)


def eliminate(L: FloatArray, F: FloatArray) -> Eliminated:
    """Integrate the deviations out: L is (k, p, p) or (k, p), F is (k, p, q) or (1, p, q)."""
    F_T = F.mT
    B = batched.multiply_stack(_times(F_T, L), F)
    batched.add_identity(B)
    lower = batched.cholesky_stack(B, "a user's posterior precision")
    return Eliminated(L, batched.solve_stack(lower, F_T), batched.log_det_stack(lower))


def outer_products(phi: FloatArray) -> FloatArray:
    """(k, q²) flattened φ_u φ_uᵀ of each row."""
    return (phi[:, :, None] * phi[:, None, :]).reshape(len(phi), -1)


@dataclass(frozen=True)
class ArrowPrior:
    """The factored prior of all users over all items.

    items: K_x = Φ Φᵀ; users: the rows φ_u and the variances that they leave out; sharing: ρ;
    arranged: the users in blocks, and the parts of items that nothing ties together; device: where
    the arrays of users and S live (those of items alone are NumPy's); shown: points of effects;
    by_rows: whether items are too many for arrays of items × items.
    """

    items: linalg.PivotedCholesky
    users: UserFactor
    sharing: float
    arranged: Arrangement
    device: Device = CPU
    shown: Covariates | None = None
    by_rows: bool = False
    space: ClassVar[str] = "users × items"

    @property
    def rank(self) -> int:
        """Of the items' factor."""
        return int(self.items.rows.shape[1])

    @property
    def residual(self) -> float:
        """The largest variance that the users' factor leaves out, or the items'."""
        return max(self.users.residual, self.items.residual if self.by_rows else 0.0)

    @cached_property
    def item_factor(self) -> FloatArray:
        """(n, r) Φ."""
        return self.items.in_given_order()

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The users in blocks."""
        return self.arranged.blocks

    def coarse(self, tolerance: float) -> "ArrowPrior":
        """The same prior with only the item pivots that a coarser tolerance needs."""
        rows = self.items.rows[:, : linalg.rank_at(self.items.rows, tolerance)]
        return replace(self, items=self.items._replace(rows=np.ascontiguousarray(rows)))

    def without_users(self) -> "ArrowPrior":
        """The prior of the items, with the one φ that all users have."""
        users = self.users._replace(rows=self.users.rows[:1])
        return replace(self, users=users, arranged=Arrangement((), None))

    @cached_property
    def item_covariance(self) -> FloatArray:
        """Φ Φᵀ, (n, n)."""
        return linalg.gram(self.item_factor.T)

    @cached_property
    def tied(self) -> IntArray:
        """(n,) labels of items that the prior ties together."""
        if self.by_rows:
            return np.zeros(len(self.item_factor), dtype=np.intp)
        return tied_items(self.item_covariance)

    @property
    def depth(self) -> int:
        """s, how many columns of Φ all directions have."""
        depth = self.users.depth
        return self.rank if depth is None else min(depth, self.rank)

    @cached_property
    def shared(self) -> SharedPrior:
        """The prior of W, seen through √ρ Φ."""
        factor = np.sqrt(self.sharing) * self.item_factor
        parts = self.arranged.parts if self.shown is None else None  # effects tie all together
        how = (self.users.rows.shape[1], parts, self.device, self.depth, self.by_rows)
        return SharedPrior.of(factor, *how)

    @property
    def effect_rows(self) -> FloatArray:
        """(q, m) weights of effects in the rows, in units of their prior."""
        return np.zeros((0, 1)) if self.shown is None else self.shown.scaled

    @cached_property
    def is_kept(self) -> bool:
        """Whether the arrays of all blocks fit in memory."""
        size = sum(k * p * p for k, p in (block.shape for block in self.blocks))
        return bool(size <= self.device.kept_size)

    def personal(self, block: Block) -> FloatArray:
        """(k,) a_u, variance of each user's deviation in units of K_x; (1,) if all are equal."""
        missed = self.users.missed
        if missed is None:
            return np.array([1.0 - self.sharing])
        return 1.0 - self.sharing + self.sharing * missed[block.users]

    def beyond(self, block: Block) -> FloatArray | None:
        """(k,) c_u, the same in units of Φ₂Φ₂ᵀ; None where all directions have all columns."""
        if self.depth == self.rank:
            return None
        return self.sharing * linalg.row_squares(self.users.rows[block.users, 1:])

    @cached_property
    def _users_there(self) -> FloatArray:
        return self.device.matrix(self.users.rows)

    @cached_property
    def _items_there(self) -> FloatArray:
        return self.device.matrix(self.item_factor)

    @cached_property
    def covariance_there(self) -> FloatArray:
        """Φ Φᵀ where stacks live."""
        return self.device.matrix(self.item_covariance)

    @cached_property
    def beyond_there(self) -> FloatArray:
        """Φ₂Φ₂ᵀ where stacks live."""
        return self.device.matrix(linalg.gram(self.item_factor[:, self.depth :].T))

    def phi(self, block: Block) -> FloatArray:
        """(k, r_u) rows of a block's users."""
        return self._users_there[block.users]

    def _local(self, block: Block) -> FloatArray:
        """(k, p, min(p, r)) with F Fᵀ the prior covariance of the users' deviations at their own
        points, or (1, …) if those are the same.

        Few points have a triangle of their own; where K is singular there, it comes from Φ's rows.
        """
        k, p = block.shape
        personal, beyond = self.personal(block), self.beyond(block)
        some = slice(1) if block.same_items and beyond is None else slice(k)
        F = None
        if self.by_rows:
            if p < self.rank:
                rows = block.rows(self._items_there, some)
                F = batched.try_cholesky_stack(batched.multiply_stack(rows, rows.mT))
        elif p < self.rank:
            K = block.within(self.covariance_there, some)
            if beyond is not None:
                K = batched.scale_stack(K, personal)
                K = K + batched.scale_stack(block.within(self.beyond_there, some), beyond)
            F = batched.try_cholesky_stack(K)
        if F is None:
            rows = block.rows(self._items_there, some)
            if beyond is not None:
                every = np.broadcast_to(personal, (k,))
                variance = variance_by_column(every, beyond, self.rank, self.depth)
                rows = batched.scale_columns_stack(rows, np.sqrt(variance))
            F = batched.triangle_stack(rows)
        return F if beyond is not None else batched.scale_stack(F, np.sqrt(personal))

    @cached_property
    def _kept_factors(self) -> tuple[FloatArray, ...]:
        return tuple(map(self._local, self.blocks))

    def local_factor_of(self, number: int) -> FloatArray:
        """√(1−ρ) Φ, or as much as the user deviates, at the items of a block's users."""
        return self._kept_factors[number] if self.is_kept else self._local(self.blocks[number])

    @property
    def flops(self) -> float:
        """Of a sweep's dense algebra: some ten products of p × p matrices a user, and S."""
        own = float(sum(10 * k * p**3 for k, p in (block.shape for block in self.blocks)))
        return linalg.relative_flops(self._items_there, own + self.shared.flops)

    def refresh(self, weight: FloatArray, shift: FloatArray) -> "ArrowState":
        """Condition on sites: what the loop asks of a prior."""
        information, log_det, z = SharedSum(self.shared), 0.0, self.effect_rows
        eliminated: list[Eliminated] = []
        pulls: list[tuple[Pull, ...]] = []
        there = self.device.matrix(weight)
        drawn = [self.device.matrix(weight * row) for row in z]
        cross = np.zeros((len(z), self.users.rows.shape[1], len(self.item_factor)))
        corner = np.eye(len(z)) + linalg.multiply(weight * z, z.T)
        for number, block in enumerate(self.blocks):
            part = eliminate(block.laplacian(there), self.local_factor_of(number))
            phi = self.phi(block)
            information.add(block, phi, part.R)
            log_det += part.log_det
            if self.is_kept:
                eliminated.append(part)
            X = [block.adjoint(row) for row in drawn]
            pulls.append(tuple((x, part.deviation(x)) for x in X))
            for k, (x, deviation) in enumerate(pulls[-1]):
                cross[k] += block.collect(phi, part.forced(x))
                corner[k] -= [linalg.inner(deviation, other) for other in X]
        shared = self.shared.given(information.total(), Border(cross, corner))
        return ArrowState(self, weight, shift, tuple(eliminated), log_det, shared, tuple(pulls))


Pull = tuple[FloatArray, FloatArray]
"""Of one effect at the points of a block's users: X = Aᵀ D z and C X, (k, p) each."""


class Response(NamedTuple):
    """Σ x for a shift x of the rows: `effects` (q,), `shared` (r_u, r) its part in W; own: per
    block the shift that is left when effects are known, (k, p)."""

    effects: FloatArray
    shared: FloatArray
    own: tuple[FloatArray, ...]


@dataclass(frozen=True)
class ArrowState:
    """Posterior given sites, weight and shift being (m,).

    eliminated: each block's users, where they are kept; own_log_det: of their deviations; shared:
    the posterior of W; pulls: of each block's users and each effect.
    """

    prior: ArrowPrior
    weight: FloatArray
    shift: FloatArray
    eliminated: tuple[Eliminated, ...]
    own_log_det: float
    shared: SharedState
    pulls: tuple[tuple[Pull, ...], ...]

    @property
    def mean(self) -> FloatArray:
        """(m,) posterior means of the edges' differences."""
        return self._edges[0]

    @property
    def var(self) -> FloatArray:
        """(m,) posterior variances of the edges' differences."""
        return self._edges[1]

    @property
    def log_det(self) -> float:
        """log |I + K L|: the deviations' part and the shared part."""
        return self.own_log_det + self.shared.log_det

    @property
    def jitter(self) -> float:
        """What had to be added to the diagonal of S."""
        return self.shared.jitter

    def adjoint(self, y: FloatArray) -> tuple[FloatArray, ...]:
        """Aᵀ y of each block's users, (k, p), for y (m,)."""
        there = self.prior.device.matrix(y)
        return tuple(block.adjoint(there) for block in self.prior.blocks)

    @cached_property
    def quadratic(self) -> float:
        """bᵀ Σ b."""
        return float(np.einsum("i,i->", self.shift, self.mean))

    @cached_property
    def response(self) -> Response:
        """Of the sites' own shift: the posterior means of effects and of W."""
        return self.response_to(self.shift)

    def each(self) -> Iterator[tuple[int, Block, Eliminated]]:
        """Every block with its users eliminated, computed again where it was not stored."""
        if self.eliminated:
            kept = zip(self.prior.blocks, self.eliminated, strict=True)
            yield from ((number, *both) for number, both in enumerate(kept))
            return
        there = self.prior.device.matrix(self.weight)
        for number, block in enumerate(self.prior.blocks):
            factor = self.prior.local_factor_of(number)
            yield number, block, eliminate(block.laplacian(there), factor)

    def shared_at(self, block: Block) -> FloatArray:
        """(k, p, p) covariance of the shared utilities of a block's users at their points."""
        return self.prior.shared.pick(block, self.prior.phi(block), self.shared.covariance)

    def collect(self, vectors: tuple[FloatArray, ...]) -> FloatArray:
        """(r_u, n): Σ_u φ_u x_uᵀ over all users' vectors, given per block as (k, p)."""
        total = np.zeros((self.prior.users.rows.shape[1], len(self.prior.item_factor)))
        for block, x in zip(self.prior.blocks, vectors, strict=True):
            total += block.collect(self.prior.phi(block), x)
        return total

    def response_to(self, y: FloatArray) -> Response:
        """Apply the posterior covariance to a shift of the rows, (m,)."""
        own, forced = self.adjoint(y), []
        pull = linalg.multiply(self.prior.effect_rows, y)
        for number, _, part in self.each():
            forced.append(part.forced(own[number]))
            pull -= [linalg.inner(deviation, own[number]) for _, deviation in self.pulls[number]]
        effects, shared = self.shared.solve(self.collect(tuple(forced)), pull)
        for k, b in enumerate(effects):
            own = tuple(
                left - float(b) * mine[k][0] for left, mine in zip(own, self.pulls, strict=True)
            )
        return Response(effects, shared, own)

    def residual(self, response: Response) -> tuple[FloatArray, ...]:
        """Aᵀ (x − D A Σ x) of each block's users, for a shift x of the rows."""
        utilities, residual = self.shared_utilities(response.shared), []
        for number, block, part in self.each():
            utility = block.pick(self.prior.phi(block), utilities)
            left = part.forced(response.own[number]) - part.pulled(part.kept(utility))  # R = L J
            residual.append(left)
        return tuple(residual)

    def _utilities(self, response: Response) -> Iterator[tuple[Block, Eliminated, FloatArray]]:
        """Every block with its users eliminated, and their utilities (k, p), effects apart."""
        utilities = self.shared_utilities(response.shared)
        for number, block, part in self.each():
            utility = part.kept(block.pick(self.prior.phi(block), utilities))
            yield block, part, utility + part.deviation(response.own[number])

    def covariance_times(self, y: FloatArray) -> FloatArray:
        """A Σ Aᵀ y, (m,)."""
        response = self.response_to(y)
        answer = self.prior.device.full((1, len(y)), 0.0)
        for block, _, utility in self._utilities(response):
            block.put(answer, (block.forward(utility),))
        return linalg.to_numpy(answer)[0] + self._of_effects(response.effects)

    def _of_effects(self, effects: FloatArray) -> FloatArray:
        """(m,) zᵀ b."""
        return linalg.multiply(self.prior.effect_rows.T, effects)

    def shared_utilities(self, shared: FloatArray) -> FloatArray:
        """(r_u, n): √ρ Φ Wᵀ of each user feature, for W = shared (r_u, r)."""
        return self.prior.device.matrix(linalg.multiply(shared, self.prior.shared.factor.T))

    @cached_property
    def _edges(self) -> tuple[FloatArray, FloatArray]:
        mean, var = self.edges_given(self.response)
        return mean + self._of_effects(self.response.effects), self._with_effects(var)

    def _with_effects(self, var: FloatArray) -> FloatArray:
        """(m,) var + 2 tᵀ Σ_bs Jᵀ Aᵀ + tᵀ Σ_bb t, t = z − A C X: the effects' uncertainty, too."""
        prior, q, m = self.prior, self.shared.n_effects, len(var)
        if not q:
            return var
        cov, with_shared = self.shared.effect_cov
        wide = [self.shared_utilities(each) for each in with_shared]
        found = prior.device.full((2 * q, m), 0.0)
        for number, block, part in self.each():
            phi = prior.phi(block)
            own = [block.forward(deviation) for _, deviation in self.pulls[number]]
            cross = [block.forward(part.kept(block.pick(phi, each))) for each in wide]
            block.put(found, (*own, *cross))
        given, answer = np.split(linalg.to_numpy(found), 2)
        t = prior.effect_rows - given
        return var + np.einsum("qm,qm->m", t, 2.0 * answer + linalg.multiply(cov, t))

    def edges_given(self, response: Response) -> tuple[FloatArray, FloatArray]:
        """(m,) means and variances of the differences of utilities, effects apart, where W and
        users' own shifts are those of a response."""
        moments = self.prior.device.full((2, len(self.weight)), 0.0)
        for block, part, utility in self._utilities(response):
            C = part.C
            found = block.moments(utility, C, part.left_by(C), self.shared_at(block))
            block.put(moments, found)
        mean, var = linalg.to_numpy(moments)
        return mean, var
