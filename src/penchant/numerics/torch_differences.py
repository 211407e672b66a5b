"""`numerics.differences` on torch's matrices, in double precision: functions of the same names.

What is worked out of edges that stay the same in every sweep is kept as long as they live.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import torch

from penchant.numerics.differences import Ends
from penchant.numerics.torch_entries import CHUNK, Tensor, host, multiply_sparse, squares, up
from penchant.numerics.torch_linalg import blocks
from penchant.numerics.types import FloatArray

T = TypeVar("T")

GRAM_SHARE = 500
"""Form covariances when n² ≤ this × m: a product's flop costs a card so much less than a read."""
LAPLACIAN_SHARE = 150
"""Form the Laplacian when n² ≤ this × m: a sparse product reads a row of the factor an edge."""
DENSE_POINTS = 10_000
"""Beyond so many it would take the room of a matrix that others need."""

_KEPT: WeakKeyDictionary[Any, dict[Any, Any]] = WeakKeyDictionary()
"""The edges of a fit are the same in every sweep."""


def multiply_laplacian(
    rows: Tensor, ends: Ends, weight: FloatArray, laplacian: Callable[[FloatArray], Any]
) -> Tensor:
    """L @ rows; of few points L is made here, from nothing but the weights."""
    n, m = len(rows), len(weight)
    if n > DENSE_POINTS or n * n > LAPLACIAN_SHARE * m:
        return multiply_sparse(laplacian(weight), rows)
    cells, there = kept(ends, rows.device, _cells, n), up(weight, rows.device)
    return dense_laplacians(there, cells, (1, n, n))[0] @ rows


@dataclass(frozen=True)
class Cells:
    """Where each edge lies in a flattened stack of matrices: row of the winner, column of the
    loser; and whether no two lie in the same place."""

    place: Tensor
    is_distinct: bool

    @classmethod
    def of(cls, place: Tensor) -> "Cells":
        """From the places alone."""
        return cls(place, len(torch.unique(place)) == len(place))


def _cells(ends: Ends, device: Any, n: int) -> Cells:
    return Cells.of(up(ends.winner * n + ends.loser, device))


def dense_laplacians(weight: Tensor, cells: Cells, shape: tuple[int, int, int]) -> Tensor:
    """Laplacians of a stack of graphs, from the weights of their edges."""
    directed = weight.new_zeros(shape)
    # with accumulate torch sorts on a card, which takes its time and keeps the order of sums
    directed.reshape(-1).index_put_((cells.place,), weight, accumulate=not cells.is_distinct)
    L = -directed
    L -= directed.mT
    L.diagonal(dim1=1, dim2=2).copy_(-L.sum(dim=2))
    return L


def edge_variances(half: Tensor, ends: Ends) -> FloatArray:
    """(m,) |half_w − half_l|², from blocks of the covariance, or by reading two columns an edge."""
    n, m = half.shape[1], len(ends.winner)
    if n * n <= GRAM_SHARE * m:
        return _variances_by_blocks(half, kept(ends, half.device, _plan, n))
    first, second = up(ends.winner, half.device), up(ends.loser, half.device)
    rows, var = half.T.contiguous(), half.new_empty(m)
    step = max(1, CHUNK // max(1, 4 * len(half)))
    for start in range(0, m, step):
        part = slice(start, start + step)
        difference = rows[first[part]]
        difference -= rows[second[part]]
        var[part] = torch.linalg.vector_norm(difference, dim=1).square_()
    return np.asarray(host(var))


@dataclass(frozen=True)
class _Plan:
    """Edges in the order of their later end, so that each block of covariances serves its own.

    cuts: where the edges of each block begin, and where those of the last end.
    """

    order: Tensor
    high: Tensor
    low: Tensor
    cuts: list[int]


def kept(places: Any, device: Any, make: Callable[..., T], *details: int) -> T:
    """What `make` works out of some edges or places, once for each device."""
    known = _KEPT.setdefault(places, {})
    key = (make, device, details)
    if key not in known:
        known[key] = make(places, device, *details)
    found: T = known[key]
    return found


def _plan(ends: Ends, device: Any, n: int) -> _Plan:
    winner, loser = up(ends.winner, device), up(ends.loser, device)
    high, order = torch.sort(torch.maximum(winner, loser), stable=True)
    low = torch.minimum(winner, loser)[order]
    stops = up(np.array([0, *(stop for _, stop in blocks(n))]), device)
    return _Plan(order, high, low, torch.searchsorted(high, stops).tolist())


def _variances_by_blocks(half: Tensor, plan: _Plan) -> FloatArray:
    diagonal, sorted_var = squares(half), half.new_empty(len(plan.order))
    for (start, stop), begin, end in zip(
        blocks(half.shape[1]), plan.cuts[:-1], plan.cuts[1:], strict=True
    ):
        covariance = half[:, start:stop].T @ half[:, :stop]
        a, b = plan.high[begin:end], plan.low[begin:end]
        sorted_var[begin:end] = diagonal[a] + diagonal[b] - 2.0 * covariance[a - start, b]
    var = torch.empty_like(sorted_var)
    var[plan.order] = sorted_var
    return np.asarray(host(var))
