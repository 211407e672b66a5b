"""Comparisons: building, checking, reading."""

from penchant.data.checks import check_all_ties, check_connected, check_never_compared
from penchant.data.comparisons import Comparisons
from penchant.data.readers import as_comparisons, read_comparisons, read_segments
from penchant.data.recognise import SHAPES
from penchant.data.tables import CellTable, Links, read_relation, read_table

__all__ = [
    "SHAPES",
    "CellTable",
    "Comparisons",
    "Links",
    "as_comparisons",
    "check_all_ties",
    "check_connected",
    "check_never_compared",
    "read_comparisons",
    "read_relation",
    "read_segments",
    "read_table",
]
