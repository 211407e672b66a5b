"""Comparisons: building, checking, reading."""

from penchant.data.checks import check_all_ties, check_connected, check_never_compared
from penchant.data.comparisons import Comparisons
from penchant.data.readers import as_comparisons, read_comparisons, read_segments
from penchant.data.recognise import SHAPES
from penchant.data.scanning import scan_comparisons
from penchant.data.shards import BucketFiles, ShardedComparisons, bucket_of
from penchant.data.tables import CellTable, Links, read_relation, read_table

__all__ = [
    "SHAPES",
    "BucketFiles",
    "CellTable",
    "Comparisons",
    "Links",
    "ShardedComparisons",
    "as_comparisons",
    "bucket_of",
    "check_all_ties",
    "check_connected",
    "check_never_compared",
    "read_comparisons",
    "read_relation",
    "read_segments",
    "read_table",
    "scan_comparisons",
]
