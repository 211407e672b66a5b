"""A device of torch: a card, or torch's own routines on the CPU."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from penchant.numerics.device import HOST, MATRICES
from penchant.numerics.torch_entries import up
from penchant.numerics.types import FloatArray, IntArray

STACKS, KEPT_STACKS = 2048, 16
"""Arrays of one block of users that a card has room for, and of all blocks that are kept."""


@dataclass(frozen=True)
class TorchDevice:
    """A device of torch; see `numerics.device.Device`."""

    name: str
    device: Any

    @cached_property
    def _memory(self) -> int | None:
        """Bytes of a card."""
        if self.device.type != "cuda":
            return None
        return int(torch.cuda.get_device_properties(self.device).total_memory)

    @property
    def most_items(self) -> int:
        """As many as fit beside each other, `MATRICES` times."""
        if self._memory is None:
            return HOST.most_items
        return int((self._memory / (8.0 * MATRICES)) ** 0.5)

    @property
    def stack_size(self) -> int:
        """A small share: large enough to be worth a launch, and some twenty exist at once."""
        return HOST.stack_size if self._memory is None else self._memory // (8 * STACKS)

    @property
    def kept_size(self) -> int:
        """Three of them take a fifth of a card."""
        return HOST.kept_size if self._memory is None else self._memory // (8 * KEPT_STACKS)

    def matrix(self, array: FloatArray) -> FloatArray:
        """The array there."""
        moved: FloatArray = up(array, self.device)
        return moved

    def full(self, shape: tuple[int, int], value: float) -> FloatArray:
        """A matrix of one number."""
        made: FloatArray = torch.full(shape, value, dtype=torch.float64, device=self.device)
        return made

    def where_equal(self, rows: IntArray, columns: IntArray, value: float) -> FloatArray:
        """`value` where the numbers of row and column agree, else zero."""
        same = up(rows, self.device)[:, None] == up(columns, self.device)
        made: FloatArray = same.to(torch.float64).mul_(value)
        return made

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return TorchDevice.named, (self.name,)

    @staticmethod
    def named(name: str) -> "TorchDevice":
        """From its name alone."""
        return TorchDevice(name, torch.device(name.removeprefix("torch:")))
