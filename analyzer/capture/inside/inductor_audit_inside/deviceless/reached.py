"""Ops that come to CUDA's own kernels past the fake mode.

`torch.tensor(..., device="cuda")` copies with Python dispatch switched off (torch/csrc/utils/tensor_new.cpp), and a few
factories (`tril_indices`) have kernels that allocate and launch in one. Whatever arrives there goes back to the mode.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from inductor_audit_inside.deviceless import tensors
from inductor_audit_inside.deviceless.patch import Patch

_ON_ANY_DEVICE = ("aten::copy_",)
"""Not registered for CUDA, and launches there."""

_running: set[str] = set()


def send_back(fake_tensor: ModuleType, patch: Patch) -> None:
    """Take the place of every aten kernel of CUDA, but for those that other patches have taken.

    A build without CUDA has none, but a fallback can stand for all of them.
    """
    for name in {*_ON_ANY_DEVICE, *_with_kernels()} - tensors.REGISTERED:
        tensors.register(name, _kernel(name, patch), "CUDA")
    tensors.register_fallback(lambda op, *args, **kwargs: _again(op, patch, args, kwargs), "CUDA")


def _with_kernels() -> list[str]:
    import torch

    names = torch._C._dispatch_get_all_op_names()
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    return [name for name in names if name.startswith("aten::") and has(name, "CUDA")]


def _kernel(name: str, patch: Patch) -> Any:
    """The op is looked up when it is called: there are more than a thousand."""
    import torch

    packet, _, overload = name.removeprefix("aten::").partition(".")

    def kernel(*args: Any, **kwargs: Any) -> Any:
        return _again(getattr(getattr(torch.ops.aten, packet), overload or "default"), patch, args, kwargs)

    return kernel


def _again(op: Any, patch: Patch, args: Any, kwargs: Any) -> Any:
    """Call an op once more with Python dispatch on. NotImplementedError when the mode sends it here in turn."""
    import torch

    name = str(op)
    if name in _running:
        raise NotImplementedError(f"there is no device here: {name} came to a kernel of CUDA")
    patch.hits += 1
    guard, key = torch._C._SetExcludeDispatchKeyGuard, torch._C.DispatchKey
    _running.add(name)
    try:
        with guard(key.Python, False), guard(key.PythonTLSSnapshot, False), tensors.mode():
            return op(*args, **kwargs)
    finally:
        _running.discard(name)
