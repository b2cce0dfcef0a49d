"""The counts of one graph."""

from __future__ import annotations

from collections import Counter

from analyzer.analyze.leaves import buffer_number
from analyzer.analyze.targets import is_compute
from analyzer.analyze.traffic import storage_bytes
from analyzer.facts import Fate, GraphFacts, KernelFact, Storage, Summary, known_sum
from analyzer.model import Allocation, IrDump, Layout


def summarize(facts: GraphFacts) -> Summary:
    """Counts over facts that exist; what has no artifact, or a damaged one, is None.

    FX nodes are the live ones that compute.
    """
    graph = facts.graph
    fates = Counter(fact.fate for fact in facts.nodes if fact.node.live)
    has_fx, has_pre, has_post = bool(facts.nodes), _is_whole(graph.pre), _is_whole(graph.post)
    has_code = graph.code is not None and bool(graph.code.steps)
    placed = has_fx and bool(facts.buffers)
    return Summary(
        fx_nodes=sum(1 for fact in facts.nodes if fact.node.live and is_compute(fact.node)) if has_fx else None,
        realized=fates[Fate.REALIZED] if placed else None,
        inlined=fates[Fate.INLINED] if placed else None,
        recomputed=_recomputed(facts) if placed else None,
        views=fates[Fate.VIEW] if placed else None,
        folded=fates[Fate.FOLDED] if placed else None,
        unknown=fates[Fate.UNKNOWN] if placed else None,
        scheduler_nodes=len(facts.scheduler_nodes) if has_pre else None,
        groups=len(facts.groups) if has_post else None,
        kernels=len(facts.kernels) if has_code else None,
        kernel_calls=sum(kernel.calls for kernel in facts.kernels) if has_code else None,
        loop_nests=_loop_nests(facts) if has_code else None,
        removed_buffers=sum(1 for b in facts.buffers if b.storage == Storage.REMOVED) if has_code else None,
        allocated_bytes=_allocated(facts) if has_code else None,
        bytes_read=known_sum(kernel.bytes_read for kernel in _computing(facts)) if has_post else None,
        bytes_written=known_sum(kernel.bytes_written for kernel in _computing(facts)) if has_post else None,
    )


def _is_whole(dump: IrDump | None) -> bool:
    """Whether a dump was read without a gap: of another one, nobody knows how many nodes it had."""
    return dump is not None and not dump.artifact.problems


def _recomputed(facts: GraphFacts) -> int:
    """Nodes whose operations are done in more than one place."""
    return sum(fact.recomputed for fact in facts.nodes)


def _loop_nests(facts: GraphFacts) -> int | None:
    """Loop nests over all calls of C++ kernels; None where no kernel is C++."""
    nests = [kernel.loop_nests * kernel.calls for kernel in facts.kernels if kernel.loop_nests is not None]
    return sum(nests) if nests else None


def _allocated(facts: GraphFacts) -> int | None:
    """Bytes of all buffers that the wrapper allocates, workspaces of kernels left out.

    Where no IR dump tells of a buffer, the size is the one that the wrapper asks for.
    """
    code = facts.graph.code
    allocated = {s.buffer: s for s in code.steps if isinstance(s, Allocation)} if code else {}
    sizes = {name: _asked_for(step) for name, step in allocated.items() if buffer_number(name) is not None}
    sizes.update({buffer.name: buffer.bytes for buffer in facts.buffers if buffer.name in allocated})
    return known_sum(sizes.values())


def _asked_for(step: Allocation) -> int | None:
    return storage_bytes(Layout("", "", None, step.dtype, step.size, step.stride))


def _computing(facts: GraphFacts) -> list[KernelFact]:
    return [kernel for kernel in facts.kernels if kernel.groups]
