"""Every CUDA tensor of the process is a FakeTensor: sizes, strides and types, but no memory."""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import Any

from inductor_audit_inside.deviceless.patch import Patch

_kept: dict[str, Any] = {}
"""The one fake mode of all these tensors, and the libraries whose lifetime is that of their kernels."""

REGISTERED: set[str] = set()
"""The ops, such as `aten::copy_`, that have a kernel of ours for CUDA."""


def mode() -> Any:
    """The FakeTensorMode that the program's CUDA tensors belong to."""
    return _kept["mode"]


def is_fake(value: object) -> bool:
    """Whether a value is one of the program's own CUDA tensors, or was computed from one."""
    return getattr(value, "fake_mode", None) is _kept.get("mode", _kept)


def no_device_for_fakes(fake_tensor: ModuleType, patch: Patch) -> None:
    """FakeTensorMode asks this property, and a function that allocates on the device, when it is entered."""
    fake_tensor.FakeTensorMode.avoid_device_init = property(lambda self: True)
    for name in ("init_gpu_context", "init_cuda_context"):
        if hasattr(fake_tensor, name):
            patch.replace(fake_tensor, name, lambda *args, **kwargs: None)


def allocate_fakes(fake_tensor: ModuleType, patch: Patch) -> None:
    """Register kernels for the two ops that allocate; all factories and all copies to a device end there."""
    import torch
    from torch.utils._mode_utils import no_dispatch

    _kept["mode"] = fake_tensor.FakeTensorMode(allow_non_fake_inputs=True)
    _kept["mode"]._allow_unsafe_data_ptr_access = False  # C++ that asks for memory gets an exception, not address 0
    with _kept["mode"]:  # sets the guard of a CUDA build, see guard.py
        pass
    meta, cuda = torch.device("meta"), torch.device("cuda", 0)

    def empty(size: Any, *, device: Any = None, pin_memory: Any = None, **options: Any) -> Any:
        with no_dispatch():  # not the fake mode itself: callers may have dispatch switched off already
            bare = torch.ops.aten.empty.memory_format(size, device=meta, **options)
            return fake_tensor.FakeTensor(_kept["mode"], bare, cuda)

    def empty_strided(size: Any, stride: Any, *, device: Any = None, pin_memory: Any = None, **options: Any) -> Any:
        with no_dispatch():
            bare = torch.ops.aten.empty_strided.default(size, stride, device=meta, **options)
            return fake_tensor.FakeTensor(_kept["mode"], bare, cuda)

    register("aten::empty.memory_format", patch.counting(empty, empty), "CUDA")
    register("aten::empty_strided", patch.counting(empty_strided, empty_strided), "CUDA")


def register(op: str, kernel: Any, key: str) -> None:
    """Register a kernel of an aten op; torch warns when it takes the place of one that is there."""
    REGISTERED.add(op)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _library("aten").impl(op.removeprefix("aten::"), kernel, key)


def register_fallback(kernel: Any, key: str) -> None:
    """Register what is called for ops without a kernel, with the op before its arguments."""
    _library("_").fallback(kernel, key)


def _library(namespace: str) -> Any:
    import torch

    if namespace not in _kept:
        _kept[namespace] = torch.library.Library(namespace, "IMPL")
    return _kept[namespace]


def apply_to_modules(torch: ModuleType, patch: Patch) -> None:
    """Conversions of modules make new parameters instead of changing old ones in place."""
    torch.__future__.set_overwrite_module_params_on_conversion(True)

    def make(original: Any) -> Any:
        def _apply(self: Any, fn: Any, recurse: bool = True) -> Any:
            if any(is_fake(value) for value in (*self.parameters(), *self.buffers())):
                return _applied(self, fn, recurse, {})
            return original(self, fn, recurse)

        return _apply

    patch.around(torch.nn.Module, "_apply", make)


def _applied(module: Any, fn: Any, recurse: bool, made: dict[int, tuple[Any, Any]]) -> Any:
    """`made` keeps a parameter that several modules share one parameter."""
    from torch import nn, no_grad

    for child in module.children() if recurse else ():
        _applied(child, fn, recurse, made)
    for name, old in module._parameters.items():
        if old is not None:
            if id(old) not in made:
                with no_grad():
                    made[id(old)] = (old, nn.Parameter(fn(old), old.requires_grad))
            module._parameters[name] = made[id(old)][1]
    for name, old in module._buffers.items():
        module._buffers[name] = None if old is None else fn(old)
    return module


def share_the_fake_mode(output_graph: ModuleType, patch: Patch) -> None:
    """Make Dynamo hand over its own fakes of the program's fakes; from torch 2.13 on AOTAutograd does."""

    def make(original: Any) -> Any:
        def example_inputs(self: Any) -> Any:
            return [_in_mode_of(self.tracing_context, value) if is_fake(value) else value for value in original(self)]

        return example_inputs

    patch.around(output_graph.OutputGraph, "example_inputs", make)


def share_the_fake_mode_of_state(aot_autograd: ModuleType, patch: Patch) -> None:
    """Do the same for what a graph keeps as attributes, such as the state of an optimizer."""
    from torch._guards import TracingContext

    def make(original: Any) -> Any:
        def construct_fake_mode(values: list[Any], *args: Any, **kwargs: Any) -> Any:
            tracing = TracingContext.try_get()
            if tracing is not None:
                values[:] = [_in_mode_of(tracing, value) if is_fake(value) else value for value in values]
            return original(values, *args, **kwargs)

        return construct_fake_mode

    patch.around(aot_autograd, "construct_fake_mode", make)


def _in_mode_of(tracing: Any, value: Any) -> Any:
    symbols = tracing.tensor_to_context.get(value)
    source = getattr(symbols, "tensor_source", None)
    return tracing.fake_mode.from_tensor(value, symbolic_context=symbols, source=source, trace=False)


def number_addresses(fake_tensor: ModuleType, patch: Patch) -> None:
    """One per storage, for Python alone: what asks in C++ wants the memory."""
    import torch

    def of_storage(storage: Any) -> int:
        return int(storage._cdata) << 9  # as aligned as CUDA's allocator does it

    def of_tensor(original: Any) -> Any:
        def data_ptr(self: Any) -> int:
            if not is_fake(self):
                return int(original(self))
            return of_storage(self.untyped_storage()) + int(self.storage_offset() * self.element_size())

        return data_ptr

    def of_untyped(original: Any) -> Any:
        return lambda self: of_storage(self) if self.device.type == "meta" else original(self)

    patch.around(fake_tensor.FakeTensor, "data_ptr", of_tensor)
    patch.around(torch.UntypedStorage, "data_ptr", of_untyped)
