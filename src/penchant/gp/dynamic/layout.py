"""Where everything stands when comparisons are filtered in time: steps and slots.

A *step* is a period; its *points* are the items that met in it, and the effects. Its comparisons
are of few *directions* among the points: one a comparison, or the points themselves where these are
fewer. From step to step the *state* has a slot for every effect, and two for every item between its
first and its last period: its utility when it last met another, and its constant. An item that has
not come yet, or will not come again, has none: its slots are another's.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from penchant.numerics.types import FloatArray, IntArray

DENSE_ENTRIES = 10_000
"""Up to so many the directions of a step are a dense matrix: a sparse product takes longer."""


@dataclass(frozen=True, eq=False)
class TimeStep:
    """A period of p points (k items, q effects, and constants where asked for), r directions.

    nodes, directions, square: of k, r and r × r numbers in arrays over all steps. at, now,
    constants: slots of points, items, and their constants. new: items whose constants enter.
    J: (r, p) the directions, dense or sparse.
    """

    nodes: slice
    directions: slice
    square: slice
    at: IntArray
    now: IntArray
    constants: IntArray
    new: IntArray
    J: Any


@dataclass(frozen=True, eq=False)
class Layout:
    """All steps, and the rows among their directions.

    size: slots. constants: (n,) those of the constants. gap: (N,) days since an item last met
    another, infinite at first. row_directions (m, 2 + q), row_squares (m, 2 + q, 2 + q): positions
    of a row's directions, of `weights`, and of their `products`. whole: period → its step, and
    where its effects, items and constants are among the points, which are its directions.
    """

    steps: list[TimeStep]
    size: int
    constants: IntArray
    gap: FloatArray
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

        days: of a period. is_coupled: constants are correlated, so that all of them always stay.
        whole: periods that hold all items; with_constants: and the constants.
        """
        winner, loser, period = ends
        q, one = len(z), np.ones(len(winner))
        complete = np.unique(np.array(whole, dtype=np.intp))
        periods = np.union1d(period, complete)
        place, at = (np.searchsorted(periods, some) for some in (period, complete))
        every = np.ravel(at[:, None] * n + np.arange(n))
        nodes = np.unique(np.concatenate([place * n + winner, place * n + loser, every]))
        when, item = np.divmod(nodes, n)
        starts = np.searchsorted(when, np.arange(len(periods) + 1))
        sides = [np.searchsorted(nodes, place * n + side) - starts[place] for side in ends[:2]]
        effects = np.diff(starts)[place][:, None] + np.arange(q)
        local, weights = np.column_stack([*sides, effects]), np.column_stack([one, -one, z.T])
        order = np.argsort(place, kind="stable")
        first_rows = np.searchsorted(place[order], np.arange(len(periods) + 1))
        n_points, n_rows = np.diff(starts) + q, np.diff(first_rows)
        n_points[at] += n * with_constants
        by_row = (n_rows < n_points) & ~np.isin(periods, complete)
        sizes = np.where(by_row, n_rows, n_points)
        directions, squares = (np.append(0, np.cumsum(size)) for size in (sizes, sizes**2))
        steps, met, gap = [], np.full(n, -np.inf), np.empty(len(nodes))
        last, utilities, constants = np.empty(n, int), np.empty(n, int), q + np.arange(n)
        last[item] = when  # the latest comes last
        free: list[int] = []
        size = q + n * is_coupled
        for t, day in enumerate(days * periods.astype(float)):
            inside = slice(starts[t], starts[t + 1])
            items = item[inside]
            new = items[np.isinf(met[items])]
            for i in new.tolist():
                if not free:
                    free.append(size)
                    size += 1 if is_coupled else 2
                utilities[i] = free.pop()
            if is_coupled:
                new = np.arange(0 if t else n)
            else:
                constants[new] = utilities[new] + 1
            now, beside = utilities[items], constants[items]
            extra = constants[: n * (with_constants and t in at)]
            slots = np.concatenate([now, np.arange(q), extra])
            here, square = (slice(*part[t : t + 2].tolist()) for part in (directions, squares))
            rows = order[first_rows[t] : first_rows[t + 1]]
            J = _directions((weights[rows], local[rows]) if by_row[t] else None, len(slots))
            steps.append(TimeStep(inside, here, square, slots, now, beside, new, J))
            gap[inside], met[items] = day - met[items], day
            free += now[last[items] == t].tolist()
        own = by_row[place]  # a row that is a direction: that one alone
        local[own], weights[own] = _within(place)[own, None], np.append(1.0, np.zeros(1 + q))
        row = (squares[place][:, None] + sizes[place][:, None] * local)[:, :, None]
        beside = np.append(n + np.arange(q), np.append(np.arange(n), n + q + np.arange(n)))
        return cls(
            steps,
            size,
            constants,
            gap,
            directions[place][:, None] + local,
            row + local[:, None, :],
            weights,
            weights[:, :, None] * weights[:, None, :],
            {int(periods[t]): (t, beside[: sizes[t]]) for t in at.tolist()},
        )


def _within(place: IntArray) -> IntArray:
    """(m,) the number of each row among those of its step.

    >>> _within(np.array([1, 0, 1])).tolist()
    [0, 0, 1]
    """
    order, number = np.argsort(place, kind="stable"), np.empty(len(place), int)
    number[order] = np.arange(len(place)) - np.searchsorted(place[order], place[order])
    return number


def _directions(rows: tuple[FloatArray, IntArray] | None, n_points: int) -> Any:
    """(r, n_points) of rows with the same number of weights at points each; None: the points."""
    points = np.arange(n_points)[:, None]
    weights, columns = (np.ones((n_points, 1)), points) if rows is None else rows
    r, each = columns.shape
    if r * n_points > DENSE_ENTRIES:
        pointers = each * np.arange(r + 1)
        return csr_array((weights.ravel(), columns.ravel(), pointers), shape=(r, n_points))
    J = np.zeros((r, n_points))
    J[np.arange(r)[:, None], columns] = weights
    return J
