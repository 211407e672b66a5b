"""Comparisons: building, checking, reading."""

from penchant.data.checks import check_all_ties, check_connected, check_never_compared
from penchant.data.comparisons import Comparisons
from penchant.data.readers import read_comparisons

__all__ = [
    "Comparisons",
    "check_all_ties",
    "check_connected",
    "check_never_compared",
    "read_comparisons",
]
