"""The part of the capture that runs inside the user's processes: recorders and ablation switches.

Stands alone: standard library and torch only, Python 3.10 and newer. Nothing here may break the user's program: what a
recorder cannot do becomes a note in the sidecar (`notes.py`).
"""

from __future__ import annotations

import os

from inductor_audit_inside import waiting

PLAN = {
    "torch": "process:on_torch laboratory:on_torch",
    "torch._inductor.config": "settings:apply",
    "torch._functorch.config": "settings:apply",
    "torch._dynamo.config": "settings:apply",
    "torch._inductor.cpu_vec_isa": "probes:remember",
    "torch._inductor.debug": "graphs:watch_debug",
    "torch._inductor.graph": "graphs:watch_graph",
    "torch._inductor.ir": "reasons:watch_ir",
    "torch._inductor.scheduler": "pairs:watch_scheduler",
    "torch._inductor.compile_fx": "switches:on_compile_fx laboratory:watch_compiles",
    "torch._inductor.codecache": "laboratory:watch_calls",
    "torch._inductor.output_code": "laboratory:watch_calls",
    "torch._inductor.codegen.cpp": "kernels:watch_scheduling",
    "torch._inductor.codegen.simd": "kernels:watch_scheduling",
    "torch._inductor.codegen.triton": "kernels:watch_scheduling",
    "torch._inductor.codegen.halide": "kernels:watch_scheduling",
    "torch._inductor.codegen.mps": "kernels:watch_scheduling",
    "torch._inductor.codegen.pallas": "kernels:watch_scheduling",
    "torch._inductor.codegen.cuda.cuda_cpp_scheduling": "kernels:watch_scheduling",
    "torch._inductor.codegen.cutlass.scheduling": "kernels:watch_scheduling",
    "torch._inductor.codegen.cutedsl.cutedsl_scheduling": "kernels:watch_scheduling",
    "torch._inductor.codegen.rocm.rocm_cpp_scheduling": "kernels:watch_scheduling",
    "torch._inductor.codegen.wrapper": "memory:watch_wrapper",
    "torch._inductor.codegen.cpp_wrapper_cpu": "memory:watch_wrapper",
    "torch._inductor.codegen.cpp_wrapper_cpu_array_ref": "memory:watch_wrapper",
    "torch._inductor.codegen.memory_planning": "memory:watch_pools",
}
"""What to do when a module of torch has been imported: `module of this package:function(imported module)`, several
separated by spaces."""


def start() -> None:
    """Arrange for the hooks; does nothing outside a captured run. Imports as little as possible: see `waiting.py`."""
    if os.environ.get("INDUCTOR_AUDIT_REQUEST"):
        waiting.after_import(PLAN)
