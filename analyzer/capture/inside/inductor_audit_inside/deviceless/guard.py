"""A device guard for CUDA that does nothing, for a torch that was built without one.

c10 keeps a guard per type of device in an exported table of pointers (c10/core/impl/DeviceGuardImplInterface.h). torch
itself puts one that does nothing into CUDA's place when the guard that is there counts no device
(`ensureCUDADeviceGuardSet`, which FakeTensorMode calls); a build without CUDA has none there. So for the length of that
one call there is a guard whose every method answers 0.
"""

from __future__ import annotations

import ctypes
import os
from types import ModuleType

from inductor_audit_inside.deviceless.patch import Patch

_TABLE = "_ZN3c104impl26device_guard_impl_registryE"
_CUDA = 1
_METHODS = 64
"""More than the interface has."""


def no_op_guard(torch: ModuleType, patch: Patch) -> None:
    """Fill CUDA's place. RuntimeError when torch does not, and the place is then empty as before."""
    library = ctypes.CDLL(os.path.join(os.path.dirname(str(torch.__file__)), "lib", "libc10.so"))
    guards = (ctypes.c_void_p * (_CUDA + 1)).in_dll(library, _TABLE)
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
