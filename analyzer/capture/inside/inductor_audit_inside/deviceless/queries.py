"""Answers to torch's questions about the device, and streams and events that have nothing to order."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable
from types import ModuleType
from typing import Any

from inductor_audit_inside.deviceless import choices, device
from inductor_audit_inside.deviceless.patch import Patch

CUDA_VERSION = "12.8"
"""What a wheel without CUDA says it was built with."""

NOTHING = (
    "_lazy_init",
    "init",
    "set_device",
    "synchronize",
    "empty_cache",
    "ipc_collect",
    "reset_peak_memory_stats",
    "reset_max_memory_allocated",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
    "set_per_process_memory_fraction",
    "set_stream",
    "_set_stream_by_id",
)
ZERO = (
    "current_device",
    "_exchange_device",
    "_maybe_exchange_device",
    "memory_allocated",
    "max_memory_allocated",
    "memory_reserved",
    "max_memory_reserved",
)
_C_ANSWERS: dict[str, Any] = {
    "_cuda_getDeviceCount": 1,
    "_cuda_getDevice": 0,
    "_cuda_setDevice": None,
    "_cuda_exchangeDevice": 0,
    "_cuda_maybeExchangeDevice": 0,
    "_cuda_getCurrentRawStream": 0,
    "_cuda_init": None,
    "_cuda_synchronize": None,
    "_cuda_isCurrentStreamCapturing": False,
    "_cuda_cudaCachingAllocator_is_enabled": True,
}


def answer(torch: ModuleType, patch: Patch) -> None:
    """Replace the queries of `torch.cuda`, in the submodule that defines them too, and those of `torch._C`."""
    known, cc = device.properties(), device.capability()
    state = torch.zeros(16, dtype=torch.uint8)
    answers: dict[str, Callable[..., Any]] = {
        **{name: constant(None) for name in NOTHING},
        **{name: constant(0) for name in ZERO},
        "is_available": constant(True),
        "_is_compiled": constant(True),
        "is_initialized": constant(True),
        "device_count": constant(1),
        "is_current_stream_capturing": constant(False),
        "get_device_properties": constant(known),
        "get_device_capability": constant(cc),
        "get_device_name": constant(known.name),
        "get_arch_list": constant([f"sm_{device.number()}"]),
        "is_bf16_supported": lambda including_emulation=True: cc >= (8, 0) or including_emulation,
        "is_tf32_supported": constant(cc >= (8, 0)),
        "mem_get_info": constant((known.total_memory, known.total_memory)),
        "memory_stats": lambda device=None: defaultdict(int),
        "get_rng_state": lambda device="cuda": state.clone(),
        "initial_seed": constant(0),
    }
    for name, function in answers.items():
        _replace_everywhere(torch.cuda, name, function, patch)
    for name, value in _C_ANSWERS.items():
        patch.replace(torch._C, name, constant(value))
    if torch.version.cuda is None:
        torch.version.cuda = CUDA_VERSION
        for name in ("range_push", "range_pop", "range_start", "range_end", "mark"):
            patch.replace(torch.cuda.nvtx, name, constant(0))
    torch.Tensor.pin_memory = lambda self, *args: self


def answer_accelerator(accelerator: ModuleType, patch: Patch) -> None:
    """The same questions without the name of CUDA; C++ answers them, and knows no device."""
    import torch

    memory = device.properties().total_memory
    answers: dict[str, Callable[..., Any]] = {
        **{name: constant(None) for name in ("synchronize", "set_stream", "empty_cache", *_SETTERS)},
        **{name: constant(0) for name in (*_INDICES, *ZERO)},
        "is_available": constant(True),
        "device_count": constant(1),
        "current_accelerator": constant(torch.device("cuda")),
        "current_stream": lambda *args: Stream(),
        "memory_stats": lambda *args: defaultdict(int),
        "get_memory_info": constant((memory, memory)),
    }
    for name, function in answers.items():
        _replace_everywhere(accelerator, name, function, patch)


_SETTERS = ("set_device_index", "set_device_idx", "reset_peak_memory_stats", "reset_accumulated_memory_stats")
_INDICES = ("current_device_index", "current_device_idx")


def answer_dynamo(interfaces: ModuleType, patch: Patch) -> None:
    """Give CudaInterface what `torch.cuda` has now, and no cached answers from before."""
    import torch

    interface = interfaces.CudaInterface
    renamed = {"exchange_device": "_exchange_device", "maybe_exchange_device": "_maybe_exchange_device"}
    for name, bound in list(vars(interface).items()):
        function = getattr(torch.cuda, renamed.get(name, name), None)
        if isinstance(bound, staticmethod) and function is not None and name != "is_available":
            setattr(interface, name, staticmethod(patch.counting(function, function)))
    interface.get_raw_stream = staticmethod(torch._C._cuda_getCurrentRawStream)
    interface.Event, interface.Stream = torch.cuda.Event, torch.cuda.Stream
    for cache in ("caching_worker_device_properties", "caching_worker_current_devices"):
        getattr(interfaces, cache, {}).pop("cuda", None)


def constant(value: Any) -> Callable[..., Any]:
    """A function that always gives this."""
    return lambda *args, **kwargs: value


def _replace_everywhere(cuda: Any, name: str, function: Callable[..., Any], patch: Patch) -> None:
    """`torch.cuda.seed` is `torch.cuda.random.seed`, and torch itself calls either."""
    original = getattr(cuda, name, None)
    if original is None:
        return
    home = sys.modules.get(getattr(original, "__module__", None) or "")
    patch.replace(cuda, name, function)
    if home is not None and getattr(home, name, None) is original:
        setattr(home, name, getattr(cuda, name))


# -------------------------------------------------------------------------------------------------- streams and events


class Stream:
    """A stream of a device that does nothing; a context manager as the real one is."""

    cuda_stream = 0
    priority = 0
    stream_id = 0
    device_index = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        import torch

        self.device = torch.device("cuda", 0)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *error: Any) -> None:
        return

    def record_event(self, event: Any = None) -> Any:
        """An event, as the real method returns one."""
        return event or Event()

    def query(self) -> bool:
        """All its work is done: there is none."""
        return True

    def is_capturing(self) -> bool:
        """No graph is being recorded."""
        return False

    def synchronize(self) -> None:
        """Nothing to wait for."""

    wait_event = wait_stream = synchronize_with = lambda self, other: None


class Event:
    """An event; the time between two is a placeholder."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def record(self, stream: Any = None) -> None:
        """Nothing happened."""

    wait = record

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def query(self) -> bool:
        """Over at once."""
        return True

    def elapsed_time(self, other: Any) -> float:
        """Milliseconds; assumed, since a program may decide by it."""
        choices.assume("placeholder", "torch.cuda.Event.elapsed_time", "1.0 ms", "nothing runs, so nothing takes time")
        return 1.0


def stand_in_for_streams(torch: ModuleType, patch: Patch) -> None:
    """Replace what programs use of them by name."""
    torch.cuda.Event = Event
    torch.cuda.Stream = Stream
    for name in ("current_stream", "default_stream", "stream"):
        patch.replace(torch.cuda, name, lambda *args, **kwargs: Stream())
