"""Promises about the generated code: which kernel computes what, and by which backend."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from analyzer.contracts.records import Clause, Judgement, Outcome, Selector
from analyzer.contracts.scope import Scope, missing, told
from analyzer.facts import Fate, GraphFacts, NodeFact

BACKENDS = ("cpp", "triton", "extern", "fallback", "template", "user_triton", "other")


def kernel_computes(clause: Clause, scope: Scope) -> Iterator[Judgement]:
    """Each item is computed in a kernel whose name fits."""
    for pattern, items in clause.table:
        yield from scope.unknown(items)
        yield from _computed(pattern, items, scope)


def _computed(pattern: str, items: Sequence[Selector], scope: Scope) -> Iterator[Judgement]:
    for item in items:
        for facts, node in scope.nodes(item):
            if node.fate not in (Fate.VIEW, Fate.FOLDED):
                yield _in_kernel(pattern, facts, node)


def _in_kernel(pattern: str, facts: GraphFacts, node: NodeFact) -> Judgement:
    if any(fnmatchcase(kernel, pattern) for kernel in node.kernels):
        return told(facts, node, Outcome.KEPT, f"{node.name} is computed in {', '.join(node.kernels)}")
    if not node.kernels:
        why = (
            node.reason or missing(facts, "output_code.py", "ir_post_fusion.txt") or "no kernel is known to compute it"
        )
        return told(facts, node, Outcome.UNDECIDED, f"the kernel of {node.name} is not known: {why}")
    return told(facts, node, Outcome.BROKEN, f"{node.name} is computed in {', '.join(node.kernels)}, not in {pattern}")


def never_backend(clause: Clause, scope: Scope) -> Iterator[Judgement]:
    """No kernel call goes to one of these backends."""
    for facts in scope.graphs:
        if facts.summary.kernels is None:
            why = missing(facts, "output_code.py") or "the output code could not be read"
            yield Judgement(Outcome.UNDECIDED, f"the kernels are not known: {why}", facts.graph.name)
            continue
        found = [kernel for kernel in facts.kernels if kernel.backend in clause.words]
        names = ", ".join(f"{kernel.name} ({kernel.backend})" for kernel in found)
        outcome = Outcome.BROKEN if found else Outcome.KEPT
        yield Judgement(outcome, names or f"no {' or '.join(clause.words)} kernel", facts.graph.name)
