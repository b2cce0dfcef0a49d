"""The verdict on one pair of graphs.

The rules, in this order: CONFOUNDED when the arms differ in more than the ablation; UNDECIDED when a needed artifact
is missing or a needed fact unknown; UNAPPLIED when the switch was not in force; then the postcondition decides, by
what is left of the optimisation in each arm.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from analyzer.ablations import Ablation
from analyzer.audit import assumed
from analyzer.audit.confounders import Own, confounders
from analyzer.audit.ladder import Changes, applied, changes_between, own_settings, requested, stage_rungs, switch_points
from analyzer.audit.masking import masking
from analyzer.audit.postconditions import Arm, Count, Postcondition
from analyzer.audit.sentences import Finding, Judged, sentence
from analyzer.model import Artifact, ArtifactState, CompiledGraph, FxGraph, IrDump, OutputCode
from analyzer.verdict import Citation, GraphAudit, Rung, Verdict


@dataclass(frozen=True, slots=True)
class Claim:
    """What the ablated run is said to be: the ablation, its postcondition, and what its run's manifest says of it."""

    ablation: Ablation
    post: Postcondition
    asked: tuple[Citation, ...] = ()


def judge(name: str, base: Arm, ablated: Arm, claim: Claim) -> tuple[GraphAudit, Finding]:
    """The verdict on one graph, with the counts that led to it."""
    changes = changes_between(base.facts.graph, ablated.facts.graph)
    in_force = applied(base, ablated, claim.ablation, own_settings(claim.ablation, claim.post))
    finding = _find(base, ablated, claim, changes, in_force)
    stages = tuple(stage_rungs(base, ablated, claim.post, changes))
    audit = GraphAudit(
        name=name,
        verdict=finding.verdict,
        why=sentence(Judged(finding, base, ablated, claim.ablation, claim.post, in_force, changes)),
        masked_by="fusion" if finding.masked is not None and finding.masked.by_fusion else None,
        rungs=(requested(claim.ablation, claim.asked), in_force, *stages),
        before=base.facts.summary,
        after=ablated.facts.summary,
        counted=claim.post.counted,
        left_before=finding.before.left,
        left_after=finding.after.left,
    )
    return audit, finding


def _find(base: Arm, ablated: Arm, claim: Claim, changes: Changes, in_force: Rung) -> Finding:
    own = Own(own_settings(claim.ablation, claim.post), switch_points(claim.ablation))
    different = tuple(confounders(base, ablated, claim.post, own))
    if different:
        return Finding(Verdict.CONFOUNDED, different)
    missing = tuple(_missing(base, ablated, claim.post))
    if missing:
        return Finding(Verdict.UNDECIDED, missing)
    before, after = claim.post.measure(base, ablated)
    verdict = _under(in_force, decide(before, after, changes), changes)
    rests_on = (before if verdict is Verdict.EFFECTIVE else after).left
    doubts = assumed.doubts(claim.ablation.name, verdict, (base.facts.graph, ablated.facts.graph), rests_on)
    if doubts:
        return Finding(Verdict.UNDECIDED, doubts, before, after, advice=assumed.ADVICE)
    undone = claim.post.masked_by_fusion and verdict in (Verdict.EFFECTIVE, Verdict.PARTIAL)
    return Finding(verdict, (), before, after, masking(base, ablated) if undone else None)


def _under(in_force: Rung, verdict: Verdict, changes: Changes) -> Verdict:
    """A switch that was not in force explains nothing; one of which nothing is recorded does not explain no change."""
    if in_force.held is False:
        return Verdict.CONFOUNDED if changes.material else Verdict.UNAPPLIED
    return Verdict.UNAPPLIED if verdict is Verdict.INERT and in_force.held is None else verdict


# ------------------------------------------------------------------------------------------------------------ counting


def decide(before: Count, after: Count, changes: Changes) -> Verdict:
    """What the counts say; UNDECIDED when ids of unknown fate could tip it either way."""
    if changes.everything_equal:
        return _equal(before)
    cases = {
        _compare(old, new, changes.material) for old in {before.least, before.most} for new in {after.least, after.most}
    }
    return cases.pop() if len(cases) == 1 else Verdict.UNDECIDED


def _equal(before: Count) -> Verdict:
    if before.least:
        return Verdict.INERT
    return Verdict.UNDECIDED if before.most else Verdict.NO_OPPORTUNITY


def _compare(before: int, after: int, material: bool | None) -> Verdict:
    if before == 0:
        return Verdict.UNEXPECTED if material or after else Verdict.NO_OPPORTUNITY
    if after == 0:
        return Verdict.EFFECTIVE
    if after < before:
        return Verdict.PARTIAL
    return Verdict.UNEXPECTED if material or after > before else Verdict.INERT


# ------------------------------------------------------------------------------------------------------- what is needed


def _missing(base: Arm, ablated: Arm, post: Postcondition) -> Iterator[str]:
    for where, arm in (("base", base), ("ablated arm", ablated)):
        for field in post.needs:
            problem = unreadable(arm.facts.graph, field)
            if problem:
                yield f"{where}: {problem}"


def unreadable(graph: CompiledGraph, field: str) -> str | None:
    """Why an artifact cannot be judged, or None when it can: it is missing, empty, broken, or holds a subgraph only."""
    record: FxGraph | IrDump | OutputCode | None = getattr(graph, field)
    file = _FILES[field]
    if record is None:
        return f"{file} is missing"
    if record.artifact.state is ArtifactState.EMPTY and not (isinstance(record, IrDump) and _has_no_nodes(graph)):
        return f"{file} is empty"
    if _is_broken(record.artifact, isinstance(record, IrDump)):
        return f"{file} could not be read in full ({record.artifact.unparsed_lines} lines)"
    if isinstance(record, IrDump) and graph.overwritten:
        return f"{file} holds only {', '.join(graph.overwritten)}, the subgraph of control flow that was scheduled last"
    return None


def _is_broken(artifact: Artifact, is_dump: bool) -> bool:
    """One lost node of a dump can hide a group or a buffer; of the other artifacts the rest still counts."""
    return artifact.state is ArtifactState.UNSUPPORTED or (is_dump and artifact.state is ArtifactState.PARTIAL)


def _has_no_nodes(graph: CompiledGraph) -> bool:
    """An empty dump is right for a graph without scheduler nodes: then the wrapper is there and calls nothing."""
    return graph.code is not None and graph.code.artifact.state is ArtifactState.PARSED and not any(graph.code.calls())


_FILES = {
    "fx": "fx_graph_transformed.py",
    "pre": "ir_pre_fusion.txt",
    "post": "ir_post_fusion.txt",
    "code": "output_code.py",
}
