"""Comparisons: building, checking, reading, simulating; loaders of public data sets."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from penchant.data.checks import check_all_ties, check_connected, check_never_compared
from penchant.data.comparisons import Comparisons
from penchant.data.readers import read_comparisons

if TYPE_CHECKING:
    from penchant.data.arff import read_arff
    from penchant.data.datasets import (
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
    from penchant.data.simulate import Study, simulate_pairs, simulate_study
    from penchant.data.svmrank import GradedDocuments, iter_svmrank, read_svmrank

__all__ = [
    "Comparisons",
    "GradedDocuments",
    "Study",
    "check_all_ties",
    "check_connected",
    "check_never_compared",
    "data_folder",
    "iter_svmrank",
    "load_cars",
    "load_cora",
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
    "read_comparisons",
    "read_svmrank",
    "simulate_pairs",
    "simulate_study",
]

# These need scikit-learn or scipy.io, which a program that only compares should not wait for.
_LATER = {
    "arff": ("read_arff",),
    "simulate": ("Study", "simulate_pairs", "simulate_study"),
    "svmrank": ("GradedDocuments", "iter_svmrank", "read_svmrank"),
    "datasets": tuple(n for n in __all__ if n.startswith("load_") or n == "data_folder"),
}


def __getattr__(name: str) -> Any:
    for module, names in _LATER.items():
        if name in names:
            return getattr(import_module(f"penchant.data.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
