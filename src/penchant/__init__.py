"""Learn what people prefer from comparisons.

Public names are loaded when first used, so `import penchant` is instant.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_NAMES_IN = {
    "data": ("Comparisons",),
    "io": ("read_comparisons", "scan_comparisons"),
    "models.preference_gp": ("PreferenceGP",),
    "models.multi_user_gp": ("MultiUserGP",),
    "models.community_gp": ("CommunityGP",),
    "models.rankers": ("RankRLS", "KPCRank", "RankSVM"),
    "models.preference_perceptron": ("PreferencePerceptron",),
    "models.store": ("load",),
    "workflow": ("encode", "choose_model", "evaluate", "report"),
    "errors": ("PenchantError", "DataError", "NumericalError", "ConvergenceWarning", "DataWarning"),
}
_NAMES = {name: module for module, names in _NAMES_IN.items() for name in names}
_MODULES = (
    *("ask", "data", "datasets", "io", "kernels", "likelihoods", "metrics", "online", "plots"),
    *("study", "workflow"),
)

if TYPE_CHECKING:
    __version__: str
    from penchant import ask as ask
    from penchant import data as data
    from penchant import datasets as datasets
    from penchant import io as io
    from penchant import kernels as kernels
    from penchant import likelihoods as likelihoods
    from penchant import metrics as metrics
    from penchant import online as online
    from penchant import plots as plots
    from penchant import workflow as workflow
    from penchant.data import Comparisons as Comparisons
    from penchant.errors import ConvergenceWarning as ConvergenceWarning
    from penchant.errors import DataError as DataError
    from penchant.errors import DataWarning as DataWarning
    from penchant.errors import NumericalError as NumericalError
    from penchant.errors import PenchantError as PenchantError
    from penchant.io import read_comparisons as read_comparisons
    from penchant.io import scan_comparisons as scan_comparisons
    from penchant.models.community_gp import CommunityGP as CommunityGP
    from penchant.models.multi_user_gp import MultiUserGP as MultiUserGP
    from penchant.models.preference_gp import PreferenceGP as PreferenceGP
    from penchant.models.preference_perceptron import PreferencePerceptron as PreferencePerceptron
    from penchant.models.rankers import KPCRank as KPCRank
    from penchant.models.rankers import RankRLS as RankRLS
    from penchant.models.rankers import RankSVM as RankSVM
    from penchant.models.store import load as load
    from penchant.workflow import choose_model as choose_model
    from penchant.workflow import encode as encode
    from penchant.workflow import evaluate as evaluate
    from penchant.workflow import report as report

__all__ = ["__version__", *_NAMES, *_MODULES]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            found: Any = version("penchant")
        except PackageNotFoundError:  # a source tree on the path, never installed
            found = "unknown"
    elif name in _NAMES:
        found = getattr(import_module(f"penchant.{_NAMES[name]}"), name)
    elif name in _MODULES:
        found = import_module(f"penchant.{name}")
    else:
        raise AttributeError(f"module 'penchant' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
