"""Ablations of memory: reuse of buffers, work in place, planned pools. Read in the wrapper's steps."""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.audit.postconditions.record import Arm, Count, Postcondition, Stage, each
from analyzer.model import Allocation, OutputCode, Rename

_POOL = "alloc_from_pool"


def in_place_arguments(code: OutputCode) -> Iterator[str]:
    """Buffers that a kernel overwrites while it reads them, once per call; graph inputs are not Inductor's to reuse."""
    parameters = {kernel.name: kernel.params for kernel in code.kernels}
    for call in code.calls():
        for parameter, buffer in zip(parameters.get(call.callee, ()), call.buffers, strict=False):
            if parameter.name.startswith("in_out_ptr") and buffer and buffer not in code.inputs:
                yield buffer


def count_in_place(arm: Arm) -> Count:
    """In-place arguments."""
    code = arm.facts.graph.code
    return Count(tuple(in_place_arguments(code)) if code else ())


def count_reuse(arm: Arm) -> Count:
    """Buffers that take over freed memory. In place work prints the same `# reuse`, but another setting governs it."""
    code = arm.facts.graph.code
    if code is None:
        return Count()
    in_place = set(in_place_arguments(code))
    reused = (step for step in code.steps if isinstance(step, Rename) and step.kind == "reuse")
    return Count(tuple(step.new for step in reused if step.new not in in_place))


def count_unplanned(arm: Arm) -> Count:
    """Allocations outside a memory pool."""
    code = arm.facts.graph.code
    allocations = (step for step in (code.steps if code else ()) if isinstance(step, Allocation))
    return Count(tuple(step.buffer for step in allocations if _POOL not in step.via and step.buffer.startswith("buf")))


BUFFER_REUSE = Postcondition(
    name="buffer-reuse",
    counted="buffers that take over freed memory",
    satisfied="no buffer takes over freed memory (work in place is another setting: inplace_buffers)",
    earliest=Stage.SCHEDULING,
    needs=("code",),
    measure=each(count_reuse),
    next_step="For work in place use the ablation `inplace-buffers`.",
)

INPLACE_BUFFERS = Postcondition(
    name="inplace-buffers",
    counted="in-place kernel arguments",
    satisfied="no kernel works in place",
    earliest=Stage.SCHEDULING,
    needs=("code",),
    measure=each(count_in_place),
)

MEMORY_PLANNING = Postcondition(
    name="memory-planning",
    counted="allocations outside a pool",
    satisfied="every allocation is already planned",
    earliest=Stage.SCHEDULING,
    needs=("code",),
    measure=each(count_unplanned),
    next_step="Memory planning acts at inference only.",
)
