"""Values that a program reads from CUDA tensors: there are none, so it goes on with placeholders, each one kept."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from inductor_audit_inside.deviceless import choices, tensors
from inductor_audit_inside.deviceless.patch import Patch

_WHY = "no value was computed; control flow that depends on it may differ on a device"


def answer(fake_tensor: ModuleType, patch: Patch) -> None:
    """Replace the readers on FakeTensor, for the program's own tensors alone: the compiler's fakes must still raise."""
    readers: dict[str, Callable[[Any], Any]] = {
        "item": _item,
        "tolist": lambda tensor: _blank(tensor).tolist(),
        "numpy": lambda tensor: _blank(tensor).numpy(),
        "__array__": lambda tensor: _blank(tensor).numpy(),
        "__float__": lambda tensor: 1.0,
        "__int__": lambda tensor: 1,
        "__index__": lambda tensor: 1,
        "__bool__": lambda tensor: True,
    }
    for name, give in readers.items():
        setattr(fake_tensor.FakeTensor, name, _reader(name, give, getattr(fake_tensor.FakeTensor, name), patch))


def _reader(name: str, give: Callable[[Any], Any], original: Callable[..., Any], patch: Patch) -> Callable[..., Any]:
    def read(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not tensors.is_fake(self):
            return original(self, *args, **kwargs)
        patch.hits += 1
        value = give(self)
        shown = repr(value) if self.numel() == 1 else f"ones of shape {tuple(self.shape)}"
        choices.assume("placeholder", f"torch.Tensor.{name}", shown, _WHY)
        return value

    read.__name__ = name
    return read


def _item(tensor: Any) -> Any:
    """One, in the type that the real method gives."""
    return _blank(tensor).reshape(-1)[:1].tolist()[0]


def _blank(tensor: Any) -> Any:
    """A real tensor of ones."""
    import torch

    return torch.ones(tuple(tensor.shape), dtype=tensor.dtype, device="cpu")
