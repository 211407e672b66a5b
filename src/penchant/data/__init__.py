"""Comparisons: building, checking, reading."""

from penchant.data.checks import check_all_ties, check_connected, check_never_compared
from penchant.data.comparisons import Comparisons
from penchant.data.readers import as_comparisons, read_comparisons
from penchant.data.recognise import SHAPES

__all__ = [
    "SHAPES",
    "Comparisons",
    "as_comparisons",
    "check_all_ties",
    "check_connected",
    "check_never_compared",
    "read_comparisons",
]
