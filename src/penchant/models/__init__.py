"""The estimators: parameters, fit, predict, rank, ask, tell, save."""

from penchant.models.base import UtilityModel
from penchant.models.community_gp import CommunityGP
from penchant.models.community_report import Community, Disagreement, ItemView
from penchant.models.defaults import default_kernel, taste_kernel, utility_kernel
from penchant.models.features import (
    FeatureColumns,
    Scaling,
    fitted_items,
    in_order,
    named_relations,
)
from penchant.models.multi_user_gp import MultiUserGP
from penchant.models.outcomes import OutcomeProbabilities, foreseen_choices
from penchant.models.parameters import BaseEstimator, between, check_argument, whole
from penchant.models.preference_gp import PreferenceGP
from penchant.models.preference_perceptron import PreferencePerceptron
from penchant.models.rankers import KPCRank, RankRLS, RankSVM
from penchant.models.store import estimator_classes, load, save
from penchant.models.tables import Effect, Effects, RankedItem, Ranking, Rater, RaterTable, Tally

__all__ = [
    "BaseEstimator",
    "Community",
    "CommunityGP",
    "Disagreement",
    "Effect",
    "Effects",
    "FeatureColumns",
    "ItemView",
    "KPCRank",
    "MultiUserGP",
    "OutcomeProbabilities",
    "PreferenceGP",
    "PreferencePerceptron",
    "RankRLS",
    "RankSVM",
    "RankedItem",
    "Ranking",
    "Rater",
    "RaterTable",
    "Scaling",
    "Tally",
    "UtilityModel",
    "between",
    "check_argument",
    "default_kernel",
    "estimator_classes",
    "fitted_items",
    "foreseen_choices",
    "in_order",
    "load",
    "named_relations",
    "save",
    "taste_kernel",
    "utility_kernel",
    "whole",
]
