"""Devices: matrices live in NumPy's arrays, or in torch's tensors on a card.

Most functions of `linalg` and `batched` are written once, for both. One that needs another
algorithm on a card is decorated with `dispatched` and has a function of the same name in
`torch_backend`; the type of its first argument decides which of the two runs.

Above this package, arrays with one axis are NumPy's; arrays with two or three axes live on the
device of the inputs that they were made from, and no caller asks which. (The sites of many users
are the exception: they are moved to the device once a sweep.)
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np
from scipy import sparse

from penchant.errors import DataError
from penchant.numerics.types import FloatArray, IntArray

P = ParamSpec("P")
R = TypeVar("R")


@cache
def torch_backend() -> ModuleType:
    """The functions for torch's tensors; torch is imported when they are first needed."""
    return import_module("penchant.numerics.torch_backend")


def dispatched(function: Callable[P, R]) -> Callable[P, R]:
    """Call the function of this name in `torch_backend` where the first argument is a tensor."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if isinstance(args[0], (np.ndarray, sparse.sparray)):
            return function(*args, **kwargs)
        return getattr(torch_backend(), function.__name__)(*args, **kwargs)

    return call


def namespace(array: FloatArray) -> Any:
    """The module with the elementwise functions for this array: NumPy, or torch."""
    return np if isinstance(array, np.ndarray) else sys.modules["torch"]


def like(array: Any, A: FloatArray) -> FloatArray:
    """The array on the device of A."""
    if isinstance(A, np.ndarray):
        return np.asarray(array)
    return torch_backend().to_device(array, A.device)


# Devices

MATRICES = 6
"""Of items × items that an exact fit holds at its peak, with the libraries' workspace."""
STACK_SIZE = 2**20
"""Most numbers in one array of users × p² on the CPU: bounds memory, and stays near the cache."""
CARD_CHUNK = 2**27
"""Most numbers of a temporary on a card: one gigabyte."""


class Device:
    """Makes matrices where they are to live; this class makes NumPy's.

    name: as a user asks for it. most_items: how many items an exact fit has room for.
    stack_size: most numbers in one array of users × p². kept_size: most numbers of users × p²
    that are kept between the steps of a sweep, three times. call_flops: what takes as long as the
    calls that a stack needs in a sweep.
    """

    name = "cpu"
    most_items = 20_000
    stack_size = STACK_SIZE
    kept_size = 32 * STACK_SIZE
    call_flops = 1e6

    def matrix(self, array: FloatArray) -> FloatArray:
        """The array on this device."""
        return array

    def full(self, shape: tuple[int, int], value: float) -> FloatArray:
        """A matrix of one number."""
        return np.full(shape, value)

    def where_equal(self, rows: IntArray, columns: IntArray, value: float) -> FloatArray:
        """A matrix with `value` where the numbers of row and column agree, else zero."""
        return np.where(rows[:, None] == columns, value, 0.0)

    def __reduce__(self) -> Any:
        return "CPU"


CPU = Device()


def device_called(name: str | None) -> Device:
    """None or "cpu": NumPy. "cuda", "cuda:1": a card, by torch. "torch:cpu": torch's own CPU
    routines, which tests use in place of a card."""
    return CPU if name in (None, "cpu") else _torch_device(str(name))


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
    return torch_backend().TorchDevice(name)


def check_room(device: Device, n: int) -> None:
    """Raise DataError if the matrices of an exact fit of n items exceed the device's memory."""
    if n > device.most_items:
        need = MATRICES * 8.0 * n * n / 1e9
        raise DataError(
            f"{n:,} items were compared: an exact fit would need {n:,}×{n:,} matrices, {need:,.0f} "
            f"GB in all, and {device.name} has room for {device.most_items:,} items; give "
            "max_rank= (say max_rank=500) to bound memory and time"
        )


def on_cpu(values: dict[str, Any]) -> dict[str, Any]:
    """The same values with NumPy's arrays for tensors, to be written or copied."""
    torch = sys.modules.get("torch")
    if torch is None:
        return values
    return {
        name: value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else value
        for name, value in values.items()
    }


@contextmanager
def memory_errors() -> Iterator[None]:
    """Turn torch's error of a card that is out of memory into Python's MemoryError."""
    try:
        yield
    except RuntimeError as error:
        if type(error).__name__ != "OutOfMemoryError":
            raise
        raise MemoryError(str(error).splitlines()[0]) from None


# For `penchant doctor`


class Card(NamedTuple):
    """A card: its name for `device=`, its model, and its memory in bytes."""

    name: str
    what: str
    memory: int


def cards() -> list[Card]:
    """The cards that torch sees; none without torch."""
    torch = _torch()
    numbers = range(0 if torch is None else torch.cuda.device_count())
    known = [(f"cuda:{k}", torch.cuda.get_device_properties(k)) for k in numbers]
    return [Card(name, card.name, int(card.total_memory)) for name, card in known]


def torch_version() -> str | None:
    """None where torch is not installed."""
    torch = _torch()
    return None if torch is None else str(torch.__version__)


def _torch() -> Any:
    try:
        return import_module("torch")
    except ImportError:
        return None
