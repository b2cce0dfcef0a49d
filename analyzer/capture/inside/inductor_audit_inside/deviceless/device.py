"""The device that is not there: its profile, as torch and triton want to see it."""

from __future__ import annotations

import functools
import types
from typing import Any

from inductor_audit_inside.request import load_request


@functools.cache
def figures() -> dict[str, Any]:
    """Name to value; `analyzer/capture/profile.py` has checked them."""
    return dict((load_request() or {})["profile"]["figures"])


def capability() -> tuple[int, int]:
    """The compute capability, such as (8, 0)."""
    major, minor = figures()["compute_capability"]
    return int(major), int(minor)


def number() -> int:
    """The compute capability as one number, such as 80."""
    major, minor = capability()
    return major * 10 + minor


def memory_clock_khz() -> int:
    """From bandwidth and bus width: two transfers per cycle."""
    known = figures()
    return round(float(known["memory_bandwidth_gbps"]) * 8e6 / (2 * int(known["memory_bus_bits"])))


@functools.cache
def properties() -> Any:
    """What `torch.cuda.get_device_properties` returns (torch/csrc/cuda/Module.cpp, `_CudaDeviceProperties`)."""
    known = figures()
    major, minor = capability()
    return types.SimpleNamespace(
        name=known["name"],
        major=major,
        minor=minor,
        total_memory=known["memory_bytes"],
        multi_processor_count=known["multiprocessors"],
        regs_per_multiprocessor=known["registers_per_multiprocessor"],
        max_threads_per_multi_processor=known["threads_per_multiprocessor"],
        max_threads_per_block=known["threads_per_block"],
        warp_size=known["warp_size"],
        shared_memory_per_block=known["shared_memory_per_block"],
        shared_memory_per_block_optin=known["shared_memory_per_block_optin"],
        shared_memory_per_multiprocessor=known["shared_memory_per_multiprocessor"],
        L2_cache_size=known["l2_bytes"],
        clock_rate=known["sm_clock_khz"],
        memory_clock_rate=memory_clock_khz(),
        memory_bus_width=known["memory_bus_bits"],
        is_integrated=0,
        is_multi_gpu_board=0,
        gcnArchName="",
        uuid="GPU-00000000-0000-0000-0000-000000000000",
        pci_bus_id=0,
        pci_device_id=0,
        pci_domain_id=0,
    )
