"""Triton's driver: asked for the target and the sizes of the device, never to launch anything."""

from __future__ import annotations

import dataclasses
from types import ModuleType
from typing import Any

from inductor_audit_inside.deviceless import device
from inductor_audit_inside.deviceless.patch import Patch

_counted: dict[str, Patch] = {}


class Utils:
    """What triton.backends.nvidia.driver.CudaUtils is asked for."""

    def get_device_properties(self, number: int) -> dict[str, int]:
        """The sizes that Inductor's templates and triton's estimates of peak rates use."""
        known = device.properties()
        return {
            "max_shared_mem": known.shared_memory_per_block_optin,
            "max_num_regs": known.regs_per_multiprocessor,
            "multiprocessor_count": known.multi_processor_count,
            "warpSize": known.warp_size,
            "sm_clock_rate": known.clock_rate,
            "mem_clock_rate": known.memory_clock_rate,
            "mem_bus_width": known.memory_bus_width,
        }


class Driver:
    """A driver (triton.backends.driver.DriverBase) for one device; whatever else is asked of it is refused by name."""

    utils = Utils()

    @classmethod
    def is_active(cls) -> bool:
        """Yes: it is the only one."""
        return True

    def get_current_target(self) -> Any:
        """The target that code is generated for, and that is part of every kernel's hash."""
        from triton.backends.compiler import GPUTarget

        _counted["driver"].hits += 1
        return GPUTarget("cuda", device.number(), device.figures()["warp_size"])

    def get_current_device(self) -> int:
        """The only one."""
        return 0

    def set_current_device(self, number: int) -> None:
        """It is set."""

    def get_current_stream(self, number: int) -> int:
        """The default stream."""
        return 0

    def get_device_interface(self) -> Any:
        """The module for devices of this kind."""
        import torch

        return torch.cuda

    def get_active_torch_device(self) -> Any:
        """The same as torch says it."""
        import torch

        return torch.device("cuda", 0)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"there is no device here: triton's driver was asked for {name!r}")


def stand_in(driver: ModuleType, patch: Patch) -> None:
    """Make it the active driver, before triton looks for a real one."""
    _counted["driver"] = patch
    driver.driver.set_active(Driver())


def of_backend(backends: ModuleType, patch: Patch) -> None:
    """Make it the driver of the nvidia backend. KeyError where triton was built without one."""
    backends.backends["nvidia"] = dataclasses.replace(backends.backends["nvidia"], driver=Driver)


def clocks(testing: ModuleType, patch: Patch) -> None:
    """The answer of nvidia-smi to questions about clocks, in MHz."""
    patch.replace(testing, "nvsmi", lambda asked: [device.figures()["sm_clock_khz"] // 1000 for _ in asked])
