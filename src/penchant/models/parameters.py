"""Parameters of estimators: declared once, as fields of a dataclass with a constraint each.

    @dataclass(eq=False, repr=False)
    class Model(Estimator):
        size: int = parameter(3, whole(1))

The constructor, `get_params`, `clone` and `check_parameters` follow from that line. Messages say
what, what it got, what it must be, what to try.
"""

import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import field, fields, is_dataclass
from numbers import Integral, Real
from re import fullmatch
from typing import Any, NamedTuple, Self

import numpy as np

from penchant.errors import DataError
from penchant.kernels import Kernel
from penchant.likelihoods import Likelihood, known_likelihoods


class Constraint(NamedTuple):
    """What a parameter must be, in words and as a test."""

    words: str
    holds: Callable[[Any], bool]

    def __or__(self, other: "Constraint") -> "Constraint":  # type: ignore[override]
        return Constraint(
            f"{self.words}, or {other.words}", lambda value: self.holds(value) or other.holds(value)
        )


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
    words = f"of at least {least}" if most is None else f"from {least} to {most:,}"
    return Constraint(
        f"a whole number {words}",
        lambda value: _is_whole(value) and value >= least and (most is None or value <= most),
    )


def between(low: float, high: float) -> Constraint:
    return Constraint(
        f"a number strictly between {low:g} and {high:g}",
        lambda value: _is_number(value) and low < value < high,
    )


IS_ONE = Constraint("1", lambda value: _is_number(value) and value == 1)


def two(each: Constraint, words: str) -> Constraint:
    return Constraint(
        words,
        lambda value: (
            isinstance(value, tuple | list) and len(value) == 2 and all(map(each.holds, value))
        ),
    )


POSITIVE = Constraint(
    "a positive, finite number", lambda value: _is_number(value) and 0 < float(value) < np.inf
)
NOT_NEGATIVE = Constraint(
    "a finite number of at least 0", lambda value: _is_number(value) and 0 <= float(value) < np.inf
)
CALLABLE = Constraint("a function", callable)
LANDMARKS = one_of(("auto",)) | NONE | whole(1)
BY_NAME = Constraint("a dictionary by name", lambda value: isinstance(value, Mapping))
SIDES = Constraint(
    "+1 (the first is shown first), −1 or 0, for all pairs or one for each",
    lambda value: _are_sides(value),
)
PROBABILITY = Constraint(
    "a number from 0 to 1", lambda value: _is_number(value) and 0.0 <= value <= 1.0
)


def _are_sides(value: Any) -> bool:
    try:
        sides = np.asarray(value)
    except ValueError:
        return False
    return sides.dtype.kind in "iuf" and bool(np.isin(sides, (-1, 0, 1)).all())


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_)


def _is_number(value: Any) -> bool:
    """Whether a value is real and within the range of a float."""
    if not isinstance(value, Real) or isinstance(value, bool | np.bool_):
        return False
    return not isinstance(value, int) or abs(value) <= sys.float_info.max


def parameter(default: Any, constraint: Constraint) -> Any:
    """Declare a parameter of an estimator: its default, and what it must be."""
    return field(default=default, metadata={"constraint": constraint})


class Estimator:
    """Parameters as `clone` and the other tools of scikit-learn take them.

    Its own base class is for models of rows X and y, and half a second is spent on its import.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; `deep` changes nothing: none has parameters of its own."""
        return {name: getattr(self, name) for name in sorted(_defaults(self))}

    def set_params(self, **params: Any) -> Self:
        """Other values of some parameters; `fit` checks them."""
        for name, value in params.items():
            if name not in _defaults(self):
                raise ValueError(
                    f"Invalid parameter {name!r} for estimator {self!r}. "
                    f"Valid parameters are: {sorted(_defaults(self))}."
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        """The parameters that are not at their defaults."""
        changed = [
            f"{name}={self.get_params()[name]!r}"
            for name, default in sorted(_defaults(self).items())
            if repr(self.get_params()[name]) != repr(default)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False))


def _defaults(estimator: Any) -> dict[str, Any]:
    return {each.name: each.default for each in fields(estimator) if each.init}


def not_fitted(estimator: Any) -> Exception:
    """What scikit-learn raises where `fit` has not been called."""
    from sklearn.exceptions import NotFittedError

    error: Exception = NotFittedError(
        f"This {type(estimator).__name__} instance is not fitted yet. Call 'fit' with appropriate "
        "arguments before using this estimator."
    )
    return error


def check_parameters(estimator: Any) -> None:
    """Every parameter of an estimator must be what its constraint says."""
    for declared in fields(estimator) if is_dataclass(estimator) else ():
        if (constraint := declared.metadata.get("constraint")) is not None:
            name = declared.name
            check_argument(type(estimator).__name__, name, getattr(estimator, name), constraint)


def check_restarts(model: Any) -> None:
    """Raise where restarts are asked for and the evidence is not maximised."""
    if model.n_restarts and model.optimize != "evidence":
        raise DataError(
            f"{type(model).__name__}: n_restarts={model.n_restarts} with optimize="
            f"{model.optimize!r}: only optimize='evidence' takes several starts; leave "
            "n_restarts out, or give that"
        )


def check_in_memory(model: Any) -> None:
    """Raise where an engine is asked for and the comparisons are in memory."""
    if model.engine != "local" or model.address is not None:
        raise DataError(
            f"{type(model).__name__}: engine={model.engine!r}, address={model.address!r}: engines "
            "are for scanned comparisons, and these are in memory; leave both out, or scan the "
            "files with scan_comparisons"
        )


def check_arguments(owner: Any, method: str, **given: tuple[Any, Constraint]) -> None:
    """Arguments of a method by name: each with what it must be."""
    for name, (value, constraint) in given.items():
        check_argument(f"{type(owner).__name__}.{method}", name, value, constraint)


def check_argument(owner: str, name: str, value: Any, constraint: Constraint) -> None:
    """One argument of something; the one message shape for them all."""
    if not constraint.holds(value):
        raise DataError(f"{owner}: {name}={value!r}: it must be {constraint.words}")
