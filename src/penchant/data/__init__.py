"""Comparisons: building, checking, reading."""

from penchant.data.checks import check_all_ties, check_connected, check_never_compared
from penchant.data.coding import read_times
from penchant.data.comparisons import Comparisons
from penchant.data.expand import merge_rankings
from penchant.data.files import sync_folder, take_lock, whole_file
from penchant.data.formats.arff import read_arff
from penchant.data.formats.preflib import SUFFIXES, read_preflib
from penchant.data.formats.svmrank import GradedDocuments, iter_svmrank, read_svmrank
from penchant.data.graph import Differences, components
from penchant.data.names import Lookup, as_column, closest
from penchant.data.rankings import ChoiceStages, Rankings
from penchant.data.readers import as_comparisons, read_comparisons, read_segments
from penchant.data.recognise import SHAPES
from penchant.data.scanning import scan_comparisons
from penchant.data.shards import (
    BucketFiles,
    ShardedComparisons,
    bucket_of,
    picked_users,
    side_by_side,
)
from penchant.data.split import WholeAnswers
from penchant.data.table import Table
from penchant.data.tables import CellTable, Links, read_relation, read_table
from penchant.data.writing import write_parquet

__all__ = [
    "SHAPES",
    "SUFFIXES",
    "BucketFiles",
    "CellTable",
    "ChoiceStages",
    "Comparisons",
    "Differences",
    "GradedDocuments",
    "Links",
    "Lookup",
    "Rankings",
    "ShardedComparisons",
    "Table",
    "WholeAnswers",
    "as_column",
    "as_comparisons",
    "bucket_of",
    "check_all_ties",
    "check_connected",
    "check_never_compared",
    "closest",
    "components",
    "iter_svmrank",
    "merge_rankings",
    "picked_users",
    "read_arff",
    "read_comparisons",
    "read_preflib",
    "read_relation",
    "read_segments",
    "read_svmrank",
    "read_table",
    "read_times",
    "scan_comparisons",
    "side_by_side",
    "sync_folder",
    "take_lock",
    "whole_file",
    "write_parquet",
]
