"""One JSON encoder for all results; the shapes are the contract with scripts, so keys are only ever added."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from analyzer.compare.chosen import chosen_settings, shared_settings
from analyzer.diff.records import GraphDiff, Layer, Repeated, RunDiff
from analyzer.diff.repeats import collapse
from analyzer.facts import BufferFact, GraphFacts, GroupFact, KernelFact, NodeFact
from analyzer.model import Artifact, Dep, DumpNode, Run, SourceSite

if TYPE_CHECKING:
    from analyzer.ablations import Ablation, Setting
    from analyzer.artifacts.deviceless import Deviceless
    from analyzer.artifacts.ptx import PtxEstimates
    from analyzer.lab.records import ArmResult, ArmTime, LabResult, ScriptResult
    from analyzer.verdict import AuditResult, GraphAudit

SCHEMA_VERSION = 1
"""Raised when a key changes its meaning or goes; new keys do not raise it."""

Document = dict[str, Any]


_OPEN_LEVELS = 4
"""Down to the lists of a graph's records; each record is one line, which is also what the fast encoder can do."""

_encoded = json.JSONEncoder(allow_nan=False).encode


def dumps(document: Mapping[str, Any]) -> str:
    """The document as text. Pure ASCII, so that no artifact text can reach a terminal as an escape sequence."""
    return _text(document, 0)


def _text(value: Any, level: int) -> str:
    if level == _OPEN_LEVELS or not value or not isinstance(value, dict | list):
        return _encoded(value)
    indent = "  " * level
    if isinstance(value, dict):
        lines = [f"{indent}  {_encoded(str(key))}: {_text(item, level + 1)}" for key, item in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    return "[\n" + ",\n".join(f"{indent}  {_text(item, level + 1)}" for item in value) + f"\n{indent}]"


def report_document(run: Run, graphs: Sequence[GraphFacts]) -> Document:
    """The document of `report --json`."""
    return {
        "schema_version": SCHEMA_VERSION,
        "run": {
            "path": run.path,
            "torch_version": run.torch_version,
            "captured": run.captured,
            "cache_state": str(run.cache_state),
            "config": shared_settings(graphs),
            "notes": list(run.notes),
        },
        "graphs": [_graph(facts) for facts in graphs],
    }


def _graph(facts: GraphFacts) -> Document:
    graph = facts.graph
    return {
        "name": graph.name,
        "process": graph.process,
        "kind": graph.kind,
        "path": graph.path,
        "config": chosen_settings(graph),
        "artifacts": [_artifact(artifact) for artifact in graph.artifacts],
        "deviceless": _deviceless(graph.deviceless),
        "estimates": _estimates(graph.ptx),
        "fx_nodes": [_fx_node(fact) for fact in facts.nodes],
        "buffers": [_buffer(fact) for fact in facts.buffers],
        "scheduler_nodes": [_scheduler_node(node) for node in facts.scheduler_nodes],
        "groups": [_group(fact) for fact in facts.groups],
        "kernels": [_kernel(fact) for fact in facts.kernels],
        "conflicts": [asdict(conflict) for conflict in facts.conflicts],
        "summary": asdict(facts.summary),
    }


def _deviceless(record: Deviceless | None) -> Document | None:
    """The device that was assumed, and what its absence left open; None for a graph that ran on one."""
    if record is None:
        return None
    choices = [asdict(choice) for choice in record.choices]
    return {"profile": record.profile, "device": record.device, "support": record.support, "choices": choices}


def _estimates(record: PtxEstimates | None) -> list[Document] | None:
    """What ptxas says of each Triton kernel; None where nobody asked it."""
    if record is None:
        return None
    told = [asdict(kernel) for kernel in record.kernels]
    return [{"reason": kernel.pop("error"), **kernel} for kernel in told]


def _artifact(artifact: Artifact) -> Document:
    return {
        "file": artifact.file,
        "state": str(artifact.state),
        "cause": artifact.cause,
        "lines": artifact.lines,
        "unparsed_lines": artifact.unparsed_lines,
        "errors": [
            {"line": problem.location.line, "column": problem.location.column, "message": problem.message}
            for problem in artifact.problems
        ],
    }


def _fx_node(fact: NodeFact) -> Document:
    source = fact.source
    return {
        "name": fact.name,
        "target": fact.node.target,
        "fate": str(fact.fate),
        "buffer": fact.buffer,
        "inlined_into": list(fact.inlined_into),
        "kernels": list(fact.kernels),
        "source_ops": list(fact.source_ops),
        "source": _source(source) if source is not None else None,
        "evidence": str(fact.evidence),
        "reason": fact.reason,
    }


def _source(site: SourceSite) -> Document:
    """As `asdict` has it, which takes ten times as long: there is one for nearly every node."""
    return {"file": site.file, "line": site.line, "function": site.function, "code": site.code}


def _buffer(fact: BufferFact) -> Document:
    layout = fact.layout
    return {
        "name": fact.name,
        "operation": fact.operation,
        "ir_class": fact.ir_class,
        "dtype": layout.dtype if layout else None,
        "device": layout.device if layout else None,
        "size": list(layout.size) if layout and layout.size is not None else None,
        "stride": list(layout.stride) if layout and layout.stride is not None else None,
        "bytes": fact.bytes,
        "fx_node": fact.fx_node,
        "origins": list(fact.origins),
        "users": list(fact.users),
        "storage": str(fact.storage),
        "shares_memory_with": fact.shares_memory_with,
        "group": fact.group,
        "kernel": fact.kernel,
        "evidence": str(fact.evidence),
        "reason": fact.reason,
        "rule": fact.rule,
    }


def _scheduler_node(node: DumpNode) -> Document:
    return {
        "name": node.name,
        "class": node.node_class,
        "ir_class": node.inner[0] if node.inner else None,
        "reads": _buffer_names(node.reads),
        "writes": _buffer_names(node.writes),
    }


def _buffer_names(deps: Sequence[Dep]) -> list[str]:
    return list(dict.fromkeys(dep.buffer for dep in deps))


def _group(fact: GroupFact) -> Document:
    return {
        "name": fact.name,
        "class": fact.node_class,
        "members": list(fact.members),
        "buffers": list(fact.buffers),
        "kernel": fact.kernel,
        "reason": fact.reason,
    }


def _kernel(fact: KernelFact) -> Document:
    return {
        "name": fact.name,
        "handles": list(fact.handles),
        "backend": fact.backend,
        "calls": fact.calls,
        "groups": list(fact.groups),
        "buffers": list(fact.buffers),
        "fx_nodes": list(fact.fx_nodes),
        "source_ops": list(fact.source_ops),
        "loop_nests": fact.loop_nests,
        "bytes_read": fact.bytes_read,
        "bytes_written": fact.bytes_written,
        "evidence": str(fact.evidence),
    }


def audit_document(result: AuditResult) -> Document:
    """The document of `audit --json`."""
    return {
        "schema_version": SCHEMA_VERSION,
        "ablation": result.ablation,
        "verdict": str(result.verdict),
        "masked_by": result.masked_by,
        "notes": list(result.notes),
        "graphs": [_graph_audit(graph) for graph in result.graphs],
    }


def _graph_audit(graph: GraphAudit) -> Document:
    return {
        "name": graph.name,
        "verdict": str(graph.verdict),
        "masked_by": graph.masked_by,
        "why": graph.why,
        "counted": graph.counted,
        "left_before": list(graph.left_before),
        "left_after": list(graph.left_after),
        "rungs": [
            {"rung": str(rung.rung), "held": rung.held, "evidence": [asdict(citation) for citation in rung.evidence]}
            for rung in graph.rungs
        ],
        "before": asdict(graph.before) if graph.before is not None else None,
        "after": asdict(graph.after) if graph.after is not None else None,
    }


def diff_document(diff: RunDiff) -> Document:
    """The document of `diff --json`."""
    return {
        "schema_version": SCHEMA_VERSION,
        "equal": diff.equal,
        "complete": diff.complete,
        "old": diff.old,
        "new": diff.new,
        "config": [asdict(change) for change in diff.config],
        "environment": [asdict(change) for change in diff.environment],
        "graphs": [_graph_diff(graph) for graph in diff.graphs],
        "summary": _diff_summary(diff),
    }


def _graph_diff(graph: GraphDiff) -> Document:
    return {
        "old": graph.old,
        "new": graph.new,
        "equal": graph.equal,
        "unknown": list(graph.unknown),
        "changes": [_change(entry) for entry in collapse(graph.changes)],
        "before": asdict(graph.before) if graph.before is not None else None,
        "after": asdict(graph.after) if graph.after is not None else None,
    }


def _change(entry: Repeated) -> Document:
    change = entry.change
    return {
        "kind": str(change.kind),
        "layer": str(change.layer),
        "aspect": change.aspect,
        "subject": change.subject,
        "old": list(change.old.ids),
        "new": list(change.new.ids),
        "detail": change.detail,
        "old_at": asdict(change.old.at) if change.old.at is not None else None,
        "new_at": asdict(change.new.at) if change.new.at is not None else None,
        "old_code": list(change.old.code),
        "new_code": list(change.new.code),
        "count": entry.count,
        "also": [{"old": list(other.old.ids), "new": list(other.new.ids)} for other in entry.others],
    }


def _diff_summary(diff: RunDiff) -> Document:
    """Changes per layer over all graphs, repeats counted."""
    layers = [str(change.layer) for graph in diff.graphs for change in graph.changes]
    return {
        "graphs": len(diff.graphs),
        "equal_graphs": sum(graph.equal for graph in diff.graphs),
        "config": len(diff.config),
        "environment": len(diff.environment),
        "changes": {str(layer): layers.count(layer) for layer in Layer},
    }


def ablate_document(result: LabResult) -> Document:
    """The document of `ablate --json`. `ratio` is to the arm's baseline; an effect only where `credited`."""
    arms = [_arm(script.script.label, arm) for script in result.scripts for arm in script.arms]
    return {
        "schema_version": SCHEMA_VERSION,
        "scripts": [_lab_script(script) for script in result.scripts],
        "arms": arms,
        "effects": [asdict(script.factorial) for script in result.scripts if script.factorial] or None,
    }


def _lab_script(script: ScriptResult) -> Document:
    return {
        "script": script.script.label,
        "path": script.script.path,
        "arguments": list(script.script.arguments),
        "noise_band": script.band,
        "notes": list(script.notes),
    }


def _arm(script: str, arm: ArmResult) -> Document:
    return {
        "script": script,
        "arm": arm.spec.name,
        "ablation": "+".join(arm.spec.ablations) or None,
        "role": str(arm.spec.role),
        "against": arm.spec.against,
        "folder": str(arm.run.folder),
        "status": str(arm.run.status),
        "failure": arm.run.why,
        "kept": arm.run.kept,
        "verdict": str(arm.verdict) if arm.verdict else None,
        "masked_by": arm.masked_by,
        "why": arm.why,
        "before": asdict(arm.before) if arm.before else None,
        "summary": asdict(arm.after) if arm.after else None,
        "compile_s": arm.run.compile_s,
        "time": _arm_time(arm.time) if arm.time else None,
        "not_timed": arm.untimed,
        "agreement": asdict(arm.agreement) if arm.agreement else None,
    }


def _arm_time(time: ArmTime) -> Document:
    graphs = {name: asdict(graph) for name, graph in time.graphs.items()}
    credit = {"credited": time.credited, "why_not": time.why_not, "noise": time.noise, "left_out": time.left_out}
    return {**asdict(time.whole), **credit, "graphs": graphs}


def ablations_document(ablations: Sequence[Ablation]) -> Document:
    """The document of `ablations --json`."""
    return {"schema_version": SCHEMA_VERSION, "ablations": [_ablation(entry) for entry in ablations]}


def _ablation(entry: Ablation) -> Document:
    return {
        "name": entry.name,
        "summary": entry.summary,
        "reading": entry.reading,
        "paper_row": entry.row,
        "layer": entry.layer.name.lower(),
        "settings": [_setting(setting) for setting in entry.settings],
        "switches": list(entry.switches),
        "baseline": [_setting(setting) for setting in entry.baseline],
        "needs": entry.needs,
        "ignored_when": list(entry.ignored_when),
    }


def _setting(setting: Setting) -> Document:
    return {
        "key": setting.key,
        "value": setting.value,
        "since": _version(setting.since),
        "until": _version(setting.until),
    }


def _version(version: tuple[int, int] | None) -> str | None:
    return None if version is None else "{}.{}".format(*version)
