"""Kernel ranking (paper 001): graphs of comparisons, kernel features, and three rankers."""

from penchant.ranking.graph import FeatureMap as FeatureMap
from penchant.ranking.graph import Groups as Groups
from penchant.ranking.graph import Pairs as Pairs
from penchant.ranking.graph import PreferenceGraph as PreferenceGraph
from penchant.ranking.graph import disagreement as disagreement
from penchant.ranking.graph import kernel_features as kernel_features
from penchant.ranking.kpc_rank import Selection as Selection
from penchant.ranking.kpc_rank import component_path as component_path
from penchant.ranking.kpc_rank import held_out_error as held_out_error
from penchant.ranking.kpc_rank import nested_cholesky as nested_cholesky
from penchant.ranking.kpc_rank import principal_components as principal_components
from penchant.ranking.rank_rls import leave_group_out as leave_group_out
from penchant.ranking.rank_rls import leave_out_error as leave_out_error
from penchant.ranking.rank_rls import ridge_path as ridge_path
from penchant.ranking.rank_svm import fit_rank_svm as fit_rank_svm
from penchant.ranking.rank_svm import training_pairs as training_pairs
