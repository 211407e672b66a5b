"""Public data sets, read where they are present, and simulated ones whose truth is known."""

from penchant.datasets.published import REGRESSION_ROWS as REGRESSION_ROWS
from penchant.datasets.published import Cars as Cars
from penchant.datasets.published import Cora as Cora
from penchant.datasets.published import GradedParts as GradedParts
from penchant.datasets.published import (
    League,
    data_folder,
    load_cars,
    load_cora,
    load_football,
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
from penchant.datasets.published import MovieLens as MovieLens
from penchant.datasets.published import Regression as Regression
from penchant.datasets.published import Sushi as Sushi
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


def __dir__() -> list[str]:
    return sorted(__all__)
