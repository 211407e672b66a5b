"""What a comparison is: building, checking, merging, splitting.

Files become comparisons in `penchant.io`, a layer above. `Comparisons.from_frame` recognises tables
as `read_comparisons` does: it loads `penchant.io` by name when it is called.

Public names are in `__all__`; the others are for the packages above.
"""

from penchant.data.build import BAD_WORDS as BAD_WORDS
from penchant.data.build import BOTH_BAD as BOTH_BAD
from penchant.data.build import FALSE_WORDS as FALSE_WORDS
from penchant.data.build import MOST as MOST
from penchant.data.build import TRUE_WORDS as TRUE_WORDS
from penchant.data.build import UNREADABLE as UNREADABLE
from penchant.data.build import BrokenRow as BrokenRow
from penchant.data.build import CodedRows as CodedRows
from penchant.data.build import NameCodes as NameCodes
from penchant.data.build import build as build
from penchant.data.build import read_times as read_times
from penchant.data.build import settle as settle
from penchant.data.checks import check_all_ties, check_connected, check_never_compared
from penchant.data.choices import ChoiceStages as ChoiceStages
from penchant.data.choices import Rankings as Rankings
from penchant.data.choices import merge_rankings as merge_rankings
from penchant.data.comparisons import Comparisons
from penchant.data.names import Encoder as Encoder
from penchant.data.names import Lookup as Lookup
from penchant.data.names import Name as Name
from penchant.data.names import Names as Names
from penchant.data.names import as_column as as_column
from penchant.data.names import closest as closest
from penchant.data.names import is_missing as is_missing
from penchant.data.names import python_scalar as python_scalar
from penchant.data.names import whole_numbers as whole_numbers
from penchant.data.shards import BucketFiles, ShardedComparisons, bucket_of
from penchant.data.shards import n_buckets as n_buckets
from penchant.data.shards import picked_users as picked_users
from penchant.data.shards import side_by_side as side_by_side
from penchant.data.split import WholeAnswers as WholeAnswers
from penchant.data.table import Table as Table
from penchant.data.table import components as components

__all__ = [
    "BucketFiles",
    "Comparisons",
    "ShardedComparisons",
    "bucket_of",
    "check_all_ties",
    "check_connected",
    "check_never_compared",
]
