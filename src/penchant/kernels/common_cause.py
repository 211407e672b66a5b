"""Silva et al.'s kernel of hidden common causes."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import sparse

from penchant.errors import DataError
from penchant.kernels.base import positive
from penchant.kernels.graph import GraphKernel
from penchant.kernels.inputs import Inputs
from penchant.kernels.relations import Relation
from penchant.numerics.types import FloatArray, IntArray


@dataclass(frozen=True)
class CommonCause(GraphKernel):
    """Silva et al.'s hidden common causes: related items share unit-variance causes.

    U_ij = shared causes / √(causes of i · causes of j), so every item has the same variance,
    and an isolated item depends on nothing but itself. Weights play no part: a link is a link.

    Parameters
    ----------
    relation : str
        Name of the relation.
    variance : float
        Prior variance of a utility.
    per : "clique", "edge" or "auto"
        One cause a maximal clique, or one an edge; "auto" takes cliques unless they outnumber
        the edges.

    >>> from penchant.kernels import undirected
    >>> path = undirected([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> items = Inputs(relations={"path": path}, index=np.arange(3))
    >>> CommonCause("path")(items).round(3)
    array([[1. , 0.707, 0. ], [0.707, 1. , 0.707], [0. , 0.707, 1. ]])
    """

    relation: str
    variance: float = positive(1.0, 1e-5, 1e5)
    per: Literal["clique", "edge", "auto"] = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.per not in ("clique", "edge", "auto"):
            raise DataError(
                f'CommonCause: per is {self.per!r}: it must be "clique", "edge" or "auto"'
            )

    def _block(self, relation: Relation, rows: IntArray, columns: IntArray) -> FloatArray:
        loadings = self._loadings(relation)
        K: FloatArray = (loadings[rows] @ loadings[columns].T).toarray()
        K *= self.variance
        return K

    def _diag(self, A: Inputs) -> FloatArray:
        return np.full(len(A), self.variance)

    def _gradient(
        self, relation: Relation, rows: IntArray, columns: IntArray, G: FloatArray
    ) -> FloatArray:
        return np.array([np.vdot(G, self._block(relation, rows, columns))])

    def _loadings(self, relation: Relation) -> sparse.csr_array:
        """How much each item (row) takes from each cause: unit rows, so U has a unit diagonal."""
        if self.per == "auto":
            causes = relation.causes
        else:
            causes = relation.clique_causes if self.per == "clique" else relation.edge_causes
        return sparse.csr_array(sparse.diags_array(causes.sum(axis=1) ** -0.5) @ causes)
