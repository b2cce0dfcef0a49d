"""Which call computes each post-fusion group.

The wrapper calls kernels in the order of the post-fusion dump (torch/_inductor/scheduler.py, `Scheduler._codegen`), and
a buffer keeps its name from the dump to the call that writes it. So a group belongs to the call that is given one of
its buffers to write. The C++ backend packs a run of consecutive groups into one call (torch/_inductor/codegen/cpp.py,
`CppScheduling.flush`), and a foreach or combo group may be split over several; both come out of the same rule.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from analyzer.model import DumpNode, IrDump, KernelCall, KernelDef, OutputCode, Rename

_LIBRARY = frozenset({"extern", "fallback"})
_SILENT = frozenset(
    ["MultiOutput", "AssertScalar", "DynamicScalar", "MutationOutput", "DynamicSelectStorageOffset", "DynamicSliceSize"]
)
"""IR classes of extern nodes that launch nothing themselves."""


@dataclass(frozen=True, slots=True)
class Launch:
    """What computes a group: the kernel's name and the calls (none if only the dump names it), or why it is unknown."""

    group: DumpNode
    kernel: str | None
    calls: tuple[KernelCall, ...] = ()
    reason: str | None = None

    @property
    def is_silent(self) -> bool:
        """The group needs no kernel."""
        return _is_silent(self.group)


def launches(dump: IrDump, code: OutputCode | None) -> tuple[Launch, ...]:
    """One launch per top-level node of the post-fusion dump, in order."""
    if code is None or not code.steps:
        return tuple(Launch(node, _dumped_name(node), (), "no output code") for node in dump.nodes)
    return _Matcher(dump.nodes, code).launches()


def written_by(call: KernelCall, kernels: Mapping[str, KernelDef]) -> tuple[str, ...]:
    """The buffers that a call may write: those passed as `out_ptr*` or `in_out_ptr*`, or all if unknown."""
    if call.kind in _LIBRARY:
        return call.outputs
    kernel = kernels.get(call.callee)
    if kernel is None or not kernel.params or len(kernel.params) < len([b for b in call.buffers if b]):
        return call.buffers
    pairs = zip(kernel.params, call.buffers, strict=False)
    return tuple(buffer for param, buffer in pairs if "out" in param.name or not param.name.startswith("in_"))


def _dumped_name(node: DumpNode) -> str | None:
    return node.kernel if node.kernel not in (None, "None") else None


@dataclass(frozen=True)
class _Matcher:
    nodes: Sequence[DumpNode]
    code: OutputCode

    @cached_property
    def calls(self) -> tuple[KernelCall, ...]:
        return tuple(call for call in self.code.calls() if call.kind != "subgraph")

    @cached_property
    def writers(self) -> Mapping[str, list[int]]:
        """For each buffer the positions of the calls that write it."""
        kernels = {kernel.name: kernel for kernel in self.code.kernels}
        found: defaultdict[str, list[int]] = defaultdict(list)
        taken_over: dict[str, str] = {}
        position = 0
        for step in self.code.steps:
            if isinstance(step, Rename) and step.kind == "reuse":
                taken_over[step.new] = step.old
            elif isinstance(step, KernelCall) and step.kind != "subgraph":
                for buffer in dict.fromkeys(written_by(step, kernels)):
                    for name in _unwritten(buffer, taken_over, found):
                        found[name].append(position)
                position += 1
        return found

    def launches(self) -> tuple[Launch, ...]:
        matched = [self._named(node) for node in self.nodes]
        for index, node in enumerate(self.nodes):
            if not (matched[index] or _is_silent(node)):
                matched[index] = self._between(index, matched)
        return tuple(self._launch(node, positions) for node, positions in zip(self.nodes, matched, strict=True))

    def _named(self, node: DumpNode) -> list[int]:
        """Calls that write one of the node's buffers under its name (or under that of the input it mutates)."""
        if _is_silent(node):
            return []
        own = sorted({p for buffer in node.buffers for p in self.writers.get(buffer.name, ()) if self._agrees(node, p)})
        if own:
            return own[:1] if self._is_packed(node) else own
        return []

    def _is_packed(self, node: DumpNode) -> bool:
        return node.node_class != "ForeachKernelSchedulerNode"

    def _agrees(self, node: DumpNode, position: int) -> bool:
        """An extern node is launched by a library call, any other node by a generated kernel."""
        library = self.calls[position].kind in _LIBRARY
        return library == (node.node_class == "ExternKernelSchedulerNode") or self.calls[position].kind == "user_triton"

    def _launch(self, node: DumpNode, positions: Sequence[int]) -> Launch:
        if _is_silent(node):
            return Launch(node, None, (), "launches nothing")
        calls = tuple(self.calls[position] for position in positions)
        name = _dumped_name(node) or (calls[0].callee if calls else None)
        return Launch(node, name, calls, None if calls else "no call in the wrapper writes its buffers")

    def _between(self, index: int, matched: Sequence[list[int]]) -> list[int]:
        """For a group that writes into an input: the one call left over between its neighbours' calls."""
        claimed = {p for positions in matched for p in positions}
        before = max((p for positions in matched[:index] for p in positions), default=-1)
        after = min((p for positions in matched[index + 1 :] for p in positions), default=len(self.calls))
        node = self.nodes[index]
        mutated = {name for buffer in node.buffers for name in buffer.mutations}
        window = range(max(before, 0), min(after, len(self.calls) - 1) + 1)
        fitting = [p for p in window if self._agrees(node, p) and (p not in claimed or self.calls[p].kind == "cpp")]
        writing = [p for p in fitting if mutated & set(self.calls[p].buffers)]
        return (writing or [p for p in fitting if p not in claimed])[:1]


def _unwritten(buffer: str, taken_over: Mapping[str, str], written: Mapping[str, list[int]]) -> Iterator[str]:
    """The buffer, and those whose memory it took over before any call wrote them: made and used up inside one call."""
    yield buffer
    seen = {buffer}
    while (buffer := taken_over.get(buffer, "")) and buffer not in seen and buffer not in written:
        seen.add(buffer)
        yield buffer


def _is_silent(node: DumpNode) -> bool:
    return node.node_class == "NopKernelSchedulerNode" or bool(set(node.inner) & _SILENT)
