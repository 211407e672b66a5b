"""Dispatch by device: a matrix lives in the host's memory, or on a card that torch reaches.

The functions of `linalg` and `batched` work on NumPy's matrices with SciPy's BLAS; each has a
function of the same name in `torch_backend`, and the type of a matrix decides which one is called.

The rule above this package: what has one axis is NumPy's; what has two or three lives on the
device of the inputs that it was made from, and nothing above these functions asks which. (The
sites of many users are carried over once a sweep, as the one thing with one axis, and what is
made of them comes back as such.)
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar

import numpy as np
from scipy import sparse

from penchant.errors import DataError
from penchant.numerics.types import FloatArray, IntArray

P = ParamSpec("P")
R = TypeVar("R")


@cache
def torch_backend() -> ModuleType:
    """The functions of this package for matrices of torch; imported when first needed."""
    return import_module("penchant.numerics.torch_backend")


def dispatched(place: int = 0) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """The function works on NumPy's matrices; that of the same name in `torch_backend` on torch's.

    place: the argument whose type decides.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        name = function.__name__

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            if isinstance(args[place], (np.ndarray, sparse.sparray)):
                return function(*args, **kwargs)
            result: R = getattr(torch_backend(), name)(*args, **kwargs)
            return result

        return call

    return decorate


# Devices


MATRICES = 6
"""Of items × items that an exact fit holds at its peak, with what libraries need beside."""
STACK_SIZE = 2**20
"""Most numbers in one array of users × p² on the host: bounds memory, and stays near the cache."""


class Device(Protocol):
    """Makes matrices where they are to live."""

    @property
    def name(self) -> str:
        """As a user would ask for it."""

    @property
    def most_items(self) -> int:
        """How many items an exact fit has room for."""

    @property
    def stack_size(self) -> int:
        """Most numbers in one array of users × p²."""

    @property
    def kept_size(self) -> int:
        """Most numbers of users × p² that are kept between the steps of a sweep, thrice."""

    def matrix(self, array: FloatArray) -> FloatArray:
        """The array there; a host's array is passed through."""

    def full(self, shape: tuple[int, int], value: float) -> FloatArray:
        """A matrix of one number."""

    def where_equal(self, rows: IntArray, columns: IntArray, value: float) -> FloatArray:
        """A matrix with `value` where the numbers of row and column agree, else zero."""


class _Host:
    """NumPy's arrays and SciPy's BLAS."""

    name = "cpu"
    most_items = 20_000
    stack_size = STACK_SIZE
    kept_size = 32 * STACK_SIZE

    def matrix(self, array: FloatArray) -> FloatArray:
        return array

    def full(self, shape: tuple[int, int], value: float) -> FloatArray:
        return np.full(shape, value)

    def where_equal(self, rows: IntArray, columns: IntArray, value: float) -> FloatArray:
        return np.where(rows[:, None] == columns, value, 0.0)

    def __reduce__(self) -> str:
        return "HOST"


HOST: Device = _Host()


class Card(NamedTuple):
    """A device as `penchant doctor` shows it."""

    name: str
    what: str
    memory: int


def device_called(name: str | None) -> Device:
    """None or "cpu": the host. "cuda", "cuda:1": a card, by torch. "torch:cpu": torch's own CPU
    routines, which tests use in place of a card.

    >>> device_called(None).name
    'cpu'
    """
    return HOST if name in (None, "cpu") else _torch_device(str(name))


@cache
def _torch_device(name: str) -> Device:
    torch = _torch()
    if torch is None:
        raise DataError(
            f"device={name!r} needs torch, which is not installed: pip install 'penchant[gpu]', "
            "or leave device=None"
        )
    wanted = torch.device(name.removeprefix("torch:"))
    n_cards = torch.cuda.device_count()
    if wanted.type == "cuda" and (wanted.index or 0) >= n_cards:
        raise DataError(
            f"device={name!r}: torch {torch.__version__} sees {n_cards} CUDA cards; see `penchant "
            "doctor`, or leave device=None"
        )
    made: Device = torch_backend().TorchDevice(name, wanted)
    return made


def cards() -> list[Card]:
    """The cards that torch sees; none without torch."""
    torch = _torch()
    n_cards = 0 if torch is None else torch.cuda.device_count()
    found = []
    for number in range(n_cards):
        card = torch.cuda.get_device_properties(number)
        found.append(Card(f"cuda:{number}", card.name, int(card.total_memory)))
    return found


def torch_version() -> str | None:
    """None where torch is not installed."""
    torch = _torch()
    return None if torch is None else str(torch.__version__)


def namespace(array: FloatArray) -> Any:
    """The module with the elementwise functions for this array: NumPy, or torch."""
    return np if isinstance(array, np.ndarray) else sys.modules["torch"]


def check_room(device: Device, n: int) -> None:
    """An exact fit of n items must fit into the device's memory."""
    if n > device.most_items:
        need = MATRICES * 8.0 * n * n / 1e9
        raise DataError(
            f"{n:,} items were compared: an exact fit would need {n:,}×{n:,} matrices, {need:,.0f} "
            f"GB in all, and {device.name} has room for {device.most_items:,} items; give "
            "max_rank= (say max_rank=500) to bound memory and time"
        )


def hosted(values: dict[str, Any]) -> dict[str, Any]:
    """The same values with matrices as NumPy's: what is written or copied knows no device."""
    torch = sys.modules.get("torch")
    if torch is None:
        return values
    return {
        name: value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else value
        for name, value in values.items()
    }


@contextmanager
def memory_errors() -> Iterator[None]:
    """A card that runs out of memory raises what Python raises, MemoryError."""
    try:
        yield
    except RuntimeError as error:
        if type(error).__name__ != "OutOfMemoryError":
            raise
        raise MemoryError(str(error).splitlines()[0]) from None


def _torch() -> Any:
    try:
        return import_module("torch")
    except ImportError:
        return None
