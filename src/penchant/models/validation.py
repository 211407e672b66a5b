"""Checks that estimators share. Messages say what, what it got, what it must be, what to try."""

import sys
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from numbers import Integral, Real
from re import fullmatch
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from penchant.data import closest
from penchant.errors import DataError, DataWarning, warn
from penchant.kernels import Inputs, Kernel
from penchant.kernels.base import Combination, NotGiven
from penchant.kernels.inputs import Features
from penchant.kernels.relations import is_numbered, row_names
from penchant.kernels.stationary import Stationary
from penchant.likelihoods import Likelihood, known_likelihoods
from penchant.numerics.types import IntArray


class Constraint(NamedTuple):
    """What a parameter must be, in words and as a test."""

    words: str
    holds: Callable[[Any], bool]

    def __or__(self, other: "Constraint") -> "Constraint":  # type: ignore[override]
        return Constraint(
            f"{self.words}, or {other.words}", lambda value: self.holds(value) or other.holds(value)
        )


Constraints = Mapping[str, Constraint]

DEVICES = r"cpu|cuda(:\d{1,3})?|torch:cpu"

NONE = Constraint("None", lambda value: value is None)
YES_OR_NO = Constraint("True or False", lambda value: isinstance(value, bool | np.bool_))
TEXT = Constraint("a text", lambda value: isinstance(value, str))
KERNEL = Constraint("a kernel such as RBF()", lambda value: isinstance(value, Kernel))
SEED = Constraint(
    "None, a whole number of at least 0, or a numpy Generator",
    lambda value: (
        value is None or isinstance(value, np.random.Generator) or (_is_whole(value) and value >= 0)
    ),
)
LIKELIHOOD = Constraint(
    "the name of a likelihood ('probit', 'logit', 'ties', 'gaussian'), or an instance such as "
    "Ties(threshold=0.3)",
    lambda value: (
        isinstance(value, Likelihood) or (isinstance(value, str) and value in known_likelihoods())
    ),
)

DEVICE = Constraint(
    "'cpu', or a card as torch names it: 'cuda', 'cuda:1'",
    lambda value: isinstance(value, str) and fullmatch(DEVICES, value) is not None,
)


def one_of(choices: Collection[Any]) -> Constraint:
    """One of some names; read when it is checked, so that a registry may grow."""
    listed = ", ".join(map(repr, choices))
    return Constraint(
        listed if len(choices) == 1 else f"one of {listed}",
        lambda value: isinstance(value, str) and value in choices,
    )


def whole(least: int, most: int | None = None) -> Constraint:
    """A whole number."""
    words = f"of at least {least}" if most is None else f"from {least} to {most:,}"
    return Constraint(
        f"a whole number {words}",
        lambda value: _is_whole(value) and value >= least and (most is None or value <= most),
    )


def between(low: float, high: float) -> Constraint:
    """A number strictly inside an interval."""
    return Constraint(
        f"a number strictly between {low:g} and {high:g}",
        lambda value: _is_number(value) and low < value < high,
    )


POSITIVE = Constraint(
    "a positive, finite number", lambda value: _is_number(value) and 0 < float(value) < np.inf
)
NOT_NEGATIVE = Constraint(
    "a finite number of at least 0", lambda value: _is_number(value) and 0 <= float(value) < np.inf
)
CALLABLE = Constraint("a function", callable)
LANDMARKS = Constraint(
    "'auto', None (every row), or a whole number of at least 1",
    lambda value: (NONE | one_of(("auto",)) | whole(1)).holds(value),
)
BY_NAME = Constraint("a dictionary by name", lambda value: isinstance(value, Mapping))
SIDES = Constraint(
    "+1 (the first is shown first), −1 or 0, for all pairs or one for each",
    lambda value: _are_sides(value),
)
PROBABILITY = Constraint(
    "a number from 0 to 1", lambda value: _is_number(value) and 0.0 <= value <= 1.0
)
CONCENTRATION = Constraint(
    "a positive number, or (shape, rate) of a Gamma prior, both positive",
    lambda value: _is_concentration(value),
)


def _is_concentration(value: Any) -> bool:
    numbers = value if isinstance(value, tuple | list) and len(value) == 2 else [value]
    return all(POSITIVE.holds(number) for number in numbers)


def _are_sides(value: Any) -> bool:
    try:
        sides = np.asarray(value)
    except ValueError:
        return False
    return sides.dtype.kind in "iuf" and bool(np.isin(sides, (-1, 0, 1)).all())


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_)


def _is_number(value: Any) -> bool:
    """Real, and within what a float holds: Python's whole numbers are not."""
    if not isinstance(value, Real) or isinstance(value, bool | np.bool_):
        return False
    return not isinstance(value, int) or abs(value) <= sys.float_info.max


def check_parameters(owner: Any, constraints: Constraints) -> None:
    """Every parameter of an estimator must be what its constraint says."""
    for name, constraint in constraints.items():
        check_argument(type(owner).__name__, name, getattr(owner, name), constraint)


def check_restarts(model: Any) -> None:
    """Only a climb of the evidence can be started again."""
    if model.n_restarts and model.optimize != "evidence":
        raise DataError(
            f"{type(model).__name__}: n_restarts={model.n_restarts} with optimize="
            f"{model.optimize!r}: only optimize='evidence' climbs from several starts; leave "
            "n_restarts out, or give that"
        )


def check_in_memory(model: Any) -> None:
    """Comparisons in memory are worked on here."""
    if model.engine != "local" or model.address is not None:
        raise DataError(
            f"{type(model).__name__}: engine={model.engine!r}, address={model.address!r}: engines "
            "work on the shards of scan_comparisons, and these comparisons are in memory; leave "
            "both out, or scan the files"
        )


def check_arguments(owner: Any, method: str, **given: tuple[Any, Constraint]) -> None:
    """Arguments of a method by name: each with what it must be."""
    for name, (value, constraint) in given.items():
        check_argument(f"{type(owner).__name__}.{method}", name, value, constraint)


def check_argument(owner: str, name: str, value: Any, constraint: Constraint) -> None:
    """One argument of something; the one message shape for them all."""
    if not constraint.holds(value):
        raise DataError(f"{owner}: {name}={value!r}: it must be {constraint.words}")


def in_order(X: Any, names: Sequence[Any], what: str) -> Any:
    """Features with their rows in the order of `names`, where the rows have names of their own."""
    called = row_names(X)
    rows = None if called is None else rows_called(called, names, "X", what)
    if rows is None:
        return X
    return X.iloc[rows] if hasattr(X, "iloc") else X.take(rows)


def rows_called(
    called: Sequence[Any], names: Sequence[Any], table: str, what: str
) -> IntArray | None:
    """The row of each of `names` among rows that are called so; None where rows have no names.

    Rows called 0, 1, 2 … have none, unless these are the names themselves. Names are found as they
    are, or else by their text.

    >>> rows_called(["tea", "milk"], ["milk", "tea"], "X", "items").tolist()
    [1, 0]
    """
    if is_numbered(tuple(called)) and set(called) != set(names):
        return None
    if not set(names) <= set(called):
        called, names = list(map(str, called)), list(map(str, names))
    row = {name: number for number, name in enumerate(called)}
    (name, times), *_ = Counter(called).most_common(1) or [("", 0)]
    if times > 1:
        raise DataError(f"{table} has {times} rows for {name!r}: every name must have one row")
    if absent := [name for name in names if name not in row]:
        raise DataError(
            f"{len(absent)} of {len(names)} {what} have no row in {table}, whose rows are named "
            f"(for example {absent[0]!r}{closest(absent[0], row)}): add a row for each; or drop "
            f"the names, as X.to_numpy() does, where rows are in the order of data.{what}"
        )
    if more := row.keys() - set(names):
        other = next(name for name in called if name in more)
        raise DataError(
            f"{table} has rows for {len(more)} {what} that the comparisons do not know (for "
            f"example {other!r}): drop them, or make the comparisons with {what}= and all names"
        )
    return np.array([row[name] for name in names], dtype=np.intp)


def check_features(X: Any, n: int | None, what: str) -> Features | None:
    """Features as a finite float matrix with n rows (None: any number), or None.

    Accepts arrays, lists, data frames of numbers and scipy sparse matrices. Those of items stay
    sparse; what is known of users is little, and dense.
    """
    if X is None:
        return None
    if sparse.issparse(X) and what.endswith("users"):
        X = X.toarray()
    try:
        if sparse.issparse(X):
            features: Features = sparse.csr_array(X, dtype=float)
        else:
            features = np.asarray(X, dtype=float)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"X holds values that are not numbers ({error}): encode text columns as numbers, "
            "for example one 0/1 column a category"
        ) from None
    if features.ndim != 2:
        raise DataError(
            f"X has shape {features.shape}: it must be a matrix with one row an item; "
            "for one feature use X.reshape(-1, 1)"
        )
    if n is not None and features.shape[0] != n:
        raise DataError(
            f"X has {features.shape[0]} rows and there are {n} {what}: give one row for each, in "
            "index order"
        )
    bad_rows, bad_columns = _not_finite(features)
    if len(bad_rows):
        raise DataError(
            f"X has {len(bad_rows)} missing or infinite values, the first in row {bad_rows[0]}, "
            f"column {bad_columns[0]}: fill or drop them (scikit-learn's SimpleImputer fills)"
        )
    return features


def _not_finite(X: Features) -> tuple[IntArray, IntArray]:
    """Rows and columns of missing or infinite values, in the order of rows."""
    if not isinstance(X, sparse.sparray):
        rows, columns = np.nonzero(~np.isfinite(X))
        return rows, columns
    stored = X.tocoo()
    bad = ~np.isfinite(stored.data)
    rows, columns = stored.row[bad].astype(np.intp), stored.col[bad].astype(np.intp)
    order = np.lexsort([columns, rows])
    return rows[order], columns[order]


def warn_constant_features(X: Features) -> None:
    """A column that never varies says nothing about preference; say so.

    Not of sparse features: words that a sample lacks are what a vocabulary is like.
    """
    if isinstance(X, sparse.sparray) or len(X) < 2:
        return
    constant = np.flatnonzero(np.ptp(X, axis=0) == 0.0)
    if len(constant):
        listed = ", ".join(map(str, constant[:10])) + (" …" if len(constant) > 10 else "")
        warn(
            f"feature columns {listed} of X are constant: they carry no information about "
            "preference and can be dropped",
            DataWarning,
        )


FAR = 30.0
"""A lengthscale so many times the median distance between items, or so small a part, is far off."""


def warn_far_lengthscale(kernel: Any, items: Inputs) -> None:
    """A lengthscale that was given and has nothing to do with the features; say so."""
    if isinstance(kernel, Combination):
        for part in kernel.kernels:
            warn_far_lengthscale(part, items)
    if not isinstance(kernel, Stationary) or isinstance(kernel.lengthscale, NotGiven):
        return
    distance = kernel.typical_distance(items)
    if not 1.0 / FAR <= distance <= FAR:
        name, all_are = type(kernel).__name__, "alike" if distance < 1.0 else "unrelated"
        warn(
            f"two typical rows of X lie {distance:.3g} lengthscales of {kernel!r} apart, so that "
            f"all are {all_are}: a kernel works on features as they are; leave the lengthscale "
            f"out, {name}(), to start at the features' own scale, or scale the features",
            DataWarning,
        )


def check_row_pairs(pairs: Any, n: int) -> IntArray:
    """(k, 2) row numbers below n."""
    index = np.asarray(pairs)
    if index.ndim != 2 or index.shape[1] != 2 or index.dtype.kind not in "iu":
        raise DataError(
            f"pairs has shape {index.shape} and type {index.dtype}: with X given it must be (k, 2) "
            "row numbers of X"
        )
    if index.size and (index.min() < 0 or index.max() >= n):
        raise DataError(f"pairs names row {index.max()} and X has {n} rows: count from 0")
    return index.astype(np.intp)


def size_of_relations(relations: Mapping[str, Any]) -> int:
    """How many items the graphs cover."""
    if not isinstance(relations, Mapping):
        raise DataError(
            f"relations is {relations!r}: it must be a dictionary {{name: graph}}, each graph over "
            "the training items followed by the new ones"
        )
    weights: list[Any] = [getattr(graph, "weights", graph) for graph in relations.values()]
    shapes = {np.shape(each) for each in weights}
    sizes = {shape[0] if len(shape) == 2 else 0 for shape in shapes}
    if len(sizes) != 1 or 0 in sizes:
        raise DataError(
            f"relations cover {sorted(sizes)} items: every graph must cover the training items "
            "followed by the new ones"
        )
    return int(sizes.pop())


def one_user_a_pair(users: IntArray, n_pairs: int) -> IntArray:
    """(n_pairs,) users: the same one for all pairs, or one for each.

    >>> one_user_a_pair(np.array([4]), 3).tolist()
    [4, 4, 4]
    """
    if len(users) not in (1, n_pairs):
        raise DataError(
            f"there are {n_pairs} pairs and {len(users)} users: give one user for all pairs, or "
            "one for each"
        )
    return np.broadcast_to(users, n_pairs)


def n_rows(X: Any, name: str = "X") -> int:
    """How many rows features have, whose numbers are not looked at yet."""
    try:
        return int(X.shape[0]) if sparse.issparse(X) else len(X)
    except TypeError:
        raise DataError(f"{name} is {X!r}: it must be a matrix of features") from None
