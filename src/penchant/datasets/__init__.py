"""Public data sets, read where they are present, and simulated ones whose truth is known."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penchant.datasets.football import League, load_football
    from penchant.datasets.items import (
        data_folder,
        load_cars,
        load_cora,
        load_movielens,
        load_mq2008,
        load_mslr_sample,
        load_ohsumed,
        load_parse_sample,
        load_preflib,
        load_regression,
        load_sushi_a,
        load_sushi_b,
    )
    from penchant.datasets.simulate import SimulatedStudy, simulate_pairs, simulate_study
    from penchant.io import GradedDocuments, iter_svmrank, read_arff, read_svmrank

__all__ = [
    "GradedDocuments",
    "League",
    "SimulatedStudy",
    "data_folder",
    "iter_svmrank",
    "load_cars",
    "load_cora",
    "load_football",
    "load_movielens",
    "load_mq2008",
    "load_mslr_sample",
    "load_ohsumed",
    "load_parse_sample",
    "load_preflib",
    "load_regression",
    "load_sushi_a",
    "load_sushi_b",
    "read_arff",
    "read_svmrank",
    "simulate_pairs",
    "simulate_study",
]

# These need scikit-learn or scipy.io, which a program that only compares should not wait for.
_LATER = {
    "penchant.io.tables": ("read_arff",),
    "penchant.datasets.simulate": ("SimulatedStudy", "simulate_pairs", "simulate_study"),
    "penchant.io.formats.svmrank": ("GradedDocuments", "iter_svmrank", "read_svmrank"),
    "penchant.datasets.football": ("League", "load_football"),
    "penchant.datasets.items": tuple(
        n for n in __all__ if n.startswith("load_") or n == "data_folder"
    ),
}


def __getattr__(name: str) -> Any:
    for module, names in _LATER.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
