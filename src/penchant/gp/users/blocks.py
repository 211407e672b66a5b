"""Users in stacks: those who compared equally many items form one batch.

A user's comparisons touch only p of the n items, and all that inference does to one user happens
on those p. Users with the same p form blocks, so that NumPy's stacked routines replace a loop.
"""

from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar, NamedTuple

import numpy as np

from penchant.data import components
from penchant.errors import NumericalError
from penchant.numerics.batched import StackPlaces, multiply_stack, row_products_stack
from penchant.numerics.dispatch import CPU, Device
from penchant.numerics.types import BoolArray, FloatArray, IntArray

SMALLEST_VARIANCE = 1e-12
"""Of a difference, relative to the largest variance or to the noise of an answer, whichever is
less: below it two items are the same."""
WIDEST_PRIOR = 1e6
"""Largest variance of a utility: beyond it rounding costs a probability more than 1e-4."""


@dataclass(frozen=True, eq=False)
class Block(StackPlaces):
    """k users, or parts of users, who compared p items each: these are its points.

    users: (k,) positions among all users, repeated where a user is in parts. What a method returns
    with an axis of users lives where its argument does; see `numerics.batched`.
    """

    users: IntArray

    @classmethod
    def silent(cls, k: int, n_items: int) -> "Block":
        """k users who compared nothing."""
        nothing = np.zeros(0, dtype=np.intp)
        items = np.zeros((k, 0), dtype=np.intp)
        return cls(items, nothing, nothing, nothing, nothing, n_items, np.arange(k))

    @property
    def shape(self) -> tuple[int, int]:
        """(k, p)."""
        k, p = self.items.shape
        return k, p

    @property
    def nbytes(self) -> int:
        """What it takes in memory."""
        columns = self.users, self.items, self.edges, self.row, self.winner, self.loser
        return sum(column.nbytes for column in columns)

    def part(self, rows: IntArray) -> "Block":
        """Some of the users."""
        place = np.full(len(self.users), -1)
        place[rows] = np.arange(len(rows))
        mine = np.flatnonzero(place[self.row] >= 0)
        return Block(
            self.items[rows],
            self.edges[mine],
            place[self.row[mine]],
            self.winner[mine],
            self.loser[mine],
            self.n_items,
            self.users[rows],
        )

    def differences(
        self, utility: FloatArray, covariance: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """(e,) means and variances of the block's comparisons, from (k, p) and (k, p, p)."""
        own = covariance.diagonal(0, 1, 2).reshape(-1)
        winner, loser, pair = (
            self.index(name, own) for name in ("winner_at", "loser_at", "pair_at")
        )
        var = own[winner] + own[loser] - 2.0 * covariance.reshape(-1)[pair]
        largest = max(0.0, float(own.max())) if len(own) else 0.0
        check_width(largest)
        # items that the prior holds identical differ by nothing but rounding
        return self.forward(utility), var.clip(SMALLEST_VARIANCE * min(largest, 1.0))

    def moments(
        self, utility: FloatArray, C: FloatArray, J: FloatArray, shared: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The same where the points' covariances are J shared Jᵀ + C."""
        through = multiply_stack(multiply_stack(J, shared), J.mT)
        through += C
        return self.differences(utility, through)

    def within(self, K: FloatArray, some: slice) -> FloatArray:
        """(k, p, p) of a matrix (n, n) what stands between the points of some users."""
        items = self.items[some]
        return K[items[:, :, None], items[:, None, :]]

    def rows(self, factor: FloatArray, some: slice) -> FloatArray:
        """(k, p, r) of a factor (n, r) what stands at the points of some users."""
        return factor[self.items[some]]


def check_width(largest: float) -> None:
    if largest > WIDEST_PRIOR:
        raise NumericalError(
            f"a utility has a variance of {largest:.1e}, and beyond {WIDEST_PRIOR:.0e} "
            "rounding hides what answers tell: lower the kernel's variance (an answer's noise "
            "has variance 1, so 100 is wide already)"
        )


# Users in stacks among their comparisons.
#
# Where these close no circle they are fewer than the items, and each is a point of its own, whose
# utility is a difference.


@dataclass(frozen=True, eq=False)
class PairBlock(Block):
    """k users, or parts of users, who made p comparisons each: these are its points.

    A row of `items` has the winners of a user's comparisons, then the losers, (k, 2p). Methods are
    those of `Block`, on the host alone.
    """

    repeats: ClassVar[bool] = True

    @classmethod
    def of(
        cls, users: IntArray, edges: IntArray, winner: IntArray, loser: IntArray, n_items: int
    ) -> "PairBlock":
        """edges: (k, p); winner, loser: (m,) items, over all comparisons."""
        items, nothing = np.hstack([winner[edges], loser[edges]]), np.zeros(0, dtype=np.intp)
        return cls(items, edges.ravel(), nothing, nothing, nothing, n_items, users)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.users), self.items.shape[1] // 2

    def laplacian(self, weight: FloatArray) -> FloatArray:
        """(k, p): of points that are comparisons it is diagonal."""
        return self.adjoint(weight)

    def adjoint(self, y: FloatArray) -> FloatArray:
        mine: FloatArray = y[self.edges]
        return mine.reshape(self.shape)

    def forward(self, utility: FloatArray) -> FloatArray:
        """(k·p,): differences are what utilities are here."""
        return utility.ravel()

    def moments(
        self, utility: FloatArray, C: FloatArray, J: FloatArray, shared: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """(k·p,) means and variances; of the covariances J shared Jᵀ + C the diagonal suffices."""
        var = row_products_stack(multiply_stack(J, shared), J)
        var += np.diagonal(C, axis1=1, axis2=2)
        largest = float(var.max(initial=0.0))
        check_width(0.5 * largest)
        return utility.ravel(), np.maximum(var.ravel(), SMALLEST_VARIANCE * min(largest, 1.0))

    def within(self, K: FloatArray, some: slice) -> FloatArray:
        flat = K.ravel()
        (_, cells), *others = self._corners(some)
        taken: FloatArray = flat.take(cells)
        for sign, cells in others:
            (np.add if sign > 0 else np.subtract)(taken, flat.take(cells), out=taken)
        return taken

    def _corners(self, some: slice) -> list[tuple[int, IntArray]]:
        """Where (k, p, p) numbers about differences lie in a flattened n × n matrix: four times,
        with the signs of (winner − loser)(winner − loser)ᵀ."""
        n, (winner, loser) = self.n_items, np.split(self.items[some], 2, axis=1)
        ends = ((1, winner), (-1, loser))
        return [
            (one * two, first[:, :, None] * n + second[:, None, :])
            for (one, first), (two, second) in product(ends, repeat=2)
        ]

    def rows(self, factor: FloatArray, some: slice) -> FloatArray:
        return _of_differences(super().rows(factor, some), 1)

    def collect_rows(self, stack: FloatArray, weights: FloatArray, some: slice) -> FloatArray:
        return super().collect_rows(np.concatenate([stack, -stack], axis=1), weights, some)

    def add_rows(
        self, total: FloatArray, stack: FloatArray, weights: FloatArray, some: slice
    ) -> None:
        super().add_rows(total, np.concatenate([stack, -stack], axis=1), weights, some)

    def collect(self, weights: FloatArray, x: FloatArray) -> FloatArray:
        return super().collect(weights, np.hstack([x, -x]))

    def pick(self, weights: FloatArray, vectors: FloatArray) -> FloatArray:
        return _of_differences(super().pick(weights, vectors), 1)

    def meet(self, x: FloatArray, vectors: FloatArray) -> FloatArray:
        return super().meet(np.hstack([x, -x]), vectors)

    def weighted_sum(self, weights: FloatArray, stack: FloatArray) -> FloatArray:
        n = self.n_items
        if weights.shape[1] == 1:
            total, every = np.zeros(n * n), (weights[:, :, None] * stack).ravel()
            for sign, cells in self._corners(slice(None)):
                total += sign * np.bincount(cells.ravel(), every, n * n)
            return total.reshape(1, n, n)
        wide = np.concatenate([stack, -stack], axis=2)
        return super().weighted_sum(weights, np.concatenate([wide, -wide], axis=1))

    def weighted_pick(self, weights: FloatArray, matrices: FloatArray) -> FloatArray:
        if len(matrices) == 1:
            return weights[:, :, None] * self.within(matrices[0], slice(None))
        picked = super().weighted_pick(weights, matrices)
        return _of_differences(_of_differences(picked, 1), 2)


def _of_differences(values: FloatArray, axis: int) -> FloatArray:
    """What is about winners less what is about losers, the halves of one axis."""
    winners, losers = np.split(values, 2, axis)
    return winners - losers


# Who is worked on with whom: all users in blocks, among their items or among their comparisons.
#
# Where the prior ties no two items together, the parts into which a user's own comparisons fall
# know nothing of each other but what is shared: each part is then a row of its own, and p³ is that
# of the parts. The items of all users fall into parts in the same way.


SAVED_FLOPS = 3e7
"""Of a sweep, from which on blocks of two kinds save time: see `benchmarks/paths.py`."""
PRODUCTS = 10
"""Of p × p matrices that a sweep takes for a user, p³ flops each."""
PAIRS_SHARE = 8
"""How many times smaller stacks of comparisons are than those of items: what is read at their
items is four times as large."""


class Arrangement(NamedTuple):
    """Blocks, and the items of each part into which all comparisons and the prior fall."""

    blocks: tuple[Block, ...]
    parts: tuple[IntArray, ...] | None

    @classmethod
    def of(
        cls,
        user: IntArray,
        winner: IntArray,
        loser: IntArray,
        tied: IntArray,
        device: Device = CPU,
    ) -> "Arrangement":
        """tied: (n,) labels; items of the same label are tied together by the prior."""
        n = len(tied)
        ends = np.concatenate([winner, np.arange(n)]), np.concatenate([loser, n + tied])
        whole = components(*ends, 2 * n)[1][:n]
        order = np.argsort(whole, kind="stable")
        parts = np.split(order, np.flatnonzero(np.diff(whole[order])) + 1)
        if not tied.any():
            return cls(_arranged(user, winner, loser, n, device), tuple(parts))
        owner, part_of = _user_parts(user, winner, loser, tied)
        blocks = _arranged(part_of, winner, loser, n, device)
        return cls(
            tuple(replace(block, users=owner[block.users]) for block in blocks), tuple(parts)
        )


def _arranged(
    user: IntArray, winner: IntArray, loser: IntArray, n_items: int, device: Device
) -> tuple[Block, ...]:
    """Everybody among their items, or among their comparisons where no one follows from others."""
    if device is not CPU or not len(user):
        return arrange(user, winner, loser, n_items, device)
    is_free, saved = _without_circles(user, winner, loser, n_items)
    if saved < SAVED_FLOPS:
        return arrange(user, winner, loser, n_items, device)
    free = is_free[user]
    items, pairs = np.flatnonzero(~free), np.flatnonzero(free)
    among_items = arrange(user[items], winner[items], loser[items], n_items, device)
    blocks: list[Block] = [replace(block, edges=items[block.edges]) for block in among_items]
    order = pairs[np.argsort(user[pairs], kind="stable")]
    users, first, sizes = np.unique(user[order], return_index=True, return_counts=True)
    for group in _groups(sizes, device.stack_size // PAIRS_SHARE):
        edges = order[first[group][:, None] + np.arange(sizes[group[0]])]
        blocks.append(PairBlock.of(users[group], edges, winner, loser, n_items))
    return tuple(blocks)


def _without_circles(
    user: IntArray, winner: IntArray, loser: IntArray, n_items: int
) -> tuple[BoolArray, float]:
    """Whose comparisons form a forest, so that their differences are independent a priori; and the
    flops of a sweep that are saved if these are their points.

    A forest has an item more than comparisons in each of its trees.

    >>> ends = np.array([0, 1, 0, 1, 0]), np.array([1, 2, 1, 2, 2])
    >>> _without_circles(np.array([0, 0, 1, 1, 1]), *ends, 3)
    (array([ True, False]), 190.0)
    """
    m = len(user)
    ends = np.tile(user, 2) * n_items + np.concatenate([winner, loser])
    cells, place = np.unique(ends, return_inverse=True)
    n_trees, tree = components(place[:m], place[m:], len(cells))
    owner = np.empty(n_trees, dtype=np.intp)
    owner[tree] = cells // n_items
    n_users = int(user.max()) + 1
    made, met = np.bincount(user, minlength=n_users), np.bincount(cells // n_items)
    is_free = made == met - np.bincount(owner, minlength=n_users)
    fewer = met[is_free].astype(float) ** 3 - made[is_free].astype(float) ** 3
    return is_free, float(PRODUCTS * fewer.sum())


def tied_items(K: FloatArray) -> IntArray:
    """(n,) labels: items have the same one where a path of prior covariances connects them.

    >>> tied_items(np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.0], [0.5, 0.0, 1.0]])).tolist()
    [0, 1, 0]
    """
    n = len(K)
    n_filled = np.count_nonzero(K)
    if n_filled == n:
        return np.arange(n)
    if n_filled > n * (n - 1):  # too few holes to fall apart
        return np.zeros(n, dtype=np.intp)
    row, column = np.nonzero(K)
    return components(row, column, n)[1]


def _user_parts(
    user: IntArray, winner: IntArray, loser: IntArray, tied: IntArray
) -> tuple[IntArray, IntArray]:
    """Parts of users whose items are connected: (parts,) owners, and the part of each row."""
    n, m = len(tied), len(user)
    ends = np.tile(user, 2) * n + np.concatenate([winner, loser])
    cells, place = np.unique(ends, return_inverse=True)
    hubs, hub = np.unique(cells // n * n + tied[cells % n], return_inverse=True)
    nodes = np.arange(len(cells))
    first = np.concatenate([place[:m], nodes])
    second = np.concatenate([place[m:], len(cells) + hub])
    label = components(first, second, len(cells) + len(hubs))[1][: len(cells)]
    # in the order of their users, so that rows stay sorted as users are
    _, label = np.unique(cells // n * (label.max() + 1) + label, return_inverse=True)
    owner = np.empty(label.max() + 1, dtype=np.intp)
    owner[label] = cells // n
    return owner, label[place[:m]]


def arrange(
    user: IntArray,
    winner: IntArray,
    loser: IntArray,
    n_items: int,
    device: Device = CPU,
) -> tuple[Block, ...]:
    """Blocks of all users who compared anything; arguments are (m,) over the comparisons.

    Users of nearly as many items are in one block: points without comparisons change nothing.

    >>> blocks = arrange(np.array([0, 0, 1]), np.array([2, 0, 1]), np.array([0, 1, 2]), 3)
    >>> [block.items.tolist() for block in blocks]
    [[[0, 1, 2], [0, 1, 2]]]
    """
    m = len(user)
    if m == 0:
        return ()
    ends = np.concatenate([winner, loser])
    cells = np.tile(user, 2) * n_items + ends
    pairs = np.unique(cells)
    users, first, sizes = np.unique(pairs // n_items, return_index=True, return_counts=True)
    groups, wide = _groups(sizes, device.stack_size, device.call_flops), np.empty_like(sizes)
    for group in groups:
        wide[group] = sizes[group[-1]]
    pairs = np.sort(np.append(pairs, _silent_points(pairs, users, sizes, wide, n_items)))
    first = np.cumsum(wide) - wide
    who = np.searchsorted(users, user)
    column = np.searchsorted(pairs, cells) - np.tile(first[who], 2)
    block_of, row_of = np.empty((2, len(users)), dtype=np.intp)
    for number, group in enumerate(groups):
        block_of[group], row_of[group] = number, np.arange(len(group))
    order = np.argsort(block_of[who], kind="stable")
    cuts = np.searchsorted(block_of[who[order]], np.arange(1, len(groups)))
    return tuple(
        Block(
            items=pairs[first[group][:, None] + np.arange(wide[group[0]])] % n_items,
            edges=edges,
            row=row_of[who[edges]],
            winner=column[edges],
            loser=column[m + edges],
            n_items=n_items,
            users=users[group],
        )
        for group, edges in zip(groups, np.split(order, cuts), strict=True)
    )


def _silent_points(
    pairs: IntArray, users: IntArray, sizes: IntArray, wide: IntArray, n_items: int
) -> IntArray:
    """Cells user · n_items + item of the first items that a user did not compare, as many as make
    their `sizes` as large as `wide`; pairs: the cells of those that they did."""
    short = np.flatnonzero(wide > sizes)
    if not len(short):
        return short
    columns = np.arange(wide[short].max())
    is_taken = columns >= wide[short, None]
    row = np.full(len(users), -1)
    row[short] = np.arange(len(short))
    at, item = np.repeat(row, sizes), pairs % n_items
    inside = (at >= 0) & (item < len(columns))
    is_taken[at[inside], item[inside]] = True
    free_first = np.argsort(is_taken, axis=1, kind="stable")
    cells = users[short, None] * n_items + free_first
    return cells[columns < (wide - sizes)[short, None]]


def _groups(sizes: IntArray, largest: int, spare: float = 0.0) -> list[IntArray]:
    """Positions in order of size p, of one size or of some, in groups of at most `largest` / p².

    Sizes are together where making all as large as the last costs at most `spare` flops.
    """
    order, groups = np.argsort(sizes, kind="stable"), []
    start, n, spent = 0, 0, 0.0
    numbers, counts = np.unique(sizes, return_counts=True)
    for i, count in enumerate(counts):
        n, last = n + int(count), i + 1 == len(counts)
        if not last:
            spent += PRODUCTS * n * (float(numbers[i + 1]) ** 3 - float(numbers[i]) ** 3)
        if last or spent > spare:
            longest = max(1, largest // int(numbers[i]) ** 2)
            groups += [
                order[k : min(k + longest, start + n)] for k in range(start, start + n, longest)
            ]
            start, n, spent = start + n, 0, 0.0
    return groups
