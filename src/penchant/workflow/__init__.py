"""From a table to an answer: encode features, choose a model, compare models, write a report.

What the command line does, for notebooks and programs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penchant.workflow.choosing import Choice as Choice
    from penchant.workflow.choosing import choose_model as choose_model
    from penchant.workflow.encoding import Encoded as Encoded
    from penchant.workflow.encoding import encode as encode
    from penchant.workflow.evaluation import Evaluation as Evaluation
    from penchant.workflow.evaluation import evaluate as evaluate
    from penchant.workflow.reporting import report as report

_MODULE = {
    "Choice": "choosing",
    "Encoded": "encoding",
    "Evaluation": "evaluation",
    "choose_model": "choosing",
    "encode": "encoding",
    "evaluate": "evaluation",
    "report": "reporting",
}

__all__ = list(_MODULE)


def __getattr__(name: str) -> Any:
    if name in _MODULE:
        return getattr(import_module(f"penchant.workflow.{_MODULE[name]}"), name)
    raise AttributeError(f"module 'penchant.workflow' has no attribute {name!r}")
