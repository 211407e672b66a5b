"""From a table to an answer: encode features, choose a model, compare models, write a report.

The functions behind the command line, for notebooks and programs. `choose_model`, `encode`,
`evaluate` and `report` are at the top of the package, too: `penchant.evaluate`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penchant.workflow.encoding import Encoded as Encoded
    from penchant.workflow.encoding import Encoding as Encoding
    from penchant.workflow.encoding import encode as encode
    from penchant.workflow.evaluation import BradleyTerry as BradleyTerry
    from penchant.workflow.evaluation import evaluate as evaluate
    from penchant.workflow.evaluation import hold_out as hold_out
    from penchant.workflow.models import KINDS as KINDS
    from penchant.workflow.models import Material as Material
    from penchant.workflow.models import as_model as as_model
    from penchant.workflow.models import choose_model as choose_model
    from penchant.workflow.models import trial_sample as trial_sample
    from penchant.workflow.reporting import report as report
    from penchant.workflow.segmenting import segments as segments

_NAMES = {
    "encoding": ("Encoded", "Encoding", "encode"),
    "evaluation": ("BradleyTerry", "evaluate", "hold_out"),
    "models": ("KINDS", "Material", "as_model", "choose_model", "trial_sample"),
    "reporting": ("report",),
    "segmenting": ("segments",),
}
_MODULE = {name: module for module, names in _NAMES.items() for name in names}

__all__ = ["choose_model", "encode", "evaluate", "report", "segments"]


def __getattr__(name: str) -> Any:
    if name in _MODULE:
        return getattr(import_module(f"penchant.workflow.{_MODULE[name]}"), name)
    raise AttributeError(f"module 'penchant.workflow' has no attribute {name!r}")
