"""Whose value each buffer holds, by the best evidence there is: comments, provenance, then alignment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from analyzer.analyze.align import Aligner
from analyzer.analyze.fx_index import FxIndex
from analyzer.analyze.known import Hints
from analyzer.analyze.launches import Launch
from analyzer.analyze.leaves import Leaf
from analyzer.facts import Evidence
from analyzer.model import CompiledGraph, OutputCode, Rename


@dataclass(frozen=True)
class Owners:
    """`node` maps buffers to the FX node whose value they hold; `evidence` says from where; `reasons` why not.

    `implements` maps buffers of library kernels to the node that the call is, results with no value of their own
    included; `ambiguous` maps buffers to the several nodes that they may hold, `made` buffers that are written into
    later to the node whose value their own body computes.
    """

    node: Mapping[str, str] = field(default_factory=dict)
    evidence: Mapping[str, Evidence] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    implements: Mapping[str, str] = field(default_factory=dict)
    ambiguous: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    made: Mapping[str, str] = field(default_factory=dict)


def find_owners(
    graph: CompiledGraph,
    fx: FxIndex,
    leaves: Mapping[str, Leaf],
    starts: Sequence[Launch],
    computed: Mapping[str, frozenset[str]],
) -> Owners:
    """Owners without a sidecar. `computed` are the FX nodes that a buffer's kernel is known to compute (provenance)."""
    writers = {name for name, leaf in leaves.items() if leaf.buffer.mutations}
    stated = {name: node for name, node in _stated(graph.code, fx, starts) if node is not None or name not in writers}
    given = {name: node for name, node in stated.items() if node is not None}
    aligner = Aligner(fx, leaves, given, _hints(graph.code, fx, computed, stated))
    aligner.run()
    evidence = {name: _evidence(name, stated, computed) for name in aligner.owner}
    return Owners(aligner.owner, evidence, aligner.reasons, aligner.implements, aligner.ambiguous, aligner.made)


def _hints(
    code: OutputCode | None, fx: FxIndex, computed: Mapping[str, frozenset[str]], stated: Mapping[str, str | None]
) -> Hints:
    returned = _returned(code, fx)
    allowed = {name: _with_items(fx, nodes) for name, nodes in computed.items()} | returned
    renames = [step for step in (code.steps if code else ()) if isinstance(step, Rename)]
    return Hints(
        allowed=allowed,
        items={rename.new: rename.index for rename in renames if rename.index is not None},
        helpers=frozenset(name for name, node in stated.items() if node is None),
        returned=frozenset(returned),
    )


def _evidence(name: str, stated: Mapping[str, str | None], computed: Mapping[str, frozenset[str]]) -> Evidence:
    if name in stated:
        return Evidence.COMMENT
    return Evidence.PROVENANCE if name in computed else Evidence.ALIGNMENT


def _stated(code: OutputCode | None, fx: FxIndex, starts: Sequence[Launch]) -> Iterable[tuple[str, str | None]]:
    """What the `return` lines of Triton kernels' comments say: one entry per buffer of the group, in its order.

    Equal kernels share one definition, and the comment is about its first use.
    """
    kernels = {kernel.name: kernel for kernel in code.kernels} if code else {}
    for start in starts:
        kernel = kernels.pop(start.calls[0].callee, None) if start.calls else None
        buffers = [buffer.name for leaf in start.group.leaves() for buffer in leaf.buffers]
        returns = kernel.comment.returns if kernel is not None else None
        if returns is not None and len(returns) == len(buffers):
            yield from ((b, r if r in fx.nodes else None) for b, r in zip(buffers, returns, strict=True))


def _returned(code: OutputCode | None, fx: FxIndex) -> dict[str, frozenset[str]]:
    """For each returned buffer the FX nodes whose value it can hold: what the graph returns, through views."""
    outputs = fx.outputs
    if code is None or len(code.returns) != len(outputs):
        return {}
    found: dict[str, frozenset[str]] = {}
    for buffer, name in zip(code.returns, outputs, strict=True):
        if buffer is not None and name is not None and name in fx.nodes:
            chain = fx.view_chain(name)
            found[buffer] = found[buffer] & chain if buffer in found else chain
    return found


def _with_items(fx: FxIndex, nodes: Iterable[str]) -> frozenset[str]:
    """The nodes and the getitems on them: provenance names only what computes."""
    known = [name for name in nodes if name in fx.nodes]
    return frozenset(known) | {item for name in known for item in fx.items(name)}
