"""Saving and loading fitted models: one zip of JSON and arrays, no pickle.

A value is a JSON scalar, a list, a dictionary, or one of: an array, a sparse matrix, a tuple, a
random generator, an estimator, or one of the kinds of `store.schema`. A file can only ever make
objects of this package.
"""

import io
import json
import math
import os
import zipfile
from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np
from scipy import sparse

from penchant.errors import DataError
from penchant.io import whole_file
from penchant.kernels.base import NotGiven
from penchant.models.parameters import check_parameters
from penchant.models.store import schema
from penchant.models.store.checks import Sizes, refuse
from penchant.numerics.arrays import retry_parser_error


def save(model: Any, path: str | PathLike[str]) -> None:
    """Write a fitted estimator to `path`, atomically.

    >>> import penchant as pc, tempfile, os
    >>> data = pc.Comparisons.from_pairs(["a", "a"], ["b", "c"])
    >>> gp = pc.PreferenceGP(optimize=None).fit(None, data)
    >>> file = os.path.join(tempfile.mkdtemp(), "model.penchant")
    >>> gp.save(file)
    >>> bool((pc.load(file).predict() == gp.predict()).all())
    True
    """
    if not isinstance(path, str | PathLike):
        raise DataError(f"path is {path!r}: it must be the name of a file, a text or a Path")
    writer = _Writer()
    header = {"format": schema.FORMAT, "version": schema.VERSION, "model": writer.tree(model)}
    with whole_file(path) as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr("model.json", json.dumps(header, allow_nan=False))
        for k, array in writer.arrays.values():
            with archive.open(f"{k}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)


def load(path: str | PathLike[str]) -> Any:
    """Read a model that `save` wrote.

    A damaged or foreign file is a DataError.

    >>> import penchant as pc, tempfile
    >>> data = pc.Comparisons.from_pairs(["tea", "tea"], ["milk", "water"])
    >>> model = pc.PreferenceGP(optimize=None).fit(None, data)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = model.save(f"{folder}/drinks.penchant")
    ...     load(f"{folder}/drinks.penchant").rank()[0].item
    'tea'
    """
    name = os.fspath(path)
    try:
        with zipfile.ZipFile(name) as archive:
            if any(info.compress_type != zipfile.ZIP_STORED for info in archive.infolist()):
                raise DataError(f"{name} holds compressed members: it is not a penchant model")
            tree = _checked(json.loads(archive.read("model.json")), name)
            return _Reader(archive).value(tree)
    except FileNotFoundError:
        raise DataError(f"there is no file {name}: check the path") from None
    except DataError:
        raise
    except Exception as error:
        raise DataError(
            f"{name} cannot be read as a penchant model ({type(error).__name__}: {error}): it is "
            "damaged, truncated, or of another kind; save the model again"
        ) from None


def _checked(header: Any, name: str) -> Any:
    """The model's tree, if it is one of ours."""
    if not isinstance(header, dict) or header.get("format") != schema.FORMAT:
        raise DataError(f"{name} is not a penchant model: its header says something else")
    if header.get("version") != schema.VERSION:
        raise DataError(
            f"{name} was written in format version {header.get('version')!r} and this penchant "
            f"reads version {schema.VERSION}: fit the model again, or install the penchant that "
            "wrote it"
        )
    return header["model"]


class _Writer:
    """What is written so far, by identity: what was shared stays shared."""

    def __init__(self) -> None:
        self.arrays: dict[int, tuple[int, np.ndarray[Any, Any]]] = {}
        self.objects: dict[int, int] = {}
        self.alive: list[Any] = []
        """Objects made while writing; an identity holds only as long as they do."""

    def tree(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, NotGiven):
            return None
        if isinstance(value, float):
            return value if math.isfinite(value) else {"$float": repr(value)}
        if isinstance(value, np.generic):
            return self.tree(value.item())
        if isinstance(value, np.ndarray) and value.dtype == object:
            return {"$objects": self.tree(value.tolist())}
        if isinstance(value, np.ndarray):
            number, _ = self.arrays.setdefault(id(value), (len(self.arrays), value))
            return {"$array": number}
        if sparse.issparse(value):
            csr = value.tocsr()
            self.alive.append(csr)
            parts = self.tree([csr.data, csr.indices, csr.indptr])
            return {"$sparse": parts, "shape": list(csr.shape)}
        if isinstance(value, tuple) and not hasattr(value, "_fields"):
            return {"$tuple": self.tree(list(value))}
        if isinstance(value, list):
            return [self.tree(part) for part in value]
        if isinstance(value, Mapping):
            return {"$dict": [[key, self.tree(part)] for key, part in value.items()]}
        if isinstance(value, np.random.Generator):
            return {"$generator": value.bit_generator.state}
        return self._object(value)

    def _fields(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {key: self.tree(part) for key, part in values.items()}

    def _object(self, value: Any) -> Any:
        name, cls = type(value).__name__, type(value)
        if schema.estimator_class(name) is cls:
            state = {key: v for key, v in vars(value).items() if key.endswith("_")}
            params = self._fields(value.get_params(deep=False))
            return {"$estimator": name, "params": params, "state": self._fields(state)}
        if id(value) in self.objects:
            return {"$same": self.objects[id(value)]}
        found = schema.kind_of(value)
        if found is None:
            raise DataError(
                f"a value of type {cls.__module__}.{name} cannot be saved: models with custom "
                "callables or foreign objects have to be rebuilt in code"
            )
        number = self.objects[id(value)] = len(self.objects)
        fields = found[1].taken(value)
        self.alive.append(fields)
        return {"$kind": found[0], "number": number, "fields": self._fields(fields)}


class _Reader:
    """The archive being read: objects that were shared are made once."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self.archive = archive
        self.objects: dict[int, Any] = {}
        """By their number: values refer to objects that stand before them."""
        self.sizes: dict[int, Sizes] = {}
        """Lengths of the axes of every object made so far, by identity."""

    def value(self, tree: Any) -> Any:
        if isinstance(tree, list):
            return [self.value(part) for part in tree]
        if not isinstance(tree, dict):
            return tree
        if "$kind" in tree:
            return self._object(tree)
        if "$same" in tree:
            return self.objects[tree["$same"]]
        if "$estimator" in tree:
            return self._estimator(tree)
        if "$float" in tree:
            return float(tree["$float"])
        if "$array" in tree:
            content = self.archive.read(f"{int(tree['$array'])}.npy")
            return retry_parser_error(lambda: np.load(io.BytesIO(content), allow_pickle=False))
        if "$objects" in tree:
            return np.array(self.value(tree["$objects"]), dtype=object)
        if "$sparse" in tree:
            parts = tuple(self.value(tree["$sparse"]))
            matrix = sparse.csr_array(parts, shape=tuple(tree["shape"]))
            matrix.check_format(full_check=True)
            return matrix
        if "$tuple" in tree:
            return tuple(self.value(tree["$tuple"]))
        if "$dict" in tree:
            return {key: self.value(part) for key, part in tree["$dict"]}
        return _generator(tree["$generator"])

    def _object(self, tree: dict[str, Any]) -> Any:
        name = tree["$kind"]
        kind = schema.kind_called(name)
        values = {key: self.value(part) for key, part in tree["fields"].items()}
        sizes = kind.checked(name, values, lambda part: self.sizes.get(id(part), {}))
        made = self.objects[tree["number"]] = kind.made(values)
        self.sizes[id(made)] = sizes
        return made

    def _estimator(self, tree: dict[str, Any]) -> Any:
        name = tree["$estimator"]
        params = {key: self.value(part) for key, part in tree["params"].items()}
        cls = schema.estimator_class(name)
        if cls is None:
            raise DataError(f"the file holds a {name!r}, which this penchant does not know")
        model = cls(**params)
        check_parameters(model)
        for key, part in tree["state"].items():
            if not key.endswith("_") or key.startswith("_"):
                raise DataError(f"unexpected attribute {key!r} in the file")
            value = self.value(part)
            is_array = isinstance(value, np.ndarray) and value.dtype.kind == "f"
            if is_array and key != "cv_error_" and not np.isfinite(value).all():
                refuse(name, key, "must be finite")
            setattr(model, key, value)
        if "state_" in tree["state"]:
            learned: Any = getattr(vars(model)["state_"], "learned", None)
            if not isinstance(getattr(learned, "problem", learned), schema.STATES.get(name, ())):
                refuse(name, "state_", "belongs to another model")
            model._rebuild()  # type: ignore[attr-defined]
        return model


def _generator(state: dict[str, Any]) -> np.random.Generator:
    if state["bit_generator"] != "PCG64":
        raise DataError(f"unknown random generator {state['bit_generator']!r} in the file")
    bits = np.random.PCG64()
    bits.state = state  # type: ignore[assignment]
    return np.random.Generator(bits)
