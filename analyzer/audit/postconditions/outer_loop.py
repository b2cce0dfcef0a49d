"""Which members of an outer-loop fusion share an inner loop: the post-fusion dump does not show it, the C++ body does.

`OuterLoopFusedSchedulerNode` (torch/_inductor/codegen/cpp.py) keeps its members in one outer loop; inside it, members
that were fused before share one inner loop, the others have each their own. A member is recognised by the pointer that
its buffer is stored to; one that is stored nowhere can only connect others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby

from analyzer.facts import GraphFacts
from analyzer.model import DumpNode, KernelCall, KernelDef, Rename

_CLASS = "OuterLoopFusedSchedulerNode"
_STORE = re.compile(
    r"^\s*(?:\w+\.store\()?(?P<target>(?:in_)?out_ptr\d+|local_buffer_data_\d+)(?:\[.*\] \+?= | \+ )", re.M
)
_ALIAS = re.compile(r"auto (?P<new>\w+) = (?P<old>in_out_ptr\d+);")
_BRACE = re.compile(r"[{}]")
_LOCAL = "local_buffer_data_"


@dataclass(slots=True)
class _Scope:
    """The text between two braces; `is_loop`: a `for` stands before it."""

    start: int
    is_loop: bool
    end: int = 0
    children: list[_Scope] = field(default_factory=list)


Members = tuple[DumpNode, ...]


def shared_inner_loops(facts: GraphFacts) -> Iterator[tuple[Members, Members]]:
    """For each inner loop that stores several values: their members, and those of the group that are stored nowhere."""
    for group in facts.graph.post.nodes if facts.graph.post else ():
        if group.node_class == _CLASS:
            yield from _shared(group, facts)


def _shared(group: DumpNode, facts: GraphFacts) -> Iterator[tuple[Members, Members]]:
    leaves = {buffer.name: leaf for leaf in group.leaves() for buffer in leaf.buffers}
    for kernel, call in _emitted_by(group, facts, leaves):
        loops = list(_inner_loops(kernel.source))
        pointers = _pointers(kernel, call, facts)
        found = {name for buffers in pointers.values() for name in buffers}
        pointers |= _locals(loops, [name for name in leaves if name not in found])
        hidden = tuple(leaf for name, leaf in leaves.items() if not any(name in names for names in pointers.values()))
        for inside in dict.fromkeys(_written(loops, pointers)):
            stored = tuple(leaf for name, leaf in leaves.items() if name in inside)
            if len(stored) > 1:
                yield stored, hidden


def _emitted_by(
    group: DumpNode, facts: GraphFacts, buffers: Mapping[str, DumpNode]
) -> Iterator[tuple[KernelDef, KernelCall]]:
    """The C++ function that computes a group, and its call."""
    code = facts.graph.code
    name = next((fact.kernel for fact in facts.groups if fact.name == group.name), None)
    kernel = next((kernel for kernel in code.kernels if kernel.name == name), None) if code else None
    calls = (call for call in code.calls() if call.callee == name) if code else iter(())
    call = next((call for call in calls if buffers.keys() & set(call.buffers)), None)
    if kernel is not None and call is not None:
        yield kernel, call


def _pointers(kernel: KernelDef, call: KernelCall, facts: GraphFacts) -> dict[str, tuple[str, ...]]:
    """Pointer of the C++ function → the buffers that live in that memory, in order: a later one takes it over."""
    before = (
        {step.new: step.old for step in facts.graph.code.steps if isinstance(step, Rename)} if facts.graph.code else {}
    )
    passed = {
        parameter.name: _history(buffer, before)
        for parameter, buffer in zip(kernel.params, call.buffers, strict=False)
        if "out_ptr" in parameter.name
    }
    aliases = {match["new"]: match["old"] for match in _ALIAS.finditer(kernel.source) if match["old"] in passed}
    return passed | {new: passed[old] for new, old in aliases.items()}


def _history(buffer: str, before: Mapping[str, str]) -> tuple[str, ...]:
    names = [buffer]
    while names[-1] in before and before[names[-1]] not in names:
        names.append(before[names[-1]])
    return tuple(reversed(names))


def _locals(loops: list[tuple[str, ...]], unstored: list[str]) -> dict[str, tuple[str, ...]]:
    """Buffers that live only inside the function are numbered in the order of the group."""
    names = sorted({store for loop in loops for store in loop if store.startswith(_LOCAL)})
    return (
        {name: (buffer,) for name, buffer in zip(names, unstored, strict=True)} if len(names) == len(unstored) else {}
    )


def _written(loops: list[tuple[str, ...]], pointers: Mapping[str, tuple[str, ...]]) -> Iterator[frozenset[str]]:
    """The buffers that each loop stores; the n-th loop that stores to a pointer writes the n-th buffer in its memory.

    Buffers that were there before the function count from the end: an older one is only read.
    """
    writers = {name: [index for index, loop in enumerate(loops) if name in loop] for name in pointers}
    for index, loop in enumerate(loops):
        names = (name for name in loop if name in pointers)
        yield frozenset(_at(pointers[name], writers[name].index(index) - len(writers[name])) for name in names)


def _at(buffers: tuple[str, ...], from_end: int) -> str:
    return buffers[max(from_end, -len(buffers))]


def _stores(scope: _Scope, source: str) -> Iterator[str]:
    return (match["target"] for match in _STORE.finditer(source, scope.start, scope.end))


def _inner_loops(source: str) -> Iterator[tuple[str, ...]]:
    """What each loop directly inside an outer loop stores; a vector loop and its scalar tail are one."""
    for outer in _outer_loops(_scopes(source)):
        stored = (tuple(_stores(scope, source)) for scope in _side_by_side(outer, source))
        yield from (stores for stores, _ in groupby(stored))


def _side_by_side(scope: _Scope, source: str) -> list[_Scope]:
    """A scope that stores by itself, or the first ones below it that stand beside each other."""
    while len(scope.children) == 1 and not _stores_itself(scope, source):
        scope = scope.children[0]
    return [scope] if _stores_itself(scope, source) or not scope.children else scope.children


def _stores_itself(scope: _Scope, source: str) -> bool:
    inside = [(child.start, child.end) for child in scope.children]
    places = (match.start("target") for match in _STORE.finditer(source, scope.start, scope.end))
    return any(not any(start <= place < end for start, end in inside) for place in places)


def _outer_loops(scope: _Scope) -> Iterator[_Scope]:
    for child in scope.children:
        if child.is_loop:
            yield child
        else:
            yield from _outer_loops(child)


def _scopes(source: str) -> _Scope:
    """The brace structure of the function; string literals of generated kernels hold no braces."""
    root = _Scope(0, False, len(source))
    open_scopes, last = [root], 0
    for brace in _BRACE.finditer(source):
        if brace[0] == "{":
            is_loop = source[last : brace.start()].rstrip().endswith(")") and "for(" in source[last : brace.start()]
            scope = _Scope(brace.end(), is_loop)
            open_scopes[-1].children.append(scope)
            open_scopes.append(scope)
        elif len(open_scopes) > 1:
            open_scopes.pop().end = brace.start()
        last = brace.end()
    return root
