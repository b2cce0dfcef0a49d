"""A device guard for CUDA that does nothing.

c10 keeps a guard per type of device in an exported table of pointers (c10/core/impl/DeviceGuardImplInterface.h). From
torch 2.10 on, torch itself puts one that does nothing into CUDA's place when the guard that is there counts no device
(`ensureCUDADeviceGuardSet`, which FakeTensorMode calls); a build without CUDA has none there. So for the length of that
one call there is a guard whose every method answers 0.
"""

from __future__ import annotations

import ctypes
import os
from types import ModuleType
from typing import Any

from inductor_audit_inside.deviceless.patch import Patch

_TABLE = "_ZN3c104impl26device_guard_impl_registryE"
_CPU, _CUDA = 0, 1
_METHODS = 64
"""More than the interface has."""

_TYPE, _EXCHANGE_DEVICE, _GET_DEVICE = 0, 1, 2
"""Where the interface's first methods stand."""

_kept: list[Any] = []
"""Memory that c10 goes on using."""


def _guards(torch: ModuleType) -> Any:
    library = ctypes.CDLL(os.path.join(os.path.dirname(str(torch.__file__)), "lib", "libc10.so"))
    return (ctypes.c_void_p * (_CUDA + 1)).in_dll(library, _TABLE)


def no_op_guard(torch: Any, patch: Patch) -> None:
    """Have torch fill CUDA's place. RuntimeError when it does not, and the place is then empty as before."""
    guards = _guards(torch)
    zero = ctypes.CFUNCTYPE(ctypes.c_int8, ctypes.c_void_p)(lambda self: 0)
    methods = (ctypes.c_void_p * _METHODS)(*[ctypes.cast(zero, ctypes.c_void_p).value] * _METHODS)
    counting_none = (ctypes.c_void_p * 1)(ctypes.addressof(methods))
    guards[_CUDA] = ctypes.addressof(counting_none)
    try:
        torch._C._ensureCUDADeviceGuardSet()
    finally:
        if guards[_CUDA] == ctypes.addressof(counting_none):
            guards[_CUDA] = None
    if not guards[_CUDA]:
        raise RuntimeError("torch did not set a guard for CUDA")
    patch.hits += 1


def guard_of_ones(torch: Any, patch: Patch) -> None:
    """Fill CUDA's place with the CPU's guard, which does nothing either, but for what it says of itself.

    The type CUDA is 1, and so is the device CUDA 0 in its two bytes: what `Py_IsInitialized` gives, which, unlike a
    callback of ours, may still be called when Python has ended.
    """
    guards = _guards(torch)
    methods = (ctypes.c_void_p * _METHODS)()
    ctypes.memmove(methods, ctypes.c_void_p.from_address(guards[_CPU]).value or 0, ctypes.sizeof(methods))
    one = ctypes.cast(ctypes.pythonapi.Py_IsInitialized, ctypes.c_void_p).value
    for place in (_TYPE, _EXCHANGE_DEVICE, _GET_DEVICE):
        methods[place] = one
    guard = (ctypes.c_void_p * 4)(ctypes.addressof(methods))
    _kept.extend((methods, guard))
    guards[_CUDA] = ctypes.addressof(guard)
    patch.hits += 1
