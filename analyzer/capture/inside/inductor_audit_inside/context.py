"""What was in force when a graph was compiled: configuration, patched functions, environment, devices."""

from __future__ import annotations

import hashlib
import inspect
import os
import sys
from typing import Any

from inductor_audit_inside.notes import guarded
from inductor_audit_inside.wrap import RECORDS, SWITCHES

ENVIRONMENT = ("TORCH", "TRITON", "INDUCTOR", "OMP", "MKL", "ATEN", "CUDA", "AOT", "PYTORCH", "CXX")
"""Variables with these prefixes can change what Inductor does."""

HOOK_POINTS = (
    "torch._inductor.graph:GraphLowering.run_node",
    "torch._inductor.graph:GraphLowering.call_function",
    "torch._inductor.ir:StorageBox.realize",
    "torch._inductor.ir:StorageBox.realize_hint",
    "torch._inductor.ir:StorageBox.should_realize_on_reuse",
    "torch._inductor.ir:StorageBox.has_exceeded_max_reads",
    "torch._inductor.ir:ComputedBuffer.make_loader",
    "torch._inductor.scheduler:Scheduler.fuse_nodes",
    "torch._inductor.scheduler:Scheduler.fuse_nodes_once",
    "torch._inductor.scheduler:Scheduler.can_fuse",
    "torch._inductor.codegen.cpp:CppScheduling.codegen_node",
    "torch._inductor.compile_fx:select_decomp_table",
    "torch._inductor.fx_passes.post_grad:post_grad_passes",
    "torch._inductor.fx_passes.joint_graph:joint_graph_passes",
)
"""Functions that people patch to ablate; a configuration dump cannot show that."""

_LONGEST_VALUE = 1000


def context() -> dict[str, Any]:
    """The effective settings of this very compile, `options=` and `config.patch` included."""
    import torch

    found: dict[str, Any] = {
        "config": configuration("torch._inductor.config"),
        "functorch_config": configuration("torch._functorch.config"),
        "dynamo_config": configuration("torch._dynamo.config"),
        "patched": patched_functions(),
        "choices": None,
        "grad_enabled": torch.is_grad_enabled(),
        "threads": torch.get_num_threads(),
        "environment": environment(),
    }
    with guarded("choices"):
        from torch._inductor.virtualized import V

        if hasattr(V, "choices"):  # from torch 2.7 on
            kind = type(V.choices)
            found["choices"] = f"{kind.__module__}.{kind.__qualname__}"
    return found


def configuration(module_name: str) -> dict[str, str] | None:
    """All settings of a configuration module as source text; None when it was never imported."""
    module = sys.modules.get(module_name)
    if module is None:
        return None
    return {str(key): repr(value)[:_LONGEST_VALUE] for key, value in module.get_config_copy().items()}


def environment() -> dict[str, str]:
    """The variables that matter."""
    mine = "INDUCTOR_AUDIT"
    found = {key: value for key, value in sorted(os.environ.items()) if key.startswith(ENVIRONMENT)}
    return {key: value for key, value in found.items() if not key.startswith(mine)}


def patched_functions() -> dict[str, dict[str, Any]]:
    """Of the hook points, those whose installed function does not come from torch: by whom, from where."""
    found = {}
    for point in HOOK_POINTS:
        with guarded(f"hook point {point}"):
            foreign = _foreign(_installed(point))
            if foreign is not None:
                found[point.split(":")[1]] = foreign
    return found


def _installed(point: str) -> Any:
    module_name, path = point.split(":")
    thing = sys.modules.get(module_name)
    for name in path.split("."):
        thing = inspect.getattr_static(thing, name, None)
    return getattr(thing, "__func__", thing)


def _foreign(function: Any) -> dict[str, Any] | None:
    """Look below our recorders; functools.wraps copies a name but not the file of the code."""
    while getattr(function, "__inductor_audit__", None) == RECORDS and hasattr(function, "__wrapped__"):
        if function.__code__.co_name != "recorded":  # somebody wrapped our wrapper and inherited its mark
            break
        function = function.__wrapped__
    code = getattr(function, "__code__", None)
    if code is None or _is_torch(code.co_filename):
        return None
    own = getattr(function, "__inductor_audit__", None) == SWITCHES
    digest = hashlib.sha256(code.co_code + repr(code.co_consts).encode()).hexdigest()[:12]
    return {"file": code.co_filename, "line": code.co_firstlineno, "code": digest, "by_ablation": own}


def _is_torch(file: str) -> bool:
    import torch

    return file.startswith(os.path.dirname(torch.__file__) + os.sep)


def vector_isa() -> str | None:
    """The C++ vector ISA, if Inductor has asked for it; asking would compile probes."""
    module = sys.modules.get("torch._inductor.cpu_vec_isa")
    listing = getattr(module, "valid_vec_isa_list", None)
    if module is None or listing is None or not listing.cache_info().currsize:
        return None
    return str(module.pick_vec_isa())
