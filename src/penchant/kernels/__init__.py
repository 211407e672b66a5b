"""Covariances between items: of their features, of their relations, and sums and products."""

from penchant.kernels.base import Constant, Kernel, Product, Sum, known_kernels
from penchant.kernels.covariance import FreeCovariance, LowRankCovariance
from penchant.kernels.graph import (
    CommonCause,
    Diffusion,
    GraphKernel,
    RandomWalk,
    RegularizedLaplacian,
)
from penchant.kernels.inputs import Inputs
from penchant.kernels.linear import Independent, Linear
from penchant.kernels.relations import Relation, as_relations, bipartite, directed, undirected
from penchant.kernels.stationary import RBF, Matern

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
