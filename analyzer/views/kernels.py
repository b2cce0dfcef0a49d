"""The tree of kernels: how often each is called, what it moves, and which groups and ops it computes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from analyzer.facts import Evidence, GraphFacts, GroupFact, KernelFact, Storage
from analyzer.views.summary import largest_first
from analyzer.views.text import artifact_text, byte_text, counted, cut, headed, listed, more, plain, shortened

KERNELS = 8
GROUPS = 3
"""Kernels per graph, and groups per kernel, on the first screens; `--full` shows all."""

_BACKENDS = {
    "cpp": "one C++ function",
    "triton": "Triton",
    "extern": "library call",
    "fallback": "fallback to an ATen op",
    "template": "template",
}

_Computed = Mapping[str, Sequence[str]]
"""For each group the FX nodes that it computes."""


def kernel_tree(facts: GraphFacts, full: bool, largest: bool = False) -> RenderableType:
    """Every kernel with its groups below it, then the groups that run no kernel. `largest`: most bytes first."""
    if not facts.kernels and not facts.groups:
        return Text("No kernel and no group was found", style="yellow")
    tree = Tree(Text("Kernels and the groups they run", style="bold"), guide_style="dim")
    shown, left = cut(largest_first(facts.kernels) if largest else facts.kernels, KERNELS, full)
    computed = facts.computed_by_group()
    for kernel in shown:
        line = _kernel_line(kernel, facts.summary.kernel_calls is not None, full)
        _add_groups(tree.add(line), facts, _groups_of(facts, kernel), computed, full)
    idle = [group for group in facts.groups if group.kernel is None]
    if idle:
        _add_groups(tree.add(Text("no kernel")), facts, idle, computed, full)
    return Group(tree, *more(left, "kernel"))


def _groups_of(facts: GraphFacts, kernel: KernelFact) -> list[GroupFact]:
    named = {group.name: group for group in facts.groups}
    return [named[name] for name in kernel.groups if name in named]


def _kernel_line(kernel: KernelFact, calls_known: bool, full: bool) -> Text:
    name = kernel.name if full else shortened(kernel.name)
    return headed(plain(name), f"  {', '.join(_kernel_words(kernel, calls_known))}")


def _kernel_words(kernel: KernelFact, calls_known: bool) -> Iterator[str]:
    # The C++ backend packs consecutive groups into one function: only its loop nests can be counted.
    yield _BACKENDS.get(kernel.backend, plain(kernel.backend))
    if kernel.loop_nests is not None:
        yield counted(kernel.loop_nests, "loop nest")
    yield counted(kernel.calls if calls_known else None, "call")
    yield f"reads {byte_text(kernel.bytes_read)}, writes {byte_text(kernel.bytes_written)}"
    if kernel.evidence == Evidence.NAME:
        yield "matched by name only"


def _add_groups(branch: Tree, facts: GraphFacts, groups: list[GroupFact], computed: _Computed, full: bool) -> None:
    shown, left = cut(groups, GROUPS, full)
    for group in shown:
        branch.add(_group_line(facts, group, computed[group.name], full))
    for line in more(left, "group"):
        branch.add(line)


def _group_line(facts: GraphFacts, group: GroupFact, computed: Sequence[str], full: bool) -> Text:
    line = Text("group ").append_text(artifact_text(group.name, full=full))
    if group.name != "_".join(group.members) and group.members:
        line.append(f" = {listed(group.members, most=4, full=full)}")
    line.append(f"  {plain(group.node_class)}", style="dim")
    if computed:
        line.append(f"  {listed(computed, most=6, full=full)}")
    if group.buffers:
        line.append(f" → {_buffers(facts, group, full)}")
    if group.reason:
        line.append(f"  ({plain(group.reason)})", style="yellow")
    return line


def _buffers(facts: GraphFacts, group: GroupFact, full: bool) -> str:
    removed = {buffer.name for buffer in facts.buffers if buffer.storage == Storage.REMOVED}
    told = [f"{name} (fused away)" if name in removed else name for name in group.buffers]
    return listed(told, most=4, full=full)
