"""Model files: how they are written and read (archive), what may stand in them (schema), and what
every field must be (checks)."""

from penchant.models.store.archive import load, save
from penchant.models.store.schema import ESTIMATORS, KINDS, VERSION, estimator_classes, rebuilt

__all__ = ["ESTIMATORS", "KINDS", "VERSION", "estimator_classes", "load", "rebuilt", "save"]
