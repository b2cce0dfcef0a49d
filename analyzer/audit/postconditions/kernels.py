"""Ablations that are read in the generated code: templates, frozen parameters, vector code, CUDA graphs."""

from __future__ import annotations

from analyzer.audit.postconditions.fusion import is_template
from analyzer.audit.postconditions.record import Arm, Count, Postcondition, Stage, each
from analyzer.model import OutputCode


def _code(arm: Arm) -> OutputCode | None:
    return arm.facts.graph.code


def count_templates(arm: Arm) -> Count:
    """Scheduler nodes that a template computes; flex attention is a template too, but no matmul."""
    post = arm.facts.graph.post
    return Count(tuple(leaf.name for leaf in (post.leaves() if post else ()) if is_template(leaf)))


def count_frozen(arm: Arm) -> Count:
    """Parameters that became constants of the module."""
    code = _code(arm)
    return Count(tuple(name for name in (code.constants if code else ()) if name.startswith("_frozen_param")))


def count_vectors(arm: Arm) -> Count:
    """Mentions of `at::vec` in C++ kernels."""
    code = _code(arm)
    vectorised = [kernel for kernel in (code.kernels if code else ()) if kernel.vector_uses]
    return Count(tuple(kernel.name for kernel in vectorised), number=sum(kernel.vector_uses for kernel in vectorised))


def count_recordable(arm: Arm) -> Count:
    """Parts of the wrapper that CUDA graphs may record; none on CPU, and none while the setting is off."""
    code = _code(arm)
    if code is None or not _on_gpu(arm) or arm.config.value("triton.cudagraphs") != "True":
        return Count()
    if code.partitions:
        return Count(tuple(f"partition_{index}" for index in range(code.partitions)))
    return Count(unknown=("call",))


def _on_gpu(arm: Arm) -> bool:
    devices = {buffer.layout.device for buffer in arm.facts.buffers if buffer.layout}
    return any(device is not None and device.startswith("cuda") for device in devices)


def explain_cudagraphs(base: Arm, ablated: Arm, left: Count) -> str:
    """What the setting does where there is nothing to record (`Scheduler` and `PythonWrapperCodegen`)."""
    if _on_gpu(base):
        return ""
    return (
        "No CUDA graph is recorded on the CPU; but the setting also orders scheduler nodes for partitions, and leaves "
        "the checks of inputs out of the wrapper."
    )


MATMUL_TEMPLATES = Postcondition(
    name="matmul-templates",
    counted="template nodes",
    satisfied="no template was chosen: every matmul calls the library",
    earliest=Stage.LOWERING,
    needs=("post",),
    measure=each(count_templates),
    next_step="Templates need max_autotune in the base, and a shape where a template beats the library.",
)

PARAMETER_FREEZING = Postcondition(
    name="parameter-freezing",
    counted="frozen parameters",
    satisfied="no parameter is frozen",
    earliest=Stage.FX,
    needs=("code",),
    measure=each(count_frozen),
    next_step="Freezing acts only without gradients: capture the base with freezing = True under torch.no_grad().",
)

VECTORIZATION = Postcondition(
    name="vectorization",
    counted="uses of at::vec",
    satisfied="no kernel uses vector code",
    earliest=Stage.SCHEDULING,
    needs=("code",),
    measure=each(count_vectors),
    next_step="Set cpp.simdlen = 1 before the first compile; a supported width only changes the number of lanes.",
)

CUDAGRAPHS = Postcondition(
    name="cudagraphs",
    counted="parts of the wrapper that CUDA graphs can record",
    satisfied="CUDA graphs have nothing to record (they need CUDA tensors and triton.cudagraphs)",
    earliest=Stage.SCHEDULING,
    needs=("code",),
    measure=each(count_recordable),
    explain=explain_cudagraphs,
    next_step="Capture the base on a GPU with triton.cudagraphs = True.",
)
