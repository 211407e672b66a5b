"""Maximal cliques of a sparse graph."""

from collections.abc import Iterator
from itertools import islice

import numpy as np
from scipy import sparse

from penchant.numerics.types import IntArray


def maximal_cliques(adjacency: sparse.csr_array, limit: int | None = None) -> list[IntArray] | None:
    """Every maximal clique of two or more nodes; None when there are more than `limit`.

    Bron and Kerbosch's search with Tomita's pivot, sets of nodes as the bits of an integer.

    >>> path = sparse.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]))
    >>> [clique.tolist() for clique in maximal_cliques(path)]
    [[1, 2], [0, 1]]
    """
    neighbours = [
        sum(1 << int(j) for j in adjacency.indices[start:stop])
        for start, stop in zip(adjacency.indptr[:-1], adjacency.indptr[1:], strict=True)
    ]
    found = list(islice(_search(neighbours), None if limit is None else limit + 1))
    if limit is not None and len(found) > limit:
        return None
    return [np.array(clique, dtype=np.intp) for clique in found]


def _search(neighbours: list[int]) -> Iterator[list[int]]:
    """Depth first, on a stack of its own: a clique may be deeper than Python's recursion."""
    linked = sum(1 << i for i, mask in enumerate(neighbours) if mask)
    stack: list[tuple[list[int], int, int]] = [([], linked, 0)]
    while stack:
        clique, candidates, excluded = stack.pop()
        if not candidates:
            if clique and not excluded:
                yield sorted(clique)
            continue
        pivot = max(
            _nodes(candidates | excluded), key=lambda u: (candidates & neighbours[u]).bit_count()
        )
        for node in _nodes(candidates & ~neighbours[pivot]):
            near = neighbours[node]
            stack.append(([*clique, node], candidates & near, excluded & near))
            candidates ^= 1 << node
            excluded |= 1 << node


def _nodes(mask: int) -> Iterator[int]:
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
