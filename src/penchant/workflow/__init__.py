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

_MODULE = {
    "KINDS": "models",
    "BradleyTerry": "evaluation",
    "Encoded": "encoding",
    "Encoding": "encoding",
    "Material": "models",
    "as_model": "models",
    "choose_model": "models",
    "encode": "encoding",
    "evaluate": "evaluation",
    "hold_out": "evaluation",
    "report": "reporting",
    "segments": "segmenting",
    "trial_sample": "models",
}

__all__ = list(_MODULE)


def __getattr__(name: str) -> Any:
    if name in _MODULE:
        return getattr(import_module(f"penchant.workflow.{_MODULE[name]}"), name)
    raise AttributeError(f"module 'penchant.workflow' has no attribute {name!r}")
