"""Kernels: covariances between items from features and relations, with sums and products."""

# for other packages, and for kernels of your own
from penchant.kernels.base import Combination as Combination
from penchant.kernels.base import Constant, Kernel, Product, Sum, known_kernels
from penchant.kernels.base import Leaf as Leaf
from penchant.kernels.base import NotGiven as NotGiven
from penchant.kernels.base import positive as positive
from penchant.kernels.covariance import FreeCovariance, Independent, LowRankCovariance
from penchant.kernels.graph import (
    CommonCause,
    Diffusion,
    GraphKernel,
    RandomWalk,
    RegularizedLaplacian,
)
from penchant.kernels.graph import maximal_cliques as maximal_cliques
from penchant.kernels.inputs import Features as Features
from penchant.kernels.inputs import Inputs, Relation
from penchant.kernels.inputs import Names as Names
from penchant.kernels.inputs import as_dense as as_dense
from penchant.kernels.inputs import column_names as column_names
from penchant.kernels.inputs import is_numbered as is_numbered
from penchant.kernels.inputs import row_names as row_names
from penchant.kernels.relations import as_relations, bipartite, directed, undirected
from penchant.kernels.stationary import LEAVING_PULL as LEAVING_PULL
from penchant.kernels.stationary import MANY_FEATURES as MANY_FEATURES
from penchant.kernels.stationary import RBF, Linear, Matern
from penchant.kernels.stationary import Stationary as Stationary

__all__ = [
    "RBF",
    "CommonCause",
    "Constant",
    "Diffusion",
    "FreeCovariance",
    "GraphKernel",
    "Independent",
    "Inputs",
    "Kernel",
    "Linear",
    "LowRankCovariance",
    "Matern",
    "Product",
    "RandomWalk",
    "RegularizedLaplacian",
    "Relation",
    "Sum",
    "as_relations",
    "bipartite",
    "directed",
    "known_kernels",
    "undirected",
]
