"""From a table to an answer: encode features, choose a model, compare models, write a report.

What the command line does, for notebooks and programs; the functions are also at the top, such as
`penchant.evaluate`.
"""

from importlib import import_module
from typing import Any

_MODULE = {
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
