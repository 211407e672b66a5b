"""Which classes a model file may contain, by name."""

from functools import cache
from importlib import import_module

from penchant.data import Comparisons
from penchant.inference import Basis, Posterior, Report, Sites
from penchant.kernels import Inputs, Relation
from penchant.kernels.base import known_kernels
from penchant.likelihoods import Likelihood
from penchant.models.defaults import Scaling

ESTIMATORS = {
    "KPCRank": "penchant.models.kpc_rank",
    "PreferenceGP": "penchant.models.preference_gp",
    "PreferencePerceptron": "penchant.models.preference_perceptron",
    "RankRLS": "penchant.models.rank_rls",
    "RankSVM": "penchant.models.rank_svm",
}
"""Every estimator and the module that defines it; a module is imported when first needed."""


@cache
def estimator_classes() -> dict[str, type]:
    """Estimators by name."""
    return {name: getattr(import_module(module), name) for name, module in ESTIMATORS.items()}


@cache
def value_classes() -> dict[str, type]:
    """Plain value classes by name: what estimators hold."""
    values = (Basis, Comparisons, Inputs, Posterior, Relation, Report, Scaling, Sites)
    return {
        **{cls.__name__: cls for cls in values},
        **known_kernels(),
        **{cls.__name__: cls for cls in Likelihood.__subclasses__()},
    }
