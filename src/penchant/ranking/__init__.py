"""Kernel ranking (paper 001): graphs of comparisons, kernel features, and three rankers."""

from penchant.ranking.graph import (
    FeatureMap,
    Groups,
    OrderedPairs,
    Pairs,
    PreferenceGraph,
    disagreement,
    kernel_features,
)
from penchant.ranking.kpc_rank import (
    Selection,
    component_path,
    held_out_error,
    nested_cholesky,
    principal_components,
)
from penchant.ranking.rank_rls import RidgePath, leave_group_out, leave_out_error, ridge_path
from penchant.ranking.rank_svm import fit_rank_svm, training_pairs

__all__ = [
    "FeatureMap",
    "Groups",
    "OrderedPairs",
    "Pairs",
    "PreferenceGraph",
    "RidgePath",
    "Selection",
    "component_path",
    "disagreement",
    "fit_rank_svm",
    "held_out_error",
    "kernel_features",
    "leave_group_out",
    "leave_out_error",
    "nested_cholesky",
    "principal_components",
    "ridge_path",
    "training_pairs",
]
