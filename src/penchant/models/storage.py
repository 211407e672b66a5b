"""Saving and loading fitted models: one zip of JSON and arrays, no pickle.

A value is a JSON scalar, a list, a dictionary, or one of: an array, a sparse matrix, a tuple, a
random generator, a dataclass or an estimator of penchant. Classes are found in an allow-list by
name, so a file can only ever make objects of this package.
"""

import io
import json
import math
import os
import zipfile
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from penchant.errors import DataError
from penchant.models.registry import estimator_classes, value_classes

FORMAT = "penchant model"
VERSION = 1


def save(model: BaseEstimator, path: str | PathLike[str]) -> None:
    """Write a fitted estimator to `path`, atomically.

    >>> import penchant as pc, tempfile, os
    >>> data = pc.Comparisons.from_pairs(["a", "a"], ["b", "c"])
    >>> gp = pc.PreferenceGP(optimize=None).fit(None, data)
    >>> file = os.path.join(tempfile.mkdtemp(), "model.penchant")
    >>> gp.save(file)
    >>> bool((pc.load(file).predict() == gp.predict()).all())
    True
    """
    shelf = _Shelf()
    header = {"format": FORMAT, "version": VERSION, "model": _encode(model, shelf)}
    target = Path(path)
    scratch = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        with zipfile.ZipFile(scratch, "w") as archive:
            archive.writestr("model.json", json.dumps(header, allow_nan=False))
            for k, array in enumerate(shelf.arrays):
                with archive.open(f"{k}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)
        os.replace(scratch, target)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


def load(path: str | PathLike[str]) -> Any:
    """Read a model that `save` wrote. A damaged or foreign file is a DataError."""
    name = os.fspath(path)
    try:
        with zipfile.ZipFile(name) as archive:
            if any(info.compress_type != zipfile.ZIP_STORED for info in archive.infolist()):
                raise DataError(f"{name} holds compressed members: it is not a penchant model")
            header = json.loads(archive.read("model.json"))
            _check_header(header, name)
            return _decode(header["model"], _Reader(archive))
    except FileNotFoundError:
        raise DataError(f"there is no file {name}: check the path") from None
    except DataError:
        raise
    except Exception as error:
        raise DataError(
            f"{name} cannot be read as a penchant model ({type(error).__name__}: {error}): it is "
            "damaged, truncated, or of another kind; save the model again"
        ) from None


def _check_header(header: Any, name: str) -> None:
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise DataError(f"{name} is not a penchant model: its header says something else")
    if header.get("version") != VERSION:
        raise DataError(
            f"{name} was written in format version {header.get('version')!r} and this penchant "
            f"reads version {VERSION}: install the penchant that wrote it"
        )


class _Shelf:
    """Arrays and objects written so far, by identity: what was shared stays shared."""

    def __init__(self) -> None:
        self.arrays: list[np.ndarray[Any, Any]] = []
        self.positions: dict[int, int] = {}
        self.objects: dict[int, int] = {}

    def place(self, array: np.ndarray[Any, Any]) -> int:
        if id(array) not in self.positions:
            self.positions[id(array)] = len(self.arrays)
            self.arrays.append(array)
        return self.positions[id(array)]


class _Reader:
    """The archive being read, and the objects read so far by number."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self.archive = archive
        self.objects: dict[int, Any] = {}

    def array(self, number: int) -> Any:
        content = io.BytesIO(self.archive.read(f"{number}.npy"))
        return np.load(content, allow_pickle=False)


def _encode(value: Any, shelf: _Shelf) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(value)}
    if isinstance(value, np.generic):
        return _encode(value.item(), shelf)
    if isinstance(value, np.ndarray) and value.dtype == object:
        return {"$objects": _encode(value.tolist(), shelf)}
    if isinstance(value, np.ndarray):
        return {"$array": shelf.place(value)}
    if sparse.issparse(value):
        csr = value.tocsr()
        parts = [_encode(part, shelf) for part in (csr.data, csr.indices, csr.indptr)]
        return {"$sparse": parts, "shape": list(csr.shape)}
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return {"$tuple": [_encode(part, shelf) for part in value]}
    if isinstance(value, list):
        return [_encode(part, shelf) for part in value]
    if isinstance(value, Mapping):
        return {"$dict": [[key, _encode(part, shelf)] for key, part in value.items()]}
    if isinstance(value, np.random.Generator):
        return {"$generator": value.bit_generator.state}
    return _encode_object(value, shelf)


def _encode_object(value: Any, shelf: _Shelf) -> Any:
    name, kind = type(value).__name__, type(value)
    if estimator_classes().get(name) is kind:
        state = {key: v for key, v in vars(value).items() if key.endswith("_")}
        params = value.get_params(deep=False)
        return {
            "$estimator": name,
            "params": {key: _encode(v, shelf) for key, v in params.items()},
            "state": {key: _encode(v, shelf) for key, v in state.items()},
        }
    if value_classes().get(name) is kind:
        if id(value) in shelf.objects:
            return {"$same": shelf.objects[id(value)]}
        number = shelf.objects[id(value)] = len(shelf.objects)
        return {
            "$class": name,
            "number": number,
            "fields": {key: _encode(getattr(value, key), shelf) for key in _field_names(value)},
        }
    raise DataError(
        f"a value of type {type(value).__module__}.{name} cannot be saved: models with custom "
        "callables or foreign objects have to be rebuilt in code"
    )


def _field_names(value: Any) -> list[str]:
    if is_dataclass(value):
        return [field.name for field in fields(value) if field.init]
    return list(value._fields)  # a NamedTuple


def _decode(tree: Any, reader: _Reader) -> Any:
    if isinstance(tree, list):
        return [_decode(part, reader) for part in tree]
    if not isinstance(tree, dict):
        return tree
    if "$float" in tree:
        return float(tree["$float"])
    if "$array" in tree:
        return reader.array(int(tree["$array"]))
    if "$objects" in tree:
        return np.array(_decode(tree["$objects"], reader), dtype=object)
    if "$sparse" in tree:
        parts = tuple(_decode(part, reader) for part in tree["$sparse"])
        return sparse.csr_array(parts, shape=tuple(tree["shape"]))
    if "$tuple" in tree:
        return tuple(_decode(part, reader) for part in tree["$tuple"])
    if "$dict" in tree:
        return {key: _decode(part, reader) for key, part in tree["$dict"]}
    if "$generator" in tree:
        state = tree["$generator"]
        if state["bit_generator"] != "PCG64":
            raise DataError(f"unknown random generator {state['bit_generator']!r} in the file")
        bits = np.random.PCG64()
        bits.state = state
        return np.random.Generator(bits)
    if "$same" in tree:
        return reader.objects[tree["$same"]]
    if "$class" in tree:
        cls = value_classes()[tree["$class"]]
        value = cls(**{key: _decode(part, reader) for key, part in tree["fields"].items()})
        reader.objects[tree["number"]] = value
        return value
    return _decode_estimator(tree, reader)


def _decode_estimator(tree: dict[str, Any], reader: _Reader) -> Any:
    cls = estimator_classes()[tree["$estimator"]]
    model = cls(**{key: _decode(part, reader) for key, part in tree["params"].items()})
    for key, part in tree["state"].items():
        if not key.endswith("_") or key.startswith("_"):
            raise DataError(f"unexpected attribute {key!r} in the file")
        setattr(model, key, _decode(part, reader))
    return model
