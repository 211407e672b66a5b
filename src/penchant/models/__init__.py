"""The estimators: parameters, fit, predict, rank, ask, tell, save."""

from penchant.models.choice_odds import foreseen_choices
from penchant.models.community_gp import CommunityGP
from penchant.models.defaults import Scaling, default_kernel, taste_kernel, utility_kernel
from penchant.models.estimator import BaseEstimator
from penchant.models.features import fitted_items, named_relations
from penchant.models.kpc_rank import KPCRank
from penchant.models.multi_user_gp import MultiUserGP
from penchant.models.preference_gp import PreferenceGP
from penchant.models.preference_perceptron import PreferencePerceptron
from penchant.models.rank_rls import RankRLS
from penchant.models.rank_svm import RankSVM
from penchant.models.ranking import RankedItem, Ranking, Tally
from penchant.models.validation import between, check_argument, in_order, whole

__all__ = [
    "BaseEstimator",
    "CommunityGP",
    "KPCRank",
    "MultiUserGP",
    "PreferenceGP",
    "PreferencePerceptron",
    "RankRLS",
    "RankSVM",
    "RankedItem",
    "Ranking",
    "Scaling",
    "Tally",
    "between",
    "check_argument",
    "default_kernel",
    "fitted_items",
    "foreseen_choices",
    "in_order",
    "named_relations",
    "taste_kernel",
    "utility_kernel",
    "whole",
]
