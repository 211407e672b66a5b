"""Where everything stands when comparisons are filtered in time: steps and slots.

A *step* is a period; its *points* are the items that met in it, and the effects. From step to step
the *state* has a slot for every effect, and two for every item between its first and its last
period: its utility when it last met another, and its constant. An item that has not come yet, or
will not come again, has none: its slots are another's.
"""

from dataclasses import dataclass

import numpy as np

from penchant.numerics.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Step:
    """The p = size points of a period: k items, q effects, and constants where asked for.

    nodes, points, square: of k, p and p × p numbers in arrays over all steps. slots: (p + k,) the
    points' own, then those of the items' constants. new: items whose constants enter.
    """

    nodes: slice
    points: slice
    square: slice
    size: int
    slots: IntArray
    new: IntArray


@dataclass(frozen=True, eq=False)
class Layout:
    """All steps, and the rows among their points.

    size: slots. constants: (n,) those of the constants, all of which stay where they are correlated
    (is_coupled). gap: (N,) days since an item last met another, infinite for the first time.
    row_points (m, 2 + q), row_squares (m, 2 + q, 2 + q): positions of a row's points, of `weights`.
    whole: period → its step, and where effects, all items, and constants are among the points.
    """

    steps: list[Step]
    size: int
    constants: IntArray
    is_coupled: bool
    gap: FloatArray
    row_points: IntArray
    row_squares: IntArray
    weights: FloatArray
    whole: dict[int, tuple[int, IntArray]]

    @property
    def earliest(self) -> int:
        """The first step whose moments are wanted, −1 where those of all are."""
        return min((number for number, _ in self.whole.values()), default=-1)

    def rows(self, points: FloatArray) -> FloatArray:
        """(m,) g of the rows."""
        return np.asarray(np.einsum("ij,ij->i", self.weights, points[self.row_points]))

    @classmethod
    def of(
        cls,
        ends: list[IntArray],
        z: FloatArray,
        n: int,
        days: float,
        is_coupled: bool,
        whole: IntArray,
        with_constants: bool,
    ) -> "Layout":
        """Of rows between n items, by winner, loser and period; z: (q, m).

        days: of a period. whole: periods that hold all items; with_constants: and the constants.
        """
        winner, loser, period = ends
        q, m = z.shape
        periods = np.union1d(period, whole)
        place, at = np.searchsorted(periods, period), np.searchsorted(periods, np.unique(whole))
        every = np.ravel(at[:, None] * n + np.arange(n))
        nodes = np.unique(np.concatenate([place * n + winner, place * n + loser, every]))
        when, item = np.divmod(nodes, n)
        seat, n_seats = _seats(when, item, n)
        constants = q + n_seats + (np.arange(n) if is_coupled else seat)
        starts = np.searchsorted(when, np.arange(len(periods) + 1))
        sizes = np.diff(starts) + q
        sizes[at] += n * with_constants
        points, squares = (np.append(0, np.cumsum(size)) for size in (sizes, sizes**2))
        met, steps = np.full(n, -np.inf), []
        gap = np.empty(len(nodes))
        for t, day in enumerate(days * periods.astype(float)):
            inside = slice(starts[t], starts[t + 1])
            items = item[inside]
            extra = constants if with_constants and t in at else constants[:0]
            step = Step(
                inside,
                slice(points[t], points[t + 1]),
                slice(squares[t], squares[t + 1]),
                int(sizes[t]),
                np.concatenate([q + seat[items], np.arange(q), extra, constants[items]]),
                items[:0] if is_coupled else items[np.isinf(met[items])],
            )
            steps.append(step)
            gap[inside] = day - met[items]
            met[items] = day
        local = np.empty((m, 2 + q), dtype=np.intp)
        for j, who in enumerate((winner, loser)):
            local[:, j] = np.searchsorted(nodes, place * n + who) - starts[place]
        local[:, 2:] = np.diff(starts)[place][:, None] + np.arange(q)
        row = (squares[place][:, None] + sizes[place][:, None] * local)[:, :, None]
        beside = np.append(n + np.arange(q), np.append(np.arange(n), n + q + np.arange(n)))
        return cls(
            steps,
            int(q + n_seats + (n if is_coupled else n_seats)),
            constants,
            is_coupled,
            gap,
            points[place][:, None] + local,
            row + local[:, None, :],
            np.column_stack([np.ones(m), -np.ones(m), z.T]),
            {int(periods[t]): (t, beside[: sizes[t]]) for t in at.tolist()},
        )


def _seats(when: IntArray, item: IntArray, n: int) -> tuple[IntArray, int]:
    """(n,) a seat for each item from its first to its last step, and how many there are."""
    first, last = np.full(n, len(when)), np.full(n, -1)
    np.minimum.at(first, item, when)
    np.maximum.at(last, item, when)
    seat, free, n_seats = np.zeros(n, dtype=np.intp), [], 0
    present = np.unique(item)
    leaving = iter(present[np.argsort(last[present], kind="stable")].tolist())
    leaver = next(leaving)
    for i in present[np.argsort(first[present], kind="stable")].tolist():
        while last[leaver] < first[i]:
            free.append(seat[leaver])
            leaver = next(leaving)
        if not free:
            free.append(n_seats)
            n_seats += 1
        seat[i] = free.pop()
    return seat, n_seats
