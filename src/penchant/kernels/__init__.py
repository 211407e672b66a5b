"""Kernels: covariances between items from features and relations, with sums and products."""

# for other packages, and for kernels of your own
from penchant.kernels.base import Combination as Combination
from penchant.kernels.base import Constant, Independent, Kernel, Product, Sum, known_kernels
from penchant.kernels.base import Leaf as Leaf
from penchant.kernels.base import NotGiven as NotGiven
from penchant.kernels.base import positive as positive
from penchant.kernels.covariance import FreeCovariance, LowRankCovariance
from penchant.kernels.graph import (
    CommonCause,
    Diffusion,
    GraphKernel,
    RandomWalk,
    RegularizedLaplacian,
)
from penchant.kernels.graph import maximal_cliques as maximal_cliques
from penchant.kernels.inputs import Inputs, Relation
from penchant.kernels.relations import as_relations, bipartite, directed, undirected
from penchant.kernels.stationary import RBF, Linear, LinearRBF, Matern

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
    "LinearRBF",
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
