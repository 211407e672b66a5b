"""Model files: how they are written and read (archive), what may stand in them (schema), and what
every field must be (checks).

Names are loaded when first used: the schema knows all models, and few fits are saved.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penchant.models.store.archive import load as load
    from penchant.models.store.archive import save as save
    from penchant.models.store.schema import ESTIMATORS as ESTIMATORS
    from penchant.models.store.schema import KINDS as KINDS
    from penchant.models.store.schema import VERSION as VERSION
    from penchant.models.store.schema import estimator_classes as estimator_classes
    from penchant.models.store.schema import rebuilt as rebuilt

__all__ = ["ESTIMATORS", "KINDS", "VERSION", "estimator_classes", "load", "rebuilt", "save"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'penchant.models.store' has no attribute {name!r}")
    module = "archive" if name in ("load", "save") else "schema"
    return getattr(import_module(f"penchant.models.store.{module}"), name)
