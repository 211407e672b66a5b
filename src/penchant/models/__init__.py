"""The estimators: parameters, fit, predict, rank, ask, tell, save.

Names are loaded when first used: a command that lists its options should not wait for all models.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penchant.models.base import UtilityModel as UtilityModel
    from penchant.models.community_gp import CommunityGP as CommunityGP
    from penchant.models.community_report import Community as Community
    from penchant.models.community_report import Disagreement as Disagreement
    from penchant.models.community_report import ItemView as ItemView
    from penchant.models.defaults import default_kernel as default_kernel
    from penchant.models.defaults import utility_kernel as utility_kernel
    from penchant.models.features import FeatureColumns as FeatureColumns
    from penchant.models.features import Scaling as Scaling
    from penchant.models.features import fitted_items as fitted_items
    from penchant.models.features import in_order as in_order
    from penchant.models.features import named_relations as named_relations
    from penchant.models.multi_user_gp import MultiUserGP as MultiUserGP
    from penchant.models.multi_user_gp import taste_kernel as taste_kernel
    from penchant.models.parameters import Estimator as Estimator
    from penchant.models.parameters import between as between
    from penchant.models.parameters import check_argument as check_argument
    from penchant.models.parameters import whole as whole
    from penchant.models.predictive import OutcomeProbabilities as OutcomeProbabilities
    from penchant.models.predictive import choice_log_predictive as choice_log_predictive
    from penchant.models.preference_gp import PreferenceGP as PreferenceGP
    from penchant.models.preference_perceptron import PreferencePerceptron as PreferencePerceptron
    from penchant.models.rankers import KPCRank as KPCRank
    from penchant.models.rankers import RankRLS as RankRLS
    from penchant.models.rankers import RankSVM as RankSVM
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

_NAMES = {
    "base": "UtilityModel",
    "community_gp": "CommunityGP",
    "community_report": "Community Disagreement ItemView",
    "defaults": "balanced_kernel default_kernel difference_variance share_of_ties typical_variance "
    "utility_kernel",
    "features": "FeatureColumns Scaling fitted_items in_order named_relations",
    "graph_agreement": "graph_feature_agreement relation_weight",
    "multi_user_gp": "MultiUserGP not_tried sharing_kernel taste_kernel",
    "parameters": "Estimator between check_argument whole",
    "predictive": "OutcomeProbabilities choice_log_predictive",
    "preference_gp": "PreferenceGP",
    "preference_perceptron": "PreferencePerceptron",
    "rankers": "KPCRank RankRLS RankSVM",
    "store": "estimator_classes load save",
    "tables": "Effect Effects RankedItem Ranking Rater RaterTable RowTable Tally elo_per_unit "
    "shares source_name",
}
_MODULE = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = list(_MODULE)


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module 'penchant.models' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"penchant.models.{_MODULE[name]}"), name)
    return found
