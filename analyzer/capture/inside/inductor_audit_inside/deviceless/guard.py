"""A device guard for CUDA that does nothing, for a torch that has none.

c10 keeps one guard per type of device in an exported table of pointers (c10/core/impl/DeviceGuardImplInterface.h). That
of the CPU switches nothing when asked to switch devices, so its pointer serves CUDA as well. FakeTensorMode does the same in
C++ from torch 2.10 on, where torch was built with CUDA. No Python is called back, so nothing can outlive the
interpreter.
"""

from __future__ import annotations

import ctypes
import os
from types import ModuleType

from inductor_audit_inside.deviceless.patch import Patch

_TABLE = "_ZN3c104impl26device_guard_impl_registryE"
_CPU, _CUDA = 0, 1
_LENGTH = 2


def no_op_guard(torch: ModuleType, patch: Patch) -> None:
    """Fill CUDA's entry. ValueError when this build's library does not export the table."""
    library = ctypes.CDLL(os.path.join(os.path.dirname(str(torch.__file__)), "lib", "libc10.so"))
    guards = (ctypes.c_void_p * _LENGTH).in_dll(library, _TABLE)
    if not guards[_CPU]:
        raise ValueError("c10 has no guard for the CPU: its table is not what it was")
    guards[_CUDA] = guards[_CPU]
    patch.hits += 1
