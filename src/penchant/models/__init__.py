"""The estimators: parameters, fit, predict, rank, ask, tell, save.

Names are loaded when first used: a command that lists its options should not wait for all models.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penchant.models.base import BaseEstimator as BaseEstimator
    from penchant.models.base import UtilityModel as UtilityModel
    from penchant.models.community_gp import CommunityGP as CommunityGP
    from penchant.models.community_report import Community as Community
    from penchant.models.community_report import Disagreement as Disagreement
    from penchant.models.community_report import ItemView as ItemView
    from penchant.models.defaults import default_kernel as default_kernel
    from penchant.models.defaults import taste_kernel as taste_kernel
    from penchant.models.defaults import utility_kernel as utility_kernel
    from penchant.models.features import FeatureColumns as FeatureColumns
    from penchant.models.features import Scaling as Scaling
    from penchant.models.features import fitted_items as fitted_items
    from penchant.models.features import in_order as in_order
    from penchant.models.features import named_relations as named_relations
    from penchant.models.multi_user_gp import MultiUserGP as MultiUserGP
    from penchant.models.outcomes import OutcomeProbabilities as OutcomeProbabilities
    from penchant.models.outcomes import choice_log_predictive as choice_log_predictive
    from penchant.models.parameters import between as between
    from penchant.models.parameters import check_argument as check_argument
    from penchant.models.parameters import whole as whole
    from penchant.models.preference_gp import PreferenceGP as PreferenceGP
    from penchant.models.preference_perceptron import PreferencePerceptron as PreferencePerceptron
    from penchant.models.rankers import KPCRank as KPCRank
    from penchant.models.rankers import RankRLS as RankRLS
    from penchant.models.rankers import RankSVM as RankSVM
    from penchant.models.store import estimator_classes as estimator_classes
    from penchant.models.store import load as load
    from penchant.models.store import save as save
    from penchant.models.tables import Effect as Effect
    from penchant.models.tables import Effects as Effects
    from penchant.models.tables import RankedItem as RankedItem
    from penchant.models.tables import Ranking as Ranking
    from penchant.models.tables import Rater as Rater
    from penchant.models.tables import RaterTable as RaterTable
    from penchant.models.tables import RowTable as RowTable
    from penchant.models.tables import Tally as Tally

_MODULE = {
    "BaseEstimator": "base",
    "Community": "community_report",
    "CommunityGP": "community_gp",
    "Disagreement": "community_report",
    "Effect": "tables",
    "Effects": "tables",
    "FeatureColumns": "features",
    "ItemView": "community_report",
    "KPCRank": "rankers",
    "MultiUserGP": "multi_user_gp",
    "OutcomeProbabilities": "outcomes",
    "PreferenceGP": "preference_gp",
    "PreferencePerceptron": "preference_perceptron",
    "RankRLS": "rankers",
    "RankSVM": "rankers",
    "RankedItem": "tables",
    "Ranking": "tables",
    "Rater": "tables",
    "RaterTable": "tables",
    "RowTable": "tables",
    "Scaling": "features",
    "Tally": "tables",
    "UtilityModel": "base",
    "between": "parameters",
    "check_argument": "parameters",
    "default_kernel": "defaults",
    "estimator_classes": "store",
    "fitted_items": "features",
    "choice_log_predictive": "outcomes",
    "in_order": "features",
    "load": "store",
    "named_relations": "features",
    "save": "store",
    "taste_kernel": "defaults",
    "utility_kernel": "defaults",
    "whole": "parameters",
}

__all__ = list(_MODULE)


def __getattr__(name: str) -> Any:
    if name in _MODULE:
        return getattr(import_module(f"penchant.models.{_MODULE[name]}"), name)
    raise AttributeError(f"module 'penchant.models' has no attribute {name!r}")
