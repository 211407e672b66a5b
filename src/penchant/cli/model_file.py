"""Model files of the command line: what `model.save` writes, and beside it names and features.

The file stays a penchant model that `penchant.load` reads; the addition lets the command line
match new tables to the columns that the model was fitted with.
"""

import io
import json
import os
import tempfile
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import penchant as pc
from penchant.cli.features import Encoding
from penchant.cli.models import MODELS, Fitted

SUFFIX = ".penchant"
_NAMES, _FEATURES = "study.json", "features.npy"


def save(fitted: Fitted, path: str) -> None:
    """Write one file, whole or not at all."""
    target = Path(path)
    encoding = fitted.item_encoding
    names = {
        "kind": fitted.kind,
        "items": list(fitted.items),
        "users": list(fitted.users),
        "item_encoding": None if encoding is None else asdict(encoding),
    }
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".penchant-") as folder:
        scratch = Path(folder) / target.name
        fitted.model.save(scratch)
        with zipfile.ZipFile(scratch, "a") as archive:
            archive.writestr(_NAMES, json.dumps(names))
            if fitted.X is not None:
                buffer = io.BytesIO()
                np.save(buffer, fitted.X, allow_pickle=False)
                archive.writestr(_FEATURES, buffer.getvalue())
        os.replace(scratch, target)


def load(path: str) -> Fitted:
    """Read what `save` wrote, or what a model's own `save` wrote."""
    model = pc.load(path)
    try:
        with zipfile.ZipFile(path) as archive:
            return _read(model, archive, path)
    except (KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        if isinstance(error, pc.DataError):
            raise
        raise pc.DataError(f"{path} is damaged ({error}): fit the model again") from None


def _read(model: Any, archive: zipfile.ZipFile, path: str) -> Fitted:
    members = set(archive.namelist())
    names = json.loads(archive.read(_NAMES)) if _NAMES in members else _names_of(model, path)
    X = None
    if _FEATURES in members:
        X = np.load(io.BytesIO(archive.read(_FEATURES)), allow_pickle=False)
    encoding = names["item_encoding"]
    return Fitted(
        names["kind"],
        model,
        tuple(names["items"]),
        tuple(names["users"]),
        X,
        None if encoding is None else Encoding.from_dict(encoding),
    )


def _names_of(model: Any, path: str) -> dict[str, Any]:
    """For a model that was saved in Python: it must know its items itself."""
    kinds = {estimator: kind for kind, estimator in MODELS.items()}
    kind = kinds.get(type(model).__name__)
    data = getattr(model, "comparisons_", None)
    if kind is None or data is None:
        raise pc.DataError(
            f"{path} holds a {type(model).__name__} without the names of its items: fit it with "
            "`penchant fit`, or use it in Python"
        )
    return {"kind": kind, "items": data.items, "users": data.users, "item_encoding": None}
