"""A single file as a run: an artifact by itself, a structured trace log, or TORCH_LOGS output in a console log."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from analyzer.artifacts import fx_graph, ir_dump, output_code, provenance, torch_logs
from analyzer.artifacts import trace_log as trace_file
from analyzer.artifacts.torch_logs import LogGraph, LogSection
from analyzer.artifacts.trace_log import CacheEvent, TraceGraph, TraceLog, TraceRecord
from analyzer.errors import ArtifactError
from analyzer.load.cache import cache_event, cache_notes, cache_state
from analyzer.load.recognize import dumps_in, is_console_log, is_trace_log, kind_of
from analyzer.load.slots import FROM_CACHE, SLOTS, STACKS
from analyzer.load.tree import text_of
from analyzer.model import Artifact, ArtifactState, CompiledGraph, Location, Problem, Run

NO_DUMP = "logs hold no IR dumps; run with TORCH_COMPILE_DEBUG=1, or use `inductor-audit capture`"
_ALONE = "one artifact by itself: what the others say is unknown"
_GIVE = "give a debug folder, an archive of one, an IR dump, output code, an FX graph, or a log"
_LONGEST_EXCERPT = 120


def load_loose(data: bytes, path: str, name: str) -> Run:
    """Reads one file, called `name`. Raises ArtifactError when it is nothing that Inductor writes, or empty."""
    text = text_of(data)
    if is_trace_log(text):
        return _from_trace(path, trace_file.parse(data, path))
    if is_console_log(text):
        return _from_logs(path, text)
    return _from_artifact(path, name, text)


def _from_artifact(path: str, name: str, text: str) -> Run:
    kind = kind_of(text, name)
    if kind is None:
        raise _unknown(path, text)
    parsed = {field: kind.parse(part, path) for field, part in dumps_in(text, kind).items()}
    artifacts = tuple(replace(part.artifact, file=name) for part in parsed.values())
    graph = CompiledGraph(PurePath(name).stem, "unknown", path, artifacts, **parsed)
    version = graph.runnable.torch_version if graph.runnable else None
    return Run(path, (graph,), version, notes=(_ALONE,))


def _unknown(path: str, text: str) -> ArtifactError:
    """Where the first line with text is, and that it begins nothing known."""
    lines = text.split("\n")
    number = next((number for number, line in enumerate(lines, 1) if line.strip()), None)
    if number is None:
        return ArtifactError(
            Location(path, 1), "expected an IR dump, code, graph or log, found an empty file", "", _GIVE
        )
    what = "binary data" if "\0" in text[:4096] else "no artifact of TorchInductor"
    message = f"expected an IR dump, code, graph or log, found {what}"
    return ArtifactError(Location(path, number), message, lines[number - 1].strip()[:_LONGEST_EXCERPT], _GIVE)


# ------------------------------------------------------------------------------------------------------- trace logs


def _from_trace(path: str, log: TraceLog) -> Run:
    graphs = tuple(traced(graph, log) for graph in log.graphs)
    if not graphs:
        raise ArtifactError(
            Location(path, 1), "expected the records of a graph: this trace log has none", "", _why_no_graph(log)
        )
    notes = [*cache_notes(graphs, (log,), None), NO_DUMP]
    return Run(path, graphs, log.torch_version, cache_state(graphs, (log,), None), None, tuple(notes), (log,))


def _why_no_graph(log: TraceLog) -> str:
    failed = next((error for compile_ in log.compiles for error in compile_.errors), None)
    if failed is not None:
        return f"the compile failed before Inductor began: {failed.strip().splitlines()[0][:_LONGEST_EXCERPT]}"
    return "nothing was compiled by Inductor in this process, or the log was cut off"


def traced(graph: TraceGraph, log: TraceLog) -> CompiledGraph:
    """A graph from its records alone; positions of problems are their lines in the log."""
    parts: dict[str, Any] = {}
    artifacts = [] if graph.index else [log.artifact]
    cached = cache_event(log, graph) is CacheEvent.HIT
    for slot in SLOTS:
        record = graph.record(*slot.record) if slot.record and slot.field not in parts else None
        if record is not None:
            parts[slot.field] = parsed = read_record(record, slot.parse)
            artifacts.append(replace(parsed.artifact, file=record.name))
        elif slot.field in ("pre", "post"):
            cause = FROM_CACHE if cached else NO_DUMP
            artifacts.append(Artifact(slot.file, ArtifactState.MISSING, cause=cause))
    name = f"graph_{graph.index}" if graph.aot_id is None else f"{graph.aot_id}.{graph.index}"
    complete = with_stacks(parts, graph)
    return CompiledGraph(name, graph.kind, log.artifact.file, tuple(artifacts), trace=graph, **complete)


def read_record(record: TraceRecord, parse: Callable[[str, str], Any]) -> Any:
    """What a parser makes of a record's payload; its problems lie in the log, everything else in the record."""
    parsed = parse(record.text, record.name)
    moved = tuple(_moved(problem, record.location) for problem in parsed.artifact.problems)
    return replace(parsed, artifact=replace(parsed.artifact, problems=moved))


def _moved(problem: Problem, start: Location) -> Problem:
    """A payload begins on the line after its header, one tab to the right."""
    at = problem.location
    return replace(problem, location=Location(start.file, start.line + at.line, at.column + 1))


def with_stacks(parts: dict[str, Any], trace: TraceGraph | None) -> dict[str, Any]:
    """The parts, their provenance completed by the stack traces of kernels, which only the trace log has."""
    record = trace.record(STACKS) if trace is not None else None
    if record is None or "provenance" not in parts:
        return parts
    stacks = provenance.parse(record.text, record.name)
    return {**parts, "provenance": provenance.with_stacks(parts["provenance"], stacks)}


# -------------------------------------------------------------------------------------------------------- TORCH_LOGS


_SECTIONS: Mapping[str, tuple[str, Callable[[str, str], Any]]] = {
    "post_grad_graphs": ("fx", fx_graph.parse),
    "ir_pre_fusion": ("pre", ir_dump.parse),
    "ir_post_fusion": ("post", ir_dump.parse),
    "output_code": ("code", output_code.parse),
}


def _from_logs(path: str, text: str) -> Run:
    found = torch_logs.graphs(torch_logs.split(text, path))
    names = _process_names(found)
    graphs = tuple(replace(_logged(graph, path), process=names[graph.origin.rank, graph.origin.pid]) for graph in found)
    return Run(path, graphs, notes=tuple(_log_notes(graphs)))


def _process_names(graphs: list[LogGraph]) -> Mapping[tuple[int | None, int | None], str | None]:
    """Names of the processes that wrote a log, by rank and pid; None where there is only one."""
    origins = list(dict.fromkeys((graph.origin.rank, graph.origin.pid) for graph in graphs))
    if len(origins) < 2:
        return dict.fromkeys(origins)
    return {(rank, pid): f"process {n}" if rank is None else f"rank {rank}" for n, (rank, pid) in enumerate(origins, 1)}


def _logged(graph: LogGraph, path: str) -> CompiledGraph:
    parts: dict[str, Any] = {}
    artifacts = []
    for kind, (field, parse) in _SECTIONS.items():
        section = graph.sections.get(kind)
        if section is None:
            artifacts.append(
                Artifact(kind, ArtifactState.MISSING, cause=f"not in the log; TORCH_LOGS={kind} prints it")
            )
            continue
        parsed = parse(section.text, path)
        moved = tuple(_placed(problem, section) for problem in parsed.artifact.problems)
        parts[field] = parsed
        artifacts.append(replace(parsed.artifact, file=kind, problems=moved))
    return CompiledGraph(f"graph_{graph.index}", "unknown", path, tuple(artifacts), **parts)


def _placed(problem: Problem, section: LogSection) -> Problem:
    return replace(problem, location=section.place(problem.location.line, problem.location.column))


def _log_notes(graphs: tuple[CompiledGraph, ...]) -> Iterator[str]:
    if not graphs:
        yield "the log has no message of an Inductor graph"
    elif all(graph.pre is None and graph.post is None for graph in graphs):
        yield "the log has no IR dumps: either TORCH_LOGS lacks ir_pre_fusion,ir_post_fusion, or a cache was warm"
