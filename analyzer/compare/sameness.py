"""Are two artifacts equal in everything that means something?

Dropped before comparing: places, comments, debug handles, generated kernel names, cache paths, object addresses and
AOT ids (two runs of one program differ in those alone); and in allocations the strides of dimensions of size 1, which
move no memory ("1-sizes don't matter", `pick_loop_order` in torch/_inductor/scheduler.py). `reordered_only` also
forgives the order of members, of statements and of allocations, which a changed schedule shuffles without changing
what is computed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from analyzer.model import Allocation, DumpNode, FxGraph, FxNode, IrDump, KernelCall, KernelDef, OutputCode, Step

_DROPPED = frozenset({"location", "comment", "handle", "artifact", "source", "distances", "aot_id", "meta"})
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+\b|(?<=\) )[0-9a-f]{9,16}\b")
_COMMENT = re.compile(r"^\s*(#(?!\s*(include|pragma))|//).*$")
_INCLUDE = re.compile(r"^\s*#include .*$")
_NUMBERED = re.compile(r"\b(tmp|_tmp|in_ptr|out_ptr|in_out_ptr|tmp_acc|x|y|z|r)\d+(_\w+)?\b")
_META = re.compile(r"'(kernel_name|backend_hash)': '[^']*'")


def plain(value: Any) -> Hashable:
    """A record as nested tuples, without what means nothing."""
    if isinstance(value, str):
        return _ADDRESS.sub("0x", value)
    if is_dataclass(value) and not isinstance(value, type):
        kept = (field.name for field in fields(value) if field.name not in _DROPPED)
        return (type(value).__name__, *(plain(getattr(value, name)) for name in kept))
    if isinstance(value, Mapping):
        return tuple(sorted((plain(key), plain(item)) for key, item in value.items()))
    if isinstance(value, tuple | list):
        return tuple(plain(item) for item in value)
    number: Hashable = value
    return number


# ---------------------------------------------------------------------------------------------------------- FX graphs


def _fx_line(node: FxNode) -> Hashable:
    return (node.name, node.op, node.target, node.args, node.kwargs, node.dtype, node.shape)


def live_program(graph: FxGraph) -> Counter[Hashable]:
    """What a graph computes: its live nodes without their order, and what it returns."""
    lines = Counter(_fx_line(node) for node in graph.nodes if node.live and node.op != "output")
    lines[("return", graph.outputs)] += 1
    return lines


def same_program(one: FxGraph, other: FxGraph) -> bool:
    """Whether two FX graphs compute the same from the same inputs; the order of nodes does not count."""
    return live_program(one) == live_program(other)


# ----------------------------------------------------------------------------------------------------------- IR dumps


def same_dump(one: IrDump, other: IrDump) -> bool:
    """Whether two IR dumps are equal but for places and addresses."""
    return plain(one.nodes) == plain(other.nodes)


def _leaf_key(node: DumpNode) -> Hashable:
    return plain((node.name, node.node_class, node.inner, node.kernel, node.sizes, node.body, node.buffers))


def same_groups(one: IrDump, other: IrDump) -> bool:
    """Whether two post-fusion dumps group equal nodes equally; neither order counts."""
    return _groups(one) == _groups(other) and _leaves(one) == _leaves(other)


def _groups(dump: IrDump) -> Counter[Hashable]:
    return Counter((node.node_class, frozenset(leaf.name for leaf in node.leaves())) for node in dump.nodes)


def _leaves(dump: IrDump) -> Counter[Hashable]:
    return Counter(_leaf_key(leaf) for leaf in dump.leaves())


# -------------------------------------------------------------------------------------------------------- output code


def same_code(one: OutputCode, other: OutputCode) -> bool:
    """Whether two wrappers and their kernels are equal but for names, comments and addresses."""
    return _code(one) == _code(other)


def reordered_only(one: OutputCode, other: OutputCode) -> bool:
    """Whether two wrappers do the same steps with the same kernels, lines and steps in any order."""
    return _shuffled(one) == _shuffled(other)


def other_kernel(one: OutputCode, other: OutputCode) -> KernelDef | None:
    """The first kernel of the other wrapper whose text no kernel of the first has, names and comments apart."""
    known = {_text(kernel) for kernel in one.kernels}
    return next((kernel for kernel in other.kernels if _text(kernel) not in known), None)


def _text(kernel: KernelDef) -> str:
    return "\n".join(_kernel_lines(kernel, {kernel.name: "kernel"}))


def _code(code: OutputCode) -> Hashable:
    names = {kernel.name: f"kernel{index}" for index, kernel in enumerate(code.kernels)}
    kernels = tuple("\n".join(_kernel_lines(kernel, names)) for kernel in code.kernels)
    steps = tuple(plain(_renamed(step, names)) for step in code.steps)
    return kernels, steps, code.inputs, code.returns, tuple(sorted(code.constants)), code.partitions


def _shuffled(code: OutputCode) -> Hashable:
    any_name = {kernel.name: "kernel" for kernel in code.kernels}
    lines = (_NUMBERED.sub(r"\1", line) for kernel in code.kernels for line in _kernel_lines(kernel, any_name))
    steps = (_unordered(_renamed(step, any_name)) for step in code.steps)
    return _count(lines), _count(steps), code.inputs, code.returns, tuple(sorted(code.constants)), code.partitions


def _count(items: Iterable[Hashable]) -> frozenset[tuple[Hashable, int]]:
    return frozenset(Counter(items).items())


def _kernel_lines(kernel: KernelDef, names: Mapping[str, str]) -> list[str]:
    """The kernel's text: comments, include paths and its own name dropped."""
    text = kernel.source.replace(kernel.name, names[kernel.name])
    text = _META.sub(r"'\1': ''", text)
    return [line.rstrip() for line in text.splitlines() if not (_COMMENT.match(line) or _INCLUDE.match(line))]


def _renamed(step: Step, names: Mapping[str, str]) -> Step:
    if isinstance(step, KernelCall) and step.callee in names:
        return replace(step, callee=names[step.callee])
    if isinstance(step, Allocation) and step.size and step.stride:
        strides = (1 if size == 1 else stride for size, stride in zip(step.size, step.stride, strict=False))
        return replace(step, stride=tuple(strides))
    return step


def _unordered(step: Step) -> Hashable:
    if isinstance(step, KernelCall):
        step = replace(step, args=tuple(sorted(step.args)), buffers=tuple(sorted(step.buffers)))
    return plain(step)
