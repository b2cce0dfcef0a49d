"""Values that a program reads from CUDA tensors: there are none, so it goes on with placeholders, each one kept."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from types import ModuleType
from typing import Any

from inductor_audit_inside.deviceless import choices, tensors
from inductor_audit_inside.deviceless.patch import Patch

_WHY = "no value was computed; control flow that depends on it may differ on a device"
_MANY, _TOO_MANY = 1000, 100_000
_reads: Counter[str] = Counter()
"""How often a line of the program has read a value."""


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
        _note(f"torch.Tensor.{name}", shown)
        return value

    read.__name__ = name
    return read


def format_numbers(fake_tensor: ModuleType, patch: Patch) -> None:
    """`f"{loss:.3f}"` is a read too; torch does it for plain tensors alone."""

    def make(original: Any) -> Any:
        def __format__(self: Any, spec: str) -> str:  # noqa: N807 - the method's own name
            if tensors.is_fake(self) and self.dim() == 0:
                return format(self.item(), spec)
            return str(original(self, spec))

        return __format__

    patch.around(fake_tensor.FakeTensor, "__format__", make)


def answer_ops(fake_impls: ModuleType, patch: Patch) -> None:
    """The ops that give a value and no tensor, for callers in C++ and for comparisons."""
    import torch

    known, aten = fake_impls.op_implementations_dict, torch.ops.aten
    for op in (aten._local_scalar_dense.default, aten.item.default):
        known[op] = _op(op, _item, known.get(op), patch)
    for op in (aten.equal.default, aten.allclose.default):
        known[op] = _op(op, lambda tensor: True, known.get(op), patch)


def _op(op: Any, give: Callable[[Any], Any], original: Any, patch: Patch) -> Callable[..., Any]:
    def implementation(mode: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
        if mode is not tensors.mode():
            return NotImplemented if original is None else original(mode, func, *args, **kwargs)
        patch.hits += 1
        value = give(args[0])
        _note(str(op), repr(value))
        return value

    return implementation


def _note(subject: str, shown: str) -> None:
    """Keep the placeholder, and look out for a loop that waits for a value. RuntimeError when it would never end."""
    choices.assume("placeholder", subject, shown, _WHY)
    place = _line_of_program()
    _reads[place] += 1
    if _reads[place] == _MANY:
        told = f"{place} has read a value {_MANY} times, and nobody computes it: does a loop wait for it?"
        print(f"inductor-audit: {told}", file=sys.stderr)  # noqa: T201 - the program goes on
    if _reads[place] >= _TOO_MANY:
        raise RuntimeError(f"a loop at {place} waits for a value that nobody computes")


def _line_of_program() -> str:
    """The innermost line that is neither torch's nor ours."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _NOT_THE_PROGRAM:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


_NOT_THE_PROGRAM = ("torch", "inductor_audit_inside")


def _item(tensor: Any) -> Any:
    """One, in the type that the real method gives."""
    return _blank(tensor).reshape(-1)[:1].tolist()[0]


def _blank(tensor: Any) -> Any:
    """A real tensor of ones."""
    import torch

    return torch.ones(tuple(tensor.shape), dtype=tensor.dtype, device="cpu")
