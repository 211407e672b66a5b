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
    "Basis": "penchant.inference",
    "Chain": "penchant.people.community",
    "ChainState": "penchant.people.samplers",
    "Comparisons": "penchant.data",
    "Diagnostics": "penchant.people.community_diagnostics",
    "Draw": "penchant.people.community_draws",
    "Draws": "penchant.people.community_draws",
    "FeatureColumns": "penchant.models.features",
    "FreeCovariance": "penchant.people.free",
    "Inputs": "penchant.kernels",
    "Kept": "penchant.people.sparse",
    "Posterior": "penchant.inference",
    "Relation": "penchant.kernels",
    "Report": "penchant.inference",
    "Scaling": "penchant.models.defaults",
    "Sites": "penchant.inference",
    "UserPosteriors": "penchant.people.posterior",
    "VoteSites": "penchant.people.votes",
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
