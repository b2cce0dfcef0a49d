"""Settings that a capture without a device needs; the program's own assignments come later and win."""

from __future__ import annotations

from typing import Any

from inductor_audit_inside.deviceless.patch import Patch


def of_inductor(config: Any, patch: Patch) -> None:
    """Nothing may be timed. Not `force_disable_caches`: it is part of a kernel's hash."""
    renamed = hasattr(config, "benchmark_template_fusion")  # in torch 2.15
    setattr(config, "benchmark_template_fusion" if renamed else "benchmark_epilogue_fusion", False)
    config.triton.autotune_at_compile_time = False
    patch.hits += 1


def of_functorch(config: Any, patch: Patch) -> None:
    """Backward graphs are wanted whether or not backward runs."""
    if hasattr(config, "force_non_lazy_backward_lowering"):
        config.force_non_lazy_backward_lowering = True
        patch.hits += 1
