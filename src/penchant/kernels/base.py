"""The Kernel interface, sums and products of kernels, and kernels without features.

A kernel is a frozen value. Its free parameters are positive; the optimiser sees their logarithms
in one vector, `theta`. Gradients are *pulled back*: the caller gives G = ∂ℓ/∂K once, and the
kernel returns ∂ℓ/∂theta, so that no n × n × p tensor is ever formed.
"""

import inspect
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import Field, dataclass, field, fields, replace
from functools import reduce
from itertools import islice
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np

from penchant.errors import DataError
from penchant.kernels.inputs import Inputs
from penchant.numerics import linalg
from penchant.numerics.linalg import diagonal, inner
from penchant.numerics.optimize import PRIOR_SPREAD, weak_prior
from penchant.numerics.types import FloatArray

LOG_ROOM = np.log(1e3)
"""Bounds of a parameter in the features' units are at least this far from its start, in logs."""
PAIRED_BLOCK = 256
"""Pairs whose covariances are read from the diagonal of one block: small next to a full matrix."""


class Kernel(ABC):
    """A covariance function over items.

    >>> from penchant.kernels import RBF, Independent
    >>> kernel = RBF(lengthscale=2.0) + 0.5 * Independent()
    >>> kernel(np.zeros((2, 1)))
    array([[1.5, 1. ], [1. , 1.5]])
    """

    __array_ufunc__ = None  # so that a NumPy number times a kernel is left to the kernel

    def __call__(self, A: Inputs | FloatArray, B: Inputs | FloatArray | None = None) -> FloatArray:
        """Covariance (len(A), len(B)) between two sets of items, or (n, n) within one.

        The array is fresh: the caller may overwrite it.
        """
        return self._matrix(Inputs.of(A), None if B is None or B is A else Inputs.of(B))

    def diag(self, A: Inputs | FloatArray) -> FloatArray:
        """Prior variances (n,): the diagonal of K(A)."""
        return self._diag(Inputs.of(A))

    def paired(self, A: Inputs | FloatArray, B: Inputs | FloatArray) -> FloatArray:
        """Covariance (n,) of each item of A with the item in the same place of B."""
        first, second = Inputs.of(A), Inputs.of(B)
        covariance = np.empty(len(first))
        for start in range(0, len(first), PAIRED_BLOCK):
            rows = np.arange(start, min(start + PAIRED_BLOCK, len(first)))
            covariance[rows] = diagonal(self._matrix(first.take(rows), second.take(rows)))
        return covariance

    def pullback(
        self, A: Inputs | FloatArray, G: FloatArray, B: Inputs | FloatArray | None = None
    ) -> FloatArray:
        """Gradient (p,) with respect to theta of Σ_ij G_ij K(A, B)_ij.

        G has the shape of K(A, B); without B it is symmetric.
        """
        return self._pullback(Inputs.of(A), G, None if B is None else Inputs.of(B))

    @property
    @abstractmethod
    def theta(self) -> FloatArray:
        """Logarithms of the free parameters (p,)."""

    @property
    @abstractmethod
    def bounds(self) -> FloatArray:
        """Lower and upper limits of theta (p, 2); they always contain theta."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The attribute path of each entry of theta: "lengthscale[0]"."""

    @abstractmethod
    def with_theta(self, theta: FloatArray) -> Self:
        """The same kernel with other parameters."""

    @property
    def parts(self) -> "tuple[Kernel, ...]":
        """The independent effects that it is the sum of."""
        return (self,)

    def at_scale_of(self, items: Inputs) -> Self:
        """The same kernel; parameters that the user did not give get the scale of the features."""
        return self

    def log_prior(self, start: Self) -> tuple[float, FloatArray]:
        """Log prior density of the parameters around their start, and its slope (p,).

        It is weak and normal in the logarithms; kernels with many parameters override it.
        """
        return weak_prior(self.theta, start.theta)

    @property
    def powers(self) -> FloatArray:
        """By which power of each parameter (p,) the whole covariance grows: 1 of a variance."""
        return np.zeros(len(self.theta))

    @abstractmethod
    def _matrix(self, A: Inputs, B: Inputs | None) -> FloatArray: ...

    @abstractmethod
    def _diag(self, A: Inputs) -> FloatArray: ...

    @abstractmethod
    def _pullback(self, A: Inputs, G: FloatArray, B: Inputs | None) -> FloatArray: ...

    def __add__(self, other: "Kernel | float") -> "Kernel":
        return Sum((*_operands(self, Sum), *_operands(_promote(other), Sum)))

    def __radd__(self, other: float) -> "Kernel":
        return _promote(other) + self

    def __mul__(self, other: "Kernel | float") -> "Kernel":
        return Product((*_operands(self, Product), *_operands(_promote(other), Product)))

    def __rmul__(self, other: float) -> "Kernel":
        return _promote(other) * self


class NotGiven(float):
    """A parameter that the user left at its default: a fit replaces it by a value at the scale of
    the features, see `Kernel.at_scale_of`. A model file has null in its place."""


def positive(default: float, lower: float, upper: float, *, per_feature: bool = False) -> Any:
    """A dataclass field for a free positive parameter; per_feature: or one a feature."""
    return field(default=default, metadata={"bounds": (lower, upper), "per_feature": per_feature})


class Leaf(Kernel):
    """A kernel that does not combine others: its parameters are its `positive` fields."""

    _powers: ClassVar[dict[str, float]] = {"variance": 1.0}
    """The parameters that the covariance grows by, and their powers."""

    def __post_init__(self) -> None:
        for parameter, value in self._parameters():
            what = f"{type(self).__name__}: {parameter.name}"
            if isinstance(parameter.default, NotGiven) and value is None:
                checked: float | tuple[float, ...] = parameter.default
            elif isinstance(value, NotGiven):
                checked = value
            elif parameter.metadata["per_feature"] and np.ndim(value) == 1:
                checked = tuple(_positive_number(v, what) for v in value)
            else:
                checked = _positive_number(value, what)
            object.__setattr__(self, parameter.name, checked)

    def _parameters(self) -> list[tuple[Field[Any], Any]]:
        """The fields that are learned, and their values."""
        every = fields(self)  # type: ignore[arg-type]  # every leaf is a dataclass
        return [(p, getattr(self, p.name)) for p in every if "bounds" in p.metadata]

    @property
    def theta(self) -> FloatArray:
        values = [np.atleast_1d(value) for _, value in self._parameters()]
        return np.log(np.concatenate(values)) if values else np.zeros(0)

    @property
    def bounds(self) -> FloatArray:
        limits = [np.zeros((0, 2))]
        for p, value in self._parameters():
            theta = np.log(np.atleast_1d(value))
            room = LOG_ROOM if isinstance(p.default, NotGiven) else 0.0
            low, high = np.log(p.metadata["bounds"])
            limits.append(
                np.stack([np.minimum(low, theta - room), np.maximum(high, theta + room)]).T
            )
        return np.concatenate(limits)

    @property
    def names(self) -> tuple[str, ...]:
        names: list[str] = []
        for p, value in self._parameters():
            one_each = isinstance(value, tuple)
            names += [f"{p.name}[{i}]" for i in range(len(value))] if one_each else [p.name]
        return tuple(names)

    @property
    def powers(self) -> FloatArray:
        return np.array([self._powers.get(name, 0.0) for name in self.names])

    def with_theta(self, theta: FloatArray) -> Self:
        values = iter(np.exp(_checked_theta(theta, self)).tolist())
        changes = {
            p.name: tuple(islice(values, len(old))) if isinstance(old, tuple) else next(values)
            for p, old in self._parameters()
        }
        return replace(self, **changes)  # type: ignore[type-var]  # every leaf is a dataclass


@dataclass(frozen=True)
class Constant(Leaf):
    """The same fixed covariance everywhere: `2.0 * RBF()` is Constant(2.0) * RBF().

    It has no free parameter: the factor stays while the RBF's variance is learned.

    >>> Constant(2.0)(np.zeros((2, 1)))
    array([[2., 2.], [2., 2.]])
    """

    value: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", _positive_number(self.value, "Constant: value"))

    def _matrix(self, A: Inputs, B: Inputs | None) -> FloatArray:
        return A.device.full((len(A), len(A if B is None else B)), self.value)

    def _diag(self, A: Inputs) -> FloatArray:
        return np.full(len(A), self.value)

    def _pullback(self, A: Inputs, G: FloatArray, B: Inputs | None) -> FloatArray:
        return np.zeros(0)


@dataclass(frozen=True)
class Independent(Leaf):
    """An effect of each item alone: `variance` where the item is the same, zero elsewhere.

    Items are the same where their positions in the universe agree. Items without a position are
    all different: K(A) is variance · I, and K(A, B) is zero.

    >>> Independent(variance=2.0)(np.ones((2, 1)))
    array([[2., 0.], [0., 2.]])
    """

    variance: float = positive(1.0, 1e-5, 1e5)

    def _matrix(self, A: Inputs, B: Inputs | None) -> FloatArray:
        rows, columns = A.index, A.index if B is None else B.index
        if B is None and rows is None:
            rows = columns = np.arange(len(A))
        if rows is None or columns is None:
            return A.device.full((len(A), len(A if B is None else B)), 0.0)
        return A.device.where_equal(rows, columns, self.variance)

    def _diag(self, A: Inputs) -> FloatArray:
        return np.full(len(A), self.variance)

    def _pullback(self, A: Inputs, G: FloatArray, B: Inputs | None) -> FloatArray:
        return np.array([inner(G, self._matrix(A, B))])


class Combination(Kernel):
    """A kernel that combines others; its theta is theirs, one after another."""

    kernels: tuple[Kernel, ...]
    _combine: ClassVar[Callable[[FloatArray, FloatArray], FloatArray]]
    """Combines two matrices, in place of the first."""

    def _matrix(self, A: Inputs, B: Inputs | None) -> FloatArray:
        return reduce(type(self)._combine, (kernel._matrix(A, B) for kernel in self.kernels))

    def _diag(self, A: Inputs) -> FloatArray:
        return reduce(type(self)._combine, (kernel._diag(A) for kernel in self.kernels))

    @property
    def theta(self) -> FloatArray:
        return np.concatenate([kernel.theta for kernel in self.kernels])

    @property
    def bounds(self) -> FloatArray:
        return np.concatenate([kernel.bounds for kernel in self.kernels])

    @property
    def names(self) -> tuple[str, ...]:
        numbered = enumerate(self.kernels)
        return tuple(f"kernels[{i}].{name}" for i, kernel in numbered for name in kernel.names)

    @property
    def powers(self) -> FloatArray:
        return np.concatenate([kernel.powers for kernel in self.kernels])

    def with_theta(self, theta: FloatArray) -> Self:
        ends = np.cumsum([len(kernel.theta) for kernel in self.kernels])
        parts = np.split(_checked_theta(theta, self), ends[:-1])
        kernels = tuple(k.with_theta(part) for k, part in zip(self.kernels, parts, strict=True))
        return replace(self, kernels=kernels)  # type: ignore[type-var]  # a dataclass

    def at_scale_of(self, items: Inputs) -> Self:
        kernels = tuple(kernel.at_scale_of(items) for kernel in self.kernels)
        return replace(self, kernels=kernels)  # type: ignore[type-var]  # a dataclass

    def log_prior(self, start: Self) -> tuple[float, FloatArray]:
        parts = zip(self.kernels, start.kernels, strict=True)
        values, slopes = zip(*(kernel.log_prior(its) for kernel, its in parts), strict=True)
        return sum(values), np.concatenate(slopes)


@dataclass(frozen=True, repr=False)
class Sum(Combination):
    """A sum of independent effects: K = Σ K_i. Written with `+`.

    >>> from penchant.kernels import Linear
    >>> (Linear() + 1.0)(np.ones((1, 3)))
    array([[4.]])
    """

    kernels: tuple[Kernel, ...]
    _combine = operator.iadd

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.kernels))

    def log_prior(self, start: Self) -> tuple[float, FloatArray]:
        """That of the parts, but their common scale is as free as that of one part alone.

        The scale of utilities, in units of an answer's noise, is less known than the shares of the
        parts. Independent priors of k log-variances would hold their mean m to a k-th of the
        variance: Σ mᵢ² is Σ (mᵢ − m)² + k m², and the k goes.
        """
        value, slope = super().log_prior(start)
        powers = self.powers
        k = np.count_nonzero(powers)
        if k < 2:
            return value, slope
        mean = float(powers @ (self.theta - start.theta)) / k
        freed = (k - 1) * mean / PRIOR_SPREAD**2
        return value + 0.5 * freed * mean, slope + powers * (freed / k)

    @property
    def parts(self) -> tuple[Kernel, ...]:
        return self.kernels

    def _pullback(self, A: Inputs, G: FloatArray, B: Inputs | None) -> FloatArray:
        return np.concatenate([kernel._pullback(A, G, B) for kernel in self.kernels])


@dataclass(frozen=True, repr=False)
class Product(Combination):
    """Items covary only where every factor says so: K = Π K_i, elementwise. Written with `*`.

    >>> from penchant.kernels import Linear
    >>> (3.0 * Linear())(np.ones((1, 2)))
    array([[6.]])
    """

    kernels: tuple[Kernel, ...]
    _combine = operator.imul

    def __repr__(self) -> str:
        return " * ".join(f"({k!r})" if isinstance(k, Sum) else repr(k) for k in self.kernels)

    def _pullback(self, A: Inputs, G: FloatArray, B: Inputs | None) -> FloatArray:
        matrices = [kernel._matrix(A, B) for kernel in self.kernels]
        gradients = []
        for i, kernel in enumerate(self.kernels):
            others = reduce(operator.mul, matrices[:i] + matrices[i + 1 :], G)
            gradients.append(kernel._pullback(A, others, B))
        return np.concatenate(gradients)


SPARE_PIVOTS, FEWEST_CANDIDATES = 4, 2_000
"""The pivots of a bounded factor are chosen among so many times as many items, at least so many."""


def bounded_factor(
    kernel: Kernel, items: Inputs, rank: int, tolerance: float
) -> linalg.PivotedCholesky:
    """Factor of at most `rank` columns, through pivots among a sample of the items (Nyström).

    An even spread over the order of the items keeps the choice deterministic and cheap.
    """
    n = len(items)
    spread = np.linspace(0, n - 1, min(n, max(SPARE_PIVOTS * rank, FEWEST_CANDIDATES))).round()
    candidates = np.unique(spread.astype(np.intp))
    found = linalg.pivoted_cholesky(kernel(items.take(candidates)), tolerance, max_rank=rank)
    pivots = candidates[found.pivots]
    others = np.setdiff1d(np.arange(n), pivots)
    cross = kernel(items.take(others), items.take(pivots))
    rest = linalg.solve_lower(found.lower, cross.T, overwrite=True).T
    left = kernel.diag(items.take(others)) - linalg.row_squares(rest)
    rows = linalg.stack_rows(found.lower, rest)
    return linalg.PivotedCholesky(rows, np.append(pivots, others), float(left.max(initial=0.0)))


def known_kernels() -> dict[str, type[Kernel]]:
    """Every kernel class that is not abstract, by name.

    >>> known_kernels()["Sum"] is Sum
    True
    """
    classes: list[type[Kernel]] = [Kernel]  # type: ignore[type-abstract]
    for cls in classes:  # the list grows as it is read
        classes.extend(cls.__subclasses__())
    named = {cls.__name__: cls for cls in classes if not inspect.isabstract(cls)}
    return dict(sorted(named.items()))


def _promote(other: "Kernel | float") -> Kernel:
    return other if isinstance(other, Kernel) else Constant(other)


def _operands(kernel: Kernel, combination: type["Sum | Product"]) -> tuple[Kernel, ...]:
    """A sum inside a sum is one longer sum, so that repr and names stay flat."""
    return kernel.kernels if isinstance(kernel, combination) else (kernel,)


def _checked_theta(theta: FloatArray, kernel: Kernel) -> FloatArray:
    theta = np.asarray(theta, dtype=np.float64)
    if theta.shape != (len(kernel.names),):
        raise DataError(
            f"theta has shape {theta.shape}: {kernel!r} takes {len(kernel.names)} logarithms, "
            f"of {', '.join(kernel.names) or 'nothing'}"
        )
    return theta


def _positive_number(value: object, what: str) -> float:
    number = float(value) if isinstance(value, Real) else np.nan
    if not 0.0 < number < np.inf:
        raise DataError(f"{what} is {value!r}: it must be a number, positive and finite")
    return number
