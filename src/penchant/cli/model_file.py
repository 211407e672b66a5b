"""Model files of the command line: what `model.save` writes, and beside it the items' features.

The file stays a penchant model that `penchant.load` reads; the addition lets the command line
match new tables to the columns that the model was fitted with.
"""

import io
import json
import os
import tempfile
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import penchant as pc
from penchant.workflow.encoding import Encoded, Encoding
from penchant.workflow.models import as_model, name_of

SUFFIX = ".penchant"
_ENCODING, _FEATURES = "study.json", "features.npy"


@dataclass(frozen=True)
class FittedModel:
    """A model that has learned, and the items' features where they came from a table."""

    model: Any
    X: Encoded | None
    why: str = ""

    @property
    def name(self) -> str:
        """What it is called on the command line."""
        return name_of(self.model)

    @property
    def data(self) -> pc.Comparisons:
        """What it learned from."""
        data: pc.Comparisons = self.model.comparisons_
        return data


def save(fitted: FittedModel, path: str) -> None:
    """Write one file, whole or not at all."""
    target = Path(path)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".penchant-") as folder:
        scratch = Path(folder) / target.name
        fitted.model.save(scratch)
        if fitted.X is not None:
            buffer = io.BytesIO()
            np.save(buffer, fitted.X.values, allow_pickle=False)
            with zipfile.ZipFile(scratch, "a") as archive:
                content = {"item_encoding": asdict(fitted.X.encoding)}
                archive.writestr(_ENCODING, json.dumps(content))
                archive.writestr(_FEATURES, buffer.getvalue())
        os.replace(scratch, target)


def load(path: str) -> FittedModel:
    """Read what `save` wrote, or what a model's own `save` wrote."""
    model = as_model(pc.load(path))
    try:
        names = model.comparisons_.items
    except AttributeError:
        raise pc.DataError(
            f"{path} holds a {name_of(model)} model without the names of its items: fit it with "
            "`penchant fit`, or use it in Python"
        ) from None
    try:
        with zipfile.ZipFile(path) as archive:
            return FittedModel(model, _read_features(archive, names))
    except (KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise pc.DataError(f"{path} is damaged ({error}): fit the model again") from None


def _read_features(archive: zipfile.ZipFile, names: tuple[Any, ...]) -> Encoded | None:
    if not {_ENCODING, _FEATURES} <= set(archive.namelist()):
        return None
    fields = json.loads(archive.read(_ENCODING))["item_encoding"]
    if fields is None:
        return None
    values = np.load(io.BytesIO(archive.read(_FEATURES)), allow_pickle=False)
    return Encoded(values, names, Encoding.from_dict(fields))
