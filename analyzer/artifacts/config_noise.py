"""Config lines of `fx_graph_runnable.py` that say nothing about the user's settings, with the reason for each.

torch/utils/_config_module.py (`codegen_config`, `_get_dict(skip_default=True)`) prints every key that was ever assigned
in the process, so a key that some compile patched and put back is printed with its default value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_INDUCTOR = "torch._inductor.config."
_DYNAMO = "torch._dynamo.config."
_FUNCTORCH = "torch._functorch.config."

WRITTEN_BY_TORCH: Mapping[str, str] = {
    f"{_INDUCTOR}trace.enabled": "patched to False while the debug writer runs",
    f"{_INDUCTOR}trace.save_real_tensors": "patched to False while the debug writer runs",
    f"{_FUNCTORCH}functionalize_rng_ops": "patched by every Inductor compile",
    f"{_FUNCTORCH}debug_partitioner": "follows TORCH_COMPILE_DEBUG (or is put back to its default)",
    f"{_FUNCTORCH}fake_tensor_allow_unsafe_data_ptr_access": "patched by every AOTAutograd compile",
    f"{_FUNCTORCH}unlift_effect_tokens": "patched by every Inductor compile",
    f"{_FUNCTORCH}selective_decompose": "patched by every Inductor compile (2.11+)",
}
"""Keys that torch itself sets during every compile: their lines carry no setting, whatever the value."""

ABOUT_THE_CAPTURE: Mapping[str, str] = {
    f"{_DYNAMO}debug_dir_root": "where the debug folder goes",
    f"{_INDUCTOR}trace.debug_dir": "where the debug folder goes",
    f"{_INDUCTOR}trace.provenance_tracking_level": "how much provenance is recorded",
    f"{_INDUCTOR}trace.provenance_tracking_to_timeline": "how much provenance is recorded (2.14+)",
    f"{_INDUCTOR}aot_inductor.output_path": "where AOTInductor writes its files",
    f"{_INDUCTOR}cuda.cutlass_dir": "where CUTLASS is installed",
    f"{_INDUCTOR}cutlass.cutlass_dir": "where CUTLASS is installed (2.10+)",
    f"{_INDUCTOR}xpu.cutlass_dir": "where CUTLASS is installed; by default the working folder",
    f"{_INDUCTOR}_cache_config_ignore_prefix": "which settings are in no cache key",
    f"{_INDUCTOR}_save_config_ignore": "which settings are not saved",
    f"{_DYNAMO}base_dir": "where torch is installed",
}
"""Keys about where and how artifacts are written, not about what is compiled."""

_LATER = (2, 99)
_DEFAULTS: Mapping[str, tuple[tuple[tuple[int, int], tuple[int, int], str], ...]] = {
    f"{_INDUCTOR}loop_ordering_after_fusion": (((2, 5), (2, 9), "False"), ((2, 11), (2, 15), "True")),
    f"{_INDUCTOR}realize_opcount_threshold": (((2, 5), (2, 11), "30"), ((2, 13), (2, 15), "None")),
    f"{_INDUCTOR}realize_acc_reads_threshold": (((2, 5), (2, 11), "8"), ((2, 13), (2, 15), "None")),
    f"{_INDUCTOR}triton.unique_kernel_names": (((2, 5), (2, 5), "False"), ((2, 9), (2, 15), "True")),
    f"{_INDUCTOR}triton.autotune_at_compile_time": (((2, 5), (2, 5), "False"), ((2, 9), (2, 15), "None")),
    f"{_DYNAMO}specialize_float": (((2, 5), (2, 5), "True"), ((2, 9), (2, 15), "False")),
} | {
    key: (((2, 5), _LATER, value),)
    for prefix, values in (
        (
            _INDUCTOR,
            {
                "aggressive_fusion": "False",
                "allow_buffer_reuse": "True",
                "benchmark_combo_kernel": "False",
                "benchmark_epilogue_fusion": "True",
                "benchmark_fusion": "False",
                "combo_kernels": "False",
                "comprehensive_padding": "True",
                "constant_and_index_propagation": "True",
                "coordinate_descent_tuning": "False",
                "cpp.max_horizontal_fusion_size": "16",
                "cpp.simdlen": "None",
                "cpp_wrapper": "False",
                "dce": "False",
                "deterministic": "False",
                "disabled_passes": "''",
                "epilogue_fusion": "True",
                "fallback_by_default": "False",
                "fallback_random": "False",
                "force_layout_optimization": "False",
                "force_pointwise_cat": "False",
                "freezing": "False",
                "fx_wrapper": "False",
                "inplace_buffers": "True",
                "joint_graph_constant_folding": "True",
                "layout_optimization": "True",
                "loop_index_inversion_in_fusion": "True",
                "loop_reindexing_after_fusion": "True",
                "max_autotune": "False",
                "max_autotune_gemm": "False",
                "max_autotune_gemm_backends": "'ATEN,TRITON,CPP'",
                "max_autotune_pointwise": "False",
                "max_complex_pointwise_cat_inputs": "8",
                "max_fusion_size": "64",
                "max_pointwise_cat_inputs": "8",
                "memory_planning": "False",
                "pattern_matcher": "True",
                "permute_fusion": "False",
                "pick_loop_orders": "True",
                "prologue_fusion": "True",
                "realize_reads_threshold": "4",
                "reorder_for_locality": "True",
                "reorder_for_peak_memory": "True",
                "score_fusion_memory_threshold": "10",
                "shape_padding": "True",
                "split_reductions": "True",
                "triton.autotune_cublasLt": "True",
                "triton.cudagraphs": "False",
                "triton.persistent_reductions": "True",
                "triton.store_cubin": "False",
                "unroll_reductions_threshold": "8",
                "use_dce": "True",
                "use_joint_graph_passes": "True",
                "use_post_grad_passes": "True",
                "use_pre_grad_passes": "True",
            },
        ),
        (_FUNCTORCH, {"cse": "True"}),
        (
            _DYNAMO,
            {
                "allow_rnn": "False",
                "assume_static_by_default": "True",
                "automatic_dynamic_shapes": "True",
                "capture_dynamic_output_shape_ops": "False",
                "capture_scalar_outputs": "False",
                "do_not_emit_runtime_asserts": "False",
                "prefer_deferred_runtime_asserts_over_guards": "False",
                "replay_side_effects": "True",
                "side_effect_replay_policy": "'info'",
                "specialize_int": "False",
            },
        ),
    )
    for key, value in ((prefix + name, value) for name, value in values.items())
}
"""Key → (first torch, last torch, default), as read from torch 2.5.1, 2.9.1, 2.13.0 and 2.15.0; a version in a gap
between two ranges was never looked at, so nothing is dropped there."""


def known_default(key: str, torch_version: str | None) -> str | None:
    """The import-time default of a config key as source text; None where it is not known for that version."""
    match = re.match(r"(\d{1,3})\.(\d{1,3})", torch_version or "")
    ranges = _DEFAULTS.get(key, ())
    if match is None:
        return ranges[0][2] if len(ranges) == 1 else None
    version = int(match[1]), int(match[2])
    return next((value for first, last, value in ranges if first <= version <= last), None)


def reason_for_noise(key: str, value: str, torch_version: str | None) -> str | None:
    """Why a printed config line is no setting of the user; None where it is one (or nobody knows better)."""
    written = WRITTEN_BY_TORCH.get(key) or ABOUT_THE_CAPTURE.get(key)
    if written:
        return written
    if known_default(key, torch_version) == value:
        return "equal to the default: printed because an earlier compile touched the key"
    return None
