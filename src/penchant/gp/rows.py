"""The table of rows: every distinct comparison, its count and its outcome.

A row is g = aᵀv over *points* v: the items' utilities, and further Gaussian terms, such as the
effect of being shown first or of a covariate. Usually a = e_winner − e_loser, given by two index
arrays (`winner`, `loser`); where a side is a weighted sum of points, `sides` has the rows a as a
sparse matrix. Inference uses the table through its operator A.

Single pairs come first, then the edges of choices (`outcomes.cliques`).
"""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol, Self

import numpy as np
from scipy import sparse

from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.gp.choices import clique_edges, decided_pairs
from penchant.gp.posterior import EffectPosterior
from penchant.gp.rules import BLOCK, Sites
from penchant.likelihoods import Outcomes
from penchant.numerics.linalg import (
    EdgeIndex,
    difference_variances,
    edge_variances,
    multiply,
    multiply_laplacian,
    multiply_sparse,
    multiply_symmetric,
    row_squares,
)
from penchant.numerics.random import ContentKeys, pair_keys
from penchant.numerics.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Rows:
    """Distinct comparisons, m of them, in the order in which their sites stand.

    winner, loser: (m,) points; of a row of `sides` the heaviest of each side. count: (m,) how often
    each was seen. items: (p,) the points' positions in the universe, None where they are the same.
    user: (m,) who compared, None where users are pooled; period: (m,) when, as a number of a
    `TimeGrid`, or None. shown: further points, and their weights in each row. sides: (m, p) rows a,
    where a side is more than one point.
    """

    winner: IntArray
    loser: IntArray
    count: FloatArray
    outcomes: Outcomes
    items: IntArray = None  # type: ignore[assignment]
    user: IntArray = None  # type: ignore[assignment]
    period: IntArray = None  # type: ignore[assignment]
    shown: "Covariates | None" = None
    sides: sparse.csr_array | None = None

    @classmethod
    def of_comparisons(
        cls,
        data: Comparisons,
        like: "Covariates | None" = None,
        by_rater: bool = False,
        by_user: bool = False,
    ) -> Self:
        """Return comparisons as rows over all items.

        like: known effects, which keep their names and priors. by_rater: the likelihood depends on
        the rater. by_user: users have utilities of their own; otherwise they are pooled.
        """
        made = has_covariates(data) or like is not None
        data = data.bare(keep=("first", "covariates") if made else ())
        if by_user and data.user is None:
            raise DataError(
                "these comparisons do not say who made them: give a user for each, or use "
                "PreferenceGP for everybody together"
            )
        data = data if by_user or by_rater else data.pooled()
        pairs = data.single_pairs()
        who = data.user if pairs.user is None and by_user else pairs.user
        tie, rater = pairs.tie if pairs.tie.any() else None, who if by_rater else None
        rows = cls(
            pairs.winner,
            pairs.loser,
            pairs.count.astype(float),
            Outcomes(tie, pairs.margin, rater=rater),
            user=who if by_user else None,  # type: ignore[arg-type]
            shown=Covariates.of(pairs, like) if made else None,
        )
        if data.rankings is None:
            return rows
        user, first, second, cliques = clique_edges(data.rankings, data.n_items)
        shown = rows.shown
        return replace(
            rows,
            winner=np.append(rows.winner, first),
            loser=np.append(rows.loser, second),
            # counts of choices are inside their sites, and choices have no order or covariates
            count=np.append(rows.count, np.ones(cliques.n_edges)),
            outcomes=rows.outcomes._replace(cliques=cliques),
            user=None if rows.user is None else np.append(rows.user, user),
            shown=None if shown is None else shown.padded(cliques.n_edges),
        )

    @classmethod
    def pooled(
        cls, data: Comparisons, like: "Covariates | None" = None, by_rater: bool = False
    ) -> Self:
        """Return the rows of all users together, over the items that occur in them."""
        return cls.of_comparisons(data, like, by_rater).compact()

    @classmethod
    def by_user(
        cls, data: Comparisons, like: "Covariates | None" = None, by_rater: bool = False
    ) -> Self:
        """Return the rows of users with utilities of their own, over all items."""
        return cls.of_comparisons(data, like, by_rater, by_user=True)

    @classmethod
    def between(
        cls, winner: IntArray, loser: IntArray, count: FloatArray, outcomes: Outcomes
    ) -> Self:
        """Return rows of two items each, given by their positions in the universe."""
        return cls(winner, loser, count, outcomes).compact()

    @classmethod
    def between_sides(cls, sides: sparse.csr_array, count: FloatArray, outcomes: Outcomes) -> Self:
        """General rows, sides: (m, n) over the universe; a is one side less the other.

        >>> team = sparse.csr_array([[0.5, 0.5, -1.0, 0.0]])  # two against one
        >>> rows = Rows.between_sides(team, np.ones(1), Outcomes())
        >>> rows.items.tolist(), rows.operator(np.arange(3)).forward(np.array([3.0, 1.0, 1.5]))
        ([0, 1, 2], array([0.5]))
        """
        items = np.unique(sides.indices)
        few = sparse.csr_array(sides[:, items])
        winner, loser = (np.asarray(few.argmax(axis=1)), np.asarray(few.argmin(axis=1)))
        ends = winner.ravel().astype(np.intp), loser.ravel().astype(np.intp)
        return cls(*ends, count, outcomes, items, sides=few)

    def __len__(self) -> int:
        return len(self.winner)

    def compact(self) -> Self:
        """Return the same rows over the items that occur in them."""
        winner, loser = self.ends
        n = 1 + max(winner.max(initial=-1), loser.max(initial=-1))
        occurs, position = np.zeros(n, dtype=bool), np.empty(n, dtype=np.intp)
        occurs[winner] = occurs[loser] = True
        items = np.flatnonzero(occurs)
        position[items] = np.arange(len(items))
        return replace(self, winner=position[winner], loser=position[loser], items=items)

    def part(self, rows: IntArray) -> Self:
        """Return some of the rows, over the same points."""
        return replace(
            self,
            winner=self.winner[rows],
            loser=self.loser[rows],
            count=self.count[rows],
            outcomes=self.outcomes.part_of(rows, len(self)),
            user=None if self.user is None else self.user[rows],
            period=None if self.period is None else self.period[rows],
            shown=None if self.shown is None else self.shown.part(rows),
            sides=None if self.sides is None else self.sides[rows],
        )

    def take(self, rows: IntArray) -> Self:
        """Return some of the rows, over the items that occur in them."""
        part = self.part(rows)
        return part if self.sides is not None else part.compact()

    def weighted(self, count: FloatArray) -> Self:
        """Return single pairs with other counts (m,), which may be below one."""
        power = np.minimum(count, 1.0) if (count < 1.0).any() else None
        return replace(self, count=count, outcomes=self.outcomes._replace(power=power))

    @cached_property
    def ends(self) -> tuple[IntArray, IntArray]:
        """Winners and losers as positions in the universe."""
        if self.items is None:
            return self.winner, self.loser
        return self.items[self.winner], self.items[self.loser]

    def operator(self, position: IntArray) -> "Operator":
        """A over points that stand in another order, point i at `position[i]`."""
        if self.sides is None:
            return Differences(position[self.winner], position[self.loser], len(position))
        return SparseRows(sparse.csr_array(self.sides[:, np.argsort(position)]))

    @cached_property
    def runs(self) -> "Runs":
        """Runs of neighbouring rows that compare the same two items."""
        changes = (np.diff(self.winner) != 0) | (np.diff(self.loser) != 0)
        starts = np.append(0, 1 + np.flatnonzero(changes))
        return Runs(starts, np.diff(np.append(starts, len(self))))

    @cached_property
    def pairs(self) -> Self:
        """The rows of utilities alone: with effects, each run of one pair once."""
        if self.shown is None:
            return self
        starts = self.runs.starts
        return replace(
            self,
            winner=self.winner[starts],
            loser=self.loser[starts],
            count=self.runs.sum(self.count),
            outcomes=Outcomes(),
            shown=None,
        )

    def offset(self, effects: EffectPosterior | None) -> FloatArray:
        """(m,) zᵀβ̂, by what is known of the effects."""
        if self.shown is None or effects is None:
            return np.zeros(len(self))
        return multiply(self.shown.z.T, effects.mean)

    @property
    def keys(self) -> tuple[IntArray | FloatArray, ...]:
        """(m,) columns that identify rows, beside their outcomes."""
        named = (column for column in (self.user, *self.ends, self.period) if column is not None)
        more = () if self.shown is None else self.shown.z
        whole = () if self.sides is None else self.sides.toarray().T
        return (*named, *more, *whole)

    @cached_property
    def content(self) -> ContentKeys:
        """Keys of users and items that do not depend on names, see `pair_keys`."""
        pairs = self.as_pairs()  # the orientation of a choice's edges depends on the items' order
        tie = pairs.outcomes.tie
        return pair_keys(pairs.winner, pairs.loser, pairs.user, pairs.count, tie)

    def item_order(self, n_items: int) -> IntArray:
        """(n_items,) the place of each item in a random order that names do not decide."""
        key = np.zeros(n_items, dtype=np.uint64)
        key[: len(self.content.item)] = self.content.item
        return np.argsort(np.argsort(key, kind="stable"), kind="stable")

    def as_pairs(self) -> Self:
        """Return the same rows with choices broken into the pairs that they decide.

        >>> data = Comparisons.from_rankings([["tea", "milk", "water"]], users=["ann"])
        >>> votes = Rows.by_user(data.bare()).as_pairs()
        >>> [(data.items[w], data.items[l]) for w, l in zip(votes.winner, votes.loser)]
        [('tea', 'milk'), ('milk', 'water'), ('tea', 'water')]
        """
        cliques = self.outcomes.cliques
        if cliques is None:
            return self
        n = len(self) - cliques.n_edges
        edge, first_won, count = decided_pairs(cliques)
        rows = np.append(np.arange(n), n + edge)
        won = np.append(np.ones(n, dtype=bool), first_won)
        first, second, tie = self.winner[rows], self.loser[rows], self.outcomes.tie
        return replace(
            self,
            winner=np.where(won, first, second),
            loser=np.where(won, second, first),
            count=np.append(self.count[:n], count),
            outcomes=Outcomes(
                None if tie is None else np.append(tie, np.zeros(len(edge), dtype=bool))
            ),
            user=None if self.user is None else self.user[rows],
            shown=None if self.shown is None else self.shown.part(rows),
        )


# Matching


class Keyed(Protocol):
    """A table whose rows can be identified: `Rows`, or the answers of `communities`."""

    @property
    def outcomes(self) -> Outcomes:
        """Ties, margins, and the edges of choices."""

    @property
    def keys(self) -> tuple[IntArray | FloatArray, ...]:
        """(m,) columns that identify rows, beside their outcomes."""


def _identity(rows: Keyed) -> FloatArray:
    """(k, m) numbers that identify rows, ties and margins included.

    A flag separates an edge of choices from a pair of the same items.
    """
    tie, margin, cliques, rater, _ = rows.outcomes
    m = len(rows.keys[0])
    n = m if cliques is None else m - cliques.n_edges
    outcomes = np.zeros((4, m))
    outcomes[0, :n] = 0.0 if tie is None else tie
    outcomes[1, :n] = 0.0 if margin is None else margin
    outcomes[2, n:] = 1.0
    outcomes[3, :n] = 0.0 if rater is None else rater
    return np.stack([*rows.keys, *outcomes])


def match(known: Keyed, sought: Keyed) -> IntArray:
    """(k,) the position of each sought row among the known ones, −1 where it is not there.

    >>> three, ones = np.array([0, 1, 2]), np.ones(3)
    >>> known = Rows(three, three[[1, 2, 0]], ones, Outcomes())
    >>> match(known, Rows(three[::-1], three[[0, 0, 1]], ones, Outcomes())).tolist()
    [2, -1, 0]
    """
    columns = _identity(known)
    together = np.concatenate([columns, _identity(sought)], axis=1)
    order = np.lexsort(together)
    ranked = together[:, order]
    code = np.empty(len(order), dtype=np.intp)
    code[order] = np.cumsum(np.append(0, (ranked[:, 1:] != ranked[:, :-1]).any(axis=0)))
    place = np.full(len(order), -1, dtype=np.intp)
    n_known = columns.shape[1]
    place[code[:n_known]] = np.arange(n_known)
    return place[code[n_known:]]


def sites_at(sites: Sites, place: IntArray) -> Sites:
    """The sites at positions `place`, zero where that is −1."""
    known = place >= 0
    return Sites(np.where(known, sites.tau[place], 0.0), np.where(known, sites.nu[place], 0.0))


# Operators: A as a matrix over the points that a prior is factored over

DENSE_SHARE = 10
"""Form L when n² ≤ this × m: a number of a sparse product costs as much as ten of a dense one."""


class Differences:
    """A with rows e_winner − e_loser over `n_points` nodes.

    >>> D = Differences(np.array([0, 1]), np.array([1, 2]), 3)
    >>> D.forward(np.array([3.0, 2.0, 0.0])).tolist(), D.adjoint(np.ones(2)).tolist()
    ([1.0, 2.0], [1.0, 0.0, -1.0])
    """

    def __init__(self, winner: IntArray, loser: IntArray, n_points: int) -> None:
        self.winner, self.loser, self.n_points = winner, loser, n_points
        self.ends = EdgeIndex(winner, loser)

    @cached_property
    def _pattern(self) -> tuple[sparse.csr_array, IntArray, IntArray]:
        """The Laplacian's sparsity, and where each edge and each diagonal lands in its data."""
        n = self.n_points
        low = np.minimum(self.winner, self.loser)
        high = np.maximum(self.winner, self.loser)
        pairs, slot = np.unique(low * n + high, return_inverse=True)
        i, j = pairs // n, pairs % n
        k = len(pairs)
        diagonal = np.arange(n)
        # data = the position in (pairs, mirrored pairs, diagonal), carried through COO → CSR
        tagged = sparse.coo_array(
            (
                np.arange(1, 2 * k + n + 1),
                (np.concatenate([i, j, diagonal]), np.concatenate([j, i, diagonal])),
            ),
            shape=(n, n),
        ).tocsr()
        return tagged, slot.ravel(), tagged.data - 1

    def forward(self, x: FloatArray) -> FloatArray:
        """A x for x of shape (n_points, …)."""
        return x[self.winner] - x[self.loser]

    def adjoint(self, y: FloatArray) -> FloatArray:
        """Aᵀ y for y of shape (m,)."""
        n = self.n_points
        won, lost = np.bincount(self.winner, y, n), np.bincount(self.loser, y, n)
        return np.asarray(won - lost, dtype=np.float64)

    def matrix(self, weight: FloatArray | None = None) -> sparse.csr_array:
        """A itself, (m, n_points), its rows times `weight` (m,) where that is given."""
        m = len(self.winner)
        ones = np.ones(m) if weight is None else weight
        columns = np.stack([self.winner, self.loser], axis=1).ravel()
        values = np.stack([ones, -ones], axis=1).ravel()
        ends = np.arange(0, 2 * m + 1, 2)
        return sparse.csr_array((values, columns, ends), shape=(m, self.n_points))

    def laplacian(self, weight: FloatArray) -> sparse.csr_array | FloatArray:
        """L = Aᵀ diag(weight) A; dense if the graph is."""
        n = self.n_points
        diagonal = np.bincount(self.winner, weight, n) + np.bincount(self.loser, weight, n)
        if n * n <= DENSE_SHARE * len(weight):
            won = np.bincount(self.winner * n + self.loser, weight, n * n).reshape(n, n)
            L = np.asarray(-(won + won.T), dtype=np.float64)
            L[np.diag_indices(n)] = diagonal
            return L
        tagged, slot, order = self._pattern
        off = -np.bincount(slot, weight, (len(order) - n) // 2)
        data = np.concatenate([off, off, diagonal])[order]
        return sparse.csr_array((data, tagged.indices, tagged.indptr), shape=(n, n))

    def laplacian_times(self, weight: FloatArray, rows: FloatArray) -> FloatArray:
        """L rows, for rows (n_points, r)."""
        return multiply_laplacian(rows, self.ends, weight, self.laplacian)

    def variances(self, half: FloatArray) -> FloatArray:
        """diag(A Σ Aᵀ) for Σ = half.T @ half, half of shape (r, n_points)."""
        return edge_variances(half, self.ends)

    def variances_under(self, covariance: FloatArray) -> FloatArray:
        """diag(A Σ Aᵀ) from the lower triangle of Σ."""
        return difference_variances(covariance, self.winner, self.loser)


class SparseRows:
    """A as a sparse matrix, (m, n_points): the general case of `Differences`.

    A permutation is one, too: in comparison space every point is one comparison's difference.
    """

    def __init__(self, A: sparse.csr_array) -> None:
        self.A, self.n_points = A, A.shape[1]

    @classmethod
    def permutation(cls, order: IntArray) -> "SparseRows":
        """order: (m,) the row that each point stands for."""
        m = len(order)
        return cls(sparse.csr_array((np.ones(m), (order, np.arange(m))), shape=(m, m)))

    @property
    def position(self) -> IntArray:
        """(m,) of a permutation, the point of each row."""
        return self.A.indices.astype(np.intp)

    def forward(self, x: FloatArray) -> FloatArray:
        """A x."""
        return np.asarray(self.A @ x, dtype=np.float64)

    def adjoint(self, y: FloatArray) -> FloatArray:
        """Aᵀ y."""
        return np.asarray(self.A.T @ y, dtype=np.float64)

    def matrix(self) -> sparse.csr_array:
        """A itself."""
        return self.A

    def laplacian(self, weight: FloatArray) -> sparse.csr_array:
        """L = Aᵀ diag(weight) A."""
        return sparse.csr_array(self.A.T @ (sparse.diags_array(weight) @ self.A))

    def laplacian_times(self, weight: FloatArray, rows: FloatArray) -> FloatArray:
        """L rows."""
        return multiply_symmetric(self.laplacian(weight), rows)

    def variances(self, half: FloatArray) -> FloatArray:
        """diag(A Σ Aᵀ) for Σ = halfᵀ half."""
        return row_squares(multiply_sparse(self.A, half.T))

    def variances_under(self, covariance: FloatArray) -> FloatArray:
        """diag(A Σ Aᵀ) from the lower triangle of Σ."""
        whole = np.tril(covariance) + np.tril(covariance, -1).T
        return np.asarray(self.A.multiply(self.A @ whole).sum(axis=1), dtype=np.float64).ravel()


Operator = Differences | SparseRows


# Further points: effects of how a comparison was made

ORDER = "shown first"
PRIOR_SD = 1.0
"""Prior sd of an effect, in units of an answer's noise: of being shown first, and of a covariate at
its root mean square. One effect does not identify its variance, so this is not learned; a shift of
one turns equals into 84 : 16, and hardly any known effect is larger."""


@dataclass(frozen=True)
class Covariates:
    """Further points of rows: weights z (q, m), odd in the pair; names and prior sd of effects."""

    names: tuple[str, ...]
    z: FloatArray
    sd: FloatArray

    @classmethod
    def of(cls, data: Comparisons, like: "Covariates | None" = None) -> "Covariates | None":
        """Order and covariates of the data, or None.

        like: known effects, which come first and keep their priors; a column that these data lack
        is zero.
        """
        columns = _columns(data)
        names = () if like is None else like.names
        names += tuple(name for name in columns if name not in names)
        if not names:
            return None
        z = z_of(data, names)
        sd = np.array(
            [_prior_sd(name, row, data.count) for name, row in zip(names, z, strict=True)]
        )
        if like is not None:
            sd[: len(like.names)] = like.sd
        return cls(names, z, sd)

    @classmethod
    def known(cls, effects: EffectPosterior | None) -> "Covariates | None":
        """Names and priors of known effects, without rows."""
        if effects is None:
            return None
        return cls(effects.names, np.zeros((len(effects.names), 0)), effects.sd)

    def part(self, rows: IntArray) -> "Covariates":
        """Of some of the comparisons."""
        return replace(self, z=self.z[:, rows])

    def padded(self, n: int) -> "Covariates":
        """The same with n rows of zeros after them."""
        return replace(self, z=np.pad(self.z, ((0, 0), (0, n))))

    @cached_property
    def scaled(self) -> FloatArray:
        """(q, m) in units in which every effect has prior variance one."""
        return self.z * self.sd[:, None]


def z_of(data: Comparisons, names: tuple[str, ...]) -> FloatArray:
    """(q, m) weights of the named effects; zero where the data lack them."""
    columns, nothing = _columns(data), np.zeros(len(data))
    return np.stack([columns.get(name, nothing) for name in names])


def has_covariates(data: Comparisons) -> bool:
    """Whether comparisons have an order shown or covariates."""
    return data.covariates is not None or (data.first is not None and bool(data.first.any()))


def _columns(data: Comparisons) -> dict[str, FloatArray]:
    columns: dict[str, FloatArray] = {}
    if data.first is not None and data.first.any():
        columns[ORDER] = data.first.astype(float)
    for k, name in enumerate(data.covariate_names if data.covariates is not None else ()):
        if name == ORDER:
            raise DataError(f"a covariate is called {name!r}, as the effect of order is: rename it")
        columns[name] = data.covariates[:, k]  # type: ignore[index]
    return columns


def _prior_sd(name: str, z: FloatArray, count: IntArray) -> float:
    square = 1.0 if name == ORDER else float(np.average(z * z, weights=count)) if len(z) else 0.0
    return PRIOR_SD / np.sqrt(square) if square > 0.0 else PRIOR_SD


def as_shown(model: Any, data: Comparisons, rows: BoolArray) -> dict[str, Any]:
    """Arguments for a model's `predict_proba`: order, covariates and time of some comparisons, as
    far as the model uses them."""
    known = {effect.name for effect in getattr(model, "effects_", ())}
    shown: dict[str, Any] = {}
    if ORDER in known and data.first is not None:
        shown["first"] = data.first[rows]
    if data.covariates is not None and known.intersection(data.covariate_names):
        columns = zip(data.covariate_names, data.covariates[rows].T, strict=True)
        shown["covariates"] = {name: column for name, column in columns if name in known}
    if getattr(model, "drift", None) is not None and data.time is not None:
        shown["at"] = data.time[rows]
    return shown


@dataclass(frozen=True, eq=False)
class Runs:
    """Rows in runs of the same pair: where each starts, how long it is."""

    starts: IntArray
    sizes: IntArray

    def sum(self, y: FloatArray) -> FloatArray:
        """(…, runs) of y (…, m)."""
        return np.add.reduceat(y, self.starts, axis=-1)

    def repeat(self, x: FloatArray) -> FloatArray:
        """(…, m) of x (…, runs)."""
        return np.repeat(x, self.sizes, axis=-1)

    @cached_property
    def blocks(self) -> list[tuple[slice, slice]]:
        """Blocks of rows that fit in cache, in whole runs; and their runs."""
        ends = self.starts + self.sizes
        cuts = [0]
        while cuts[-1] < len(ends):
            full = int(np.searchsorted(ends, self.starts[cuts[-1]] + BLOCK, side="right"))
            cuts.append(max(full, cuts[-1] + 1))
        return [
            (slice(int(self.starts[one]), int(ends[two - 1])), slice(one, two))
            for one, two in pairwise(cuts)
        ]
