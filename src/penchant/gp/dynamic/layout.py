"""Where everything stands when comparisons are filtered in time: steps and slots.

A *step* is a period; its *points* are the items that met in it, and the effects. Its comparisons
are of few *directions* among the points: one a comparison, or the points themselves where these are
fewer. The *state* has a slot for every effect, and two for every item between its first and its
last period: how far its path is from its constant, and the constant. Slots stay what they are for
an *epoch*, a run of steps that need nearly the same items.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from penchant.numerics.types import BoolArray, FloatArray, IntArray

DENSE_ENTRIES = 5_000
"""Up to so many a step the directions are dense matrices: sparse products take longer."""
EPOCH_SHARE = 1.1
"""Most items of an epoch over those that one of its steps needs."""


@dataclass(frozen=True, eq=False)
class TimeStep:
    """A period of k items and r directions; f slots.

    nodes, slots, directions, square: of k, f, r and r × r numbers in arrays over all steps. now:
    (k,) slots of the items' paths. H: (r, f) the directions, dense or sparse; J: H at `touched`,
    outside of which it is zero. by_row: each direction is a comparison. kept, dropped: where an
    epoch starts, the slots of the state before among those of this one, and the other way round; −1
    where there is none.
    """

    nodes: slice
    slots: slice
    directions: slice
    square: slice
    now: IntArray
    H: Any
    J: Any
    touched: Any
    by_row: bool
    kept: IntArray | None
    dropped: IntArray | None


@dataclass(frozen=True, eq=False)
class Layout:
    """All steps, and the rows among their directions.

    size: most slots. is_coupled: constants are correlated, so that all of them always stay. gap:
    (N,) days since an item last met another, infinite at first. paths: (N,) its path among the
    slots of all steps. entering: there, constants that enter; entrants: whose. row_directions
    (m, 2 + q), row_squares (m, 2 + q, 2 + q): positions of a row's directions, of `weights`, and of
    their `products`. whole: period → its step, and where its effects, items and constants are among
    the points, which are its directions.
    """

    steps: list[TimeStep]
    size: int
    is_coupled: bool
    gap: FloatArray
    paths: IntArray
    entering: IntArray
    entrants: IntArray
    row_directions: IntArray
    row_squares: IntArray
    weights: FloatArray
    products: FloatArray
    whole: dict[int, tuple[int, IntArray]]

    def rows(self, directions: FloatArray) -> FloatArray:
        """(m,) g of the rows."""
        return np.asarray(np.einsum("ij,ij->i", self.weights, directions[self.row_directions]))

    @classmethod
    def of(
        cls,
        ends: tuple[IntArray, IntArray, IntArray],
        z: FloatArray,
        n: int,
        days: float,
        is_coupled: bool,
        whole: tuple[int, ...],
        with_constants: bool,
    ) -> "Layout":
        """Of rows between n items, by winner, loser and period; z: (q, m).

        days: of a period. whole: periods that hold all items; with_constants: and the constants.
        """
        winner, loser, period = ends
        q = len(z)
        complete = np.unique(np.array(whole, dtype=np.intp))
        periods = np.union1d(period, complete)
        T, place, at = len(periods), *(np.searchsorted(periods, p) for p in (period, complete))
        every = np.ravel(at[:, None] * n + np.arange(n))
        nodes = np.unique(np.concatenate([place * n + winner, place * n + loser, every]))
        when, item = np.divmod(nodes, n)
        starts = np.searchsorted(when, np.arange(T + 1))
        n_items, n_rows = np.diff(starts), np.bincount(place, minlength=T)
        n_points = n_items + q
        n_points[at] += n * with_constants
        by_row = (n_rows < n_points) & ~np.isin(np.arange(T), at)
        sizes = np.where(by_row, n_rows, n_points)
        epochs, number = _epochs(when, item, (T, n, q), is_coupled)
        size = np.array([epoch.size for epoch in epochs])[number]
        path, constant = (np.array([epoch[k] for epoch in epochs]) for k in (1, 2))
        x, c = path[number[when], item], constant[number[when], item]
        slots, points, directions, squares = (
            np.append(0, np.cumsum(some)) for some in (size, n_points, sizes, sizes**2)
        )
        # points are sums of slots: a path and a constant, an effect, or a constant
        node = (points - starts)[when] + np.arange(len(nodes))
        effect = (points[:-1] + n_items)[:, None] + np.arange(q)
        extra = (points[at] + n_items[at] + q)[:, None] + np.arange(n * with_constants)
        some = np.concatenate([node, node, effect.ravel(), extra.ravel()])
        beside = constant[number[at], : extra.shape[1]].ravel()
        of = np.concatenate([x, c, np.tile(np.arange(q), T), beside])
        sums = csr_array((np.ones(len(some)), (some, of)), shape=(points[-1], size.max()))
        # directions are sums of points: a row, or a point
        sides = [np.searchsorted(nodes, place * n + side) - starts[place] for side in ends[:2]]
        local = np.column_stack([*sides, n_items[place][:, None] + np.arange(q)])
        weights = np.column_stack([np.ones(len(place)), -np.ones(len(place)), z.T])
        own, within, step = by_row[place], _within(place), np.repeat(np.arange(T), n_points)
        single = np.flatnonzero(~by_row[step])
        row = np.repeat((directions[place] + within)[own], 2 + q)
        place_of = (
            np.append(row, single + (directions - points)[step[single]]),
            np.append((points[place][:, None] + local)[own], single),
        )
        each = np.append(weights[own], np.ones(len(single)))
        H = csr_array((each, place_of), shape=(directions[-1], points[-1])) @ sums
        gap = _gaps(when, item, days * periods.astype(float))
        new = np.flatnonzero(np.isinf(gap) & (not is_coupled))
        local[own], weights[own] = within[own, None], np.append(1.0, np.zeros(1 + q))
        at_square = (squares[place][:, None] + sizes[place][:, None] * local)[:, :, None]
        known = np.append(n + np.arange(q), np.append(np.arange(n), n + q + np.arange(n)))
        return cls(
            _steps(H, x, by_row, (starts, slots, directions, squares), epochs, number),
            int(size.max()),
            is_coupled,
            gap,
            slots[when] + x,
            (slots[when] + c)[new],
            item[new],
            directions[place][:, None] + local,
            at_square + local[:, None, :],
            weights,
            weights[:, :, None] * weights[:, None, :],
            {int(periods[t]): (t, known[: sizes[t]]) for t in at.tolist()},
        )


def _steps(
    H: csr_array,
    x: IntArray,
    by_row: BoolArray,
    bounds: tuple[IntArray, ...],
    epochs: list["Epoch"],
    number: IntArray,
) -> list[TimeStep]:
    """H: (all directions, slots); x: (N,) slots of paths; bounds: (T + 1,) of the steps' nodes,
    slots, directions and squares; number: (T,) their epochs.
    """
    is_small = H.shape[0] * H.shape[1] <= DENSE_ENTRIES * len(number)
    rows: Any = H.toarray() if is_small else H
    steps, ends = [], [bound.tolist() for bound in bounds]
    for t, epoch in enumerate(number.tolist()):
        inside, ours, here, square = (slice(*some[t : t + 2]) for some in ends)
        part = rows[here, : epochs[epoch].size]
        touched: Any = slice(None) if is_small else np.unique(part.indices)
        J = part if is_small else part[:, touched]
        moved = epochs[epoch][3:] if t and epoch > number[t - 1] else (None, None)
        parts = (inside, ours, here, square)
        steps.append(TimeStep(*parts, x[inside], part, J, touched, bool(by_row[t]), *moved))
    return steps


def _gaps(when: IntArray, item: IntArray, days: FloatArray) -> FloatArray:
    """(N,) days since the item's step before, infinite at its first; days: (T,) of the steps.

    >>> _gaps(np.array([0, 0, 1, 2]), np.array([0, 1, 1, 0]), np.array([0.0, 7.0, 21.0])).tolist()
    [inf, inf, 7.0, 21.0]
    """
    order, gap = np.argsort(item, kind="stable"), np.full(len(item), np.inf)
    again = np.diff(item[order]) == 0
    gap[order[1:][again]] = np.diff(days[when[order]])[again]
    return gap


class Epoch(NamedTuple):
    """The state's size; (n,) slots of paths and of constants; and see `TimeStep`."""

    size: int
    path: IntArray
    constant: IntArray
    kept: IntArray
    dropped: IntArray


def _epochs(
    when: IntArray, item: IntArray, shape: tuple[int, int, int], is_coupled: bool
) -> tuple[list[Epoch], IntArray]:
    """All epochs, and (T,) those of steps; shape: T steps, n items, q effects."""
    T, n, q = shape
    first, last = np.full(n, T), np.full(n, -1)
    first[item[::-1]], last[item] = when[::-1], when
    met = last >= 0
    n_begun = np.cumsum(np.bincount(first[met], minlength=T))
    n_ended = np.append(0, np.cumsum(np.bincount(last[met], minlength=T)))
    edges, fewest = [0], n
    for t, (begun, ended) in enumerate(zip(n_begun.tolist(), n_ended[:-1].tolist(), strict=True)):
        needed = begun - ended
        fewest = min(fewest, needed)
        if begun - n_ended[edges[-1]] > EPOCH_SHARE * fewest:
            edges.append(t)
            fewest = needed
    everybody, effects = np.arange(n), np.arange(q)
    # what slots hold: effects, then paths, then constants
    epochs, before = [], effects
    for start, stop in zip(edges, [*edges[1:], T], strict=True):
        items = np.flatnonzero((first < stop) & (last >= start))
        held = np.concatenate([effects, q + items, q + n + (everybody if is_coupled else items)])
        path, constant = (np.searchsorted(held, q + k * n + everybody) for k in (0, 1))
        epochs.append(Epoch(len(held), path, constant, _find(held, before), _find(before, held)))
        before = held
    return epochs, np.searchsorted(edges, np.arange(T), side="right") - 1


def _find(wanted: IntArray, among: IntArray) -> IntArray:
    """Where they are among others, which ascend; −1 where they are not."""
    place = np.searchsorted(among, wanted)
    return np.where(np.append(among, -1)[place] == wanted, place, -1)


def _within(place: IntArray) -> IntArray:
    """(m,) the number of each row among those of its step.

    >>> _within(np.array([1, 0, 1])).tolist()
    [0, 0, 1]
    """
    order, number = np.argsort(place, kind="stable"), np.empty(len(place), int)
    number[order] = np.arange(len(place)) - np.searchsorted(place[order], place[order])
    return number
