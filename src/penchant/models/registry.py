"""Which classes a model file may contain, by name."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module

from penchant.kernels.base import known_kernels
from penchant.likelihoods import Likelihood

ESTIMATORS = {
    "CommunityGP": "penchant.models.community_gp",
    "KPCRank": "penchant.models.kpc_rank",
    "MultiUserGP": "penchant.models.multi_user_gp",
    "PreferenceGP": "penchant.models.preference_gp",
    "PreferencePerceptron": "penchant.models.preference_perceptron",
    "RankRLS": "penchant.models.rank_rls",
    "RankSVM": "penchant.models.rank_svm",
}
"""Every estimator and the module that defines it; a module is imported when first needed."""

VALUES = {
    "Basis": "penchant.gp",
    "Chain": "penchant.communities.chains",
    "ChainState": "penchant.communities.samplers",
    "Comparisons": "penchant.data",
    "Diagnostics": "penchant.communities.diagnostics",
    "Draw": "penchant.communities.draws",
    "Draws": "penchant.communities.draws",
    "FeatureColumns": "penchant.models.features",
    "FreeCovariance": "penchant.kernels.free",
    "Inputs": "penchant.kernels",
    "Kept": "penchant.gp.users.sparse",
    "Posterior": "penchant.gp",
    "Relation": "penchant.kernels",
    "Report": "penchant.gp",
    "Scaling": "penchant.models.defaults",
    "Sites": "penchant.gp",
    "UserPosteriors": "penchant.gp.users.posterior",
    "VoteSites": "penchant.gp.users.votes",
}
"""The plain value classes that estimators hold; kernels and likelihoods are found by themselves."""


@cache
def estimator_classes() -> dict[str, type]:
    """Estimators by name."""
    return _imported(ESTIMATORS)


@cache
def value_classes() -> dict[str, type]:
    """Value classes by name."""
    return {
        **_imported(VALUES),
        **known_kernels(),
        **{cls.__name__: cls for cls in Likelihood.__subclasses__()},
    }


def _imported(modules: Mapping[str, str]) -> dict[str, type]:
    return {name: getattr(import_module(module), name) for name, module in modules.items()}
