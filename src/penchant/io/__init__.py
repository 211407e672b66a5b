"""How files and data frames become comparisons, and how tables are written.

Public names are in `__all__`; the others are for the packages above.
"""

from penchant.io.formats.preflib import SUFFIXES as SUFFIXES
from penchant.io.formats.preflib import read_preflib as read_preflib
from penchant.io.formats.svmrank import GradedDocuments as GradedDocuments
from penchant.io.formats.svmrank import iter_svmrank as iter_svmrank
from penchant.io.formats.svmrank import read_svmrank as read_svmrank
from penchant.io.read import as_comparisons, read_comparisons, read_segments
from penchant.io.read import read_frame as read_frame
from penchant.io.recognise import SHAPES
from penchant.io.recognise import SPELLINGS as SPELLINGS
from penchant.io.recognise import WANTED as WANTED
from penchant.io.scan import scan_comparisons
from penchant.io.source import open_duck as open_duck
from penchant.io.tables import CellTable, Links, read_relation, read_table
from penchant.io.tables import read_arff as read_arff
from penchant.io.write import whole_file as whole_file
from penchant.io.write import write_parquet as write_parquet

__all__ = [
    "SHAPES",
    "CellTable",
    "Links",
    "as_comparisons",
    "read_comparisons",
    "read_relation",
    "read_segments",
    "read_table",
    "scan_comparisons",
]
