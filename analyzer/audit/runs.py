"""Did the ablation act? Judges every graph of two runs, and sums up the run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from analyzer.ablations import find
from analyzer.analyze import analyze
from analyzer.artifacts.manifest import FILE_NAME as MANIFEST
from analyzer.audit.judge import Claim, judge
from analyzer.audit.postconditions import POSTCONDITIONS, Arm
from analyzer.audit.sentences import Finding
from analyzer.compare.effective import effective_config
from analyzer.compare.pairing import GraphPair, pair_graphs
from analyzer.compare.sameness import same_code
from analyzer.errors import UsageError
from analyzer.model import CacheState, CompiledGraph, Run
from analyzer.verdict import AuditResult, Citation, GraphAudit, Rung, RungName, Verdict, summarize

__all__ = ["AuditResult", "Citation", "GraphAudit", "Rung", "RungName", "Verdict", "audit"]


def audit(base: Run, ablated: Run, ablation: str | None = None) -> AuditResult:
    """Judges an ablated run against its base; without a name, as what the ablated run's manifest says was switched.

    Raises UsageError for an unknown ablation, or when there is no name and no manifest that has exactly one.
    """
    entry = find(ablation or _switched(ablated))
    asked = ablated.manifest is not None and entry.name in _names(ablated)
    cited = (Citation(MANIFEST, None, f"captured with --ablation {entry.name}"),) if asked else ()
    return _Audit(base, ablated, Claim(entry, POSTCONDITIONS[entry.name], cited)).result()


def _names(run: Run) -> tuple[str, ...]:
    """The ablations that a capture was asked for; two that together are one ablation are that one."""
    names = run.manifest.ablations if run.manifest else ()
    return ("inlining+fusion",) if set(names) == {"inlining", "fusion"} else names


def _switched(run: Run) -> str:
    names = _names(run)
    if len(names) == 1:
        return names[0]
    if names:
        raise UsageError(f"the ablated run has several ablations: {', '.join(names)}", "Name one with --ablation.")
    raise UsageError(f"{run.path}: which ablation is this?", "Name it with --ablation: no capture manifest says it.")


@dataclass(frozen=True, slots=True)
class _Audit:
    base: Run
    ablated: Run
    claim: Claim

    def result(self) -> AuditResult:
        pairs = tuple(pair_graphs(self.base.graphs, self.ablated.graphs, versions=False))
        judged = [self._graph(pair, pairs) for pair in pairs]
        graphs = tuple(graph for graph, _ in judged)
        verdict = summarize(graph.verdict for graph in graphs)
        masked = [finding.masked for _, finding in judged if finding.masked is not None and finding.masked.gained]
        by_fusion = bool(masked) and all(one.by_fusion for one in masked)
        notes = tuple(self._notes(pairs))
        return AuditResult(self.claim.ablation.name, verdict, "fusion" if by_fusion else None, graphs, notes)

    def _notes(self, pairs: tuple[GraphPair, ...]) -> Iterator[str]:
        for pair in pairs:
            if pair.base is None or pair.ablated is None:
                yield f"{pair.name}: only in the {'ablated arm' if pair.base is None else 'base'}"
            elif pair.base.name != pair.ablated.name:
                yield f"{pair.base.name} was compared with {pair.ablated.name}: equal content under another name"
        if not pairs:
            yield "neither run holds a compiled graph"
        for where, run in (("base", self.base), ("ablated arm", self.ablated)):
            yield from (f"{where}: {note}" for note in run.notes)

    def _graph(self, pair: GraphPair, pairs: tuple[GraphPair, ...]) -> tuple[GraphAudit, Finding]:
        if pair.base is None or pair.ablated is None or self._is_half_cached(pair):
            return self._incomparable(pair, pairs)
        arms = [Arm(analyze(graph), effective_config(graph)) for graph in (pair.base, pair.ablated)]
        return judge(pair.name, arms[0], arms[1], self.claim)

    def _is_half_cached(self, pair: GraphPair) -> bool:
        """Whether one arm compiled this graph and the other has it from a cache."""
        return _is_cached(self.base, pair.base) != _is_cached(self.ablated, pair.ablated)

    def _incomparable(self, pair: GraphPair, pairs: tuple[GraphPair, ...]) -> tuple[GraphAudit, Finding]:
        """One arm did not compile such a graph: another program, a cache hit, or a folder that is missing."""
        before, after = (analyze(graph).summary if graph else None for graph in (pair.base, pair.ablated))
        verdict, why = self._why_incomparable(pair, pairs)
        graph = GraphAudit(pair.name, verdict, why, before=before, after=after, counted=self.claim.post.counted)
        return graph, Finding(verdict)

    def _why_incomparable(self, pair: GraphPair, pairs: tuple[GraphPair, ...]) -> tuple[Verdict, str]:
        if _is_cached(self.base, pair.base):
            return Verdict.CONFOUNDED, f"The base came from a warm cache, the ablated arm was compiled. {_COLD}"
        if _is_cached(self.ablated, pair.ablated):
            return self._why_cached(pair)
        alone = [other for other in pairs if other.base is None or other.ablated is None]
        if any(other.base is None for other in alone) and any(other.ablated is None for other in alone):
            return Verdict.CONFOUNDED, "The arms compiled different graphs: this one has no counterpart."
        if pair.base is None:
            return Verdict.CONFOUNDED, "Only the ablated arm compiled this graph: it ran more, or recompiled."
        return Verdict.UNDECIDED, "The ablated arm has no artifacts of this graph. Capture that arm again, cold."

    def _why_cached(self, pair: GraphPair) -> tuple[Verdict, str]:
        """Settings are part of a cache key; run-time switches are not, so the code is that of an earlier compile."""
        code = pair.ablated.code if pair.ablated else None
        changed = code and pair.base and pair.base.code and not same_code(pair.base.code, code)
        if self.claim.ablation.settings or changed:
            return Verdict.UNDECIDED, f"The ablated arm has this graph from a warm cache, which leaves no IR. {_COLD}"
        why = "The ablated arm has this graph from a warm cache, and a run-time switch is in no cache key"
        return Verdict.UNAPPLIED, f"{why}: it ran the code of an earlier compile. {_COLD}"


_COLD = "Capture that arm cold: `inductor-audit capture` switches every cache off."


def _is_cached(run: Run, graph: CompiledGraph | None) -> bool:
    """Whether a graph, or one that is not there at all, came from a cache: there is no IR then."""
    warm = run.cache_state is CacheState.WARM or (graph is not None and run.cache_state is CacheState.MIXED)
    return warm and (graph is None or (graph.pre is None and graph.post is None))
