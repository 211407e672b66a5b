"""On a card NumPy cannot copy a tensor by itself; torch on the CPU lets it, so here it may not."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def no_implicit_copies(monkeypatch):
    if find_spec("torch") is None:
        return
    import torch

    def refuse(tensor, *args, **kwargs):
        raise TypeError("a tensor of a device is not copied by itself: call linalg.to_numpy")

    monkeypatch.setattr(torch.Tensor, "__array__", refuse)
