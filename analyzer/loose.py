"""A single file or log as a run: an artifact by itself, a structured trace log, or TORCH_LOGS output in a console log."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from analyzer.artifacts import fx_graph, ir_dump, output_code, provenance, runnable, torch_logs
from analyzer.artifacts import trace_log as trace_file
from analyzer.artifacts.torch_logs import LogGraph, LogSection
from analyzer.artifacts.trace_log import TraceGraph, TraceLog
from analyzer.cache import cache_notes, cache_state
from analyzer.errors import ArtifactError
from analyzer.model import Artifact, ArtifactState, CompiledGraph, Location, Problem, Run
from analyzer.tree import read_file, text_of

NO_DUMP = "logs hold no IR dumps; run with TORCH_COMPILE_DEBUG=1, or use `inductor-audit capture`"

_TRACE_HEADER = re.compile(r"^[VIWECD]\d{4} \d\d:\d\d:\d\d\.\d+ \d+ [^\]]*\] \{", re.M)
_TAGGED = re.compile(r"\[__(ir_pre_fusion|ir_post_fusion|output_code|post_grad_graphs)\]")
_DUMP_HEADER = re.compile(r"^\W*(?:\w+: )?\w*(?:op|buf)\d+\w*: \w+\(", re.M)
_PRETTY_IR = re.compile(r"PRETTY IR|^\W*kernel op\d+\($", re.M)
_FORWARD = re.compile(r"^\s*def forward\(self", re.M)
_CODE = re.compile(r"async_compile|AsyncCompile|^def call\(|^    def call\(self|AOTInductorModel|inductor_entry", re.M)
_RUNNABLE = re.compile(r"^torch\._inductor\.config\.|run_repro\(|^# torch version:", re.M)
_PROVENANCE = re.compile(r'"(?:preToPost|postToPre|cppCodeToPost|postToCppCode)"')


@dataclass(frozen=True, slots=True)
class _Sort:
    """A kind of artifact, recognised by what its text looks like."""

    field: str
    parse: Callable[[str, str], Any]
    looks: Callable[[str, str], bool]


def _is_post(text: str, name: str) -> bool:
    return "post" in name or ("pre" not in name and "FusedSchedulerNode(" in text)


_SORTS = (
    _Sort("runnable", runnable.parse, lambda text, name: bool(_RUNNABLE.search(text) and _FORWARD.search(text))),
    _Sort("code", output_code.parse, lambda text, name: bool(_CODE.search(text))),
    _Sort("fx", fx_graph.parse, lambda text, name: bool(_FORWARD.search(text))),
    _Sort("provenance", provenance.parse, lambda text, name: bool(_PROVENANCE.search(text[:100_000]))),
    _Sort("post", ir_dump.parse, lambda text, name: bool(_DUMP_HEADER.search(text)) and _is_post(text, name)),
    _Sort("pre", ir_dump.parse, lambda text, name: bool(_DUMP_HEADER.search(text) or _PRETTY_IR.search(text))),
)


def load_loose(path: Path) -> Run:
    """Reads one file. Raises ArtifactError when it is nothing that Inductor writes, or empty."""
    data = read_file(path)
    text = text_of(data)
    if _TRACE_HEADER.search(text[:200_000]):
        return _from_trace(str(path), trace_file.parse(data, str(path)))
    if _TAGGED.search(text):
        return _from_logs(str(path), text)
    return _from_artifact(path, text)


def _from_artifact(path: Path, text: str) -> Run:
    sort = next((sort for sort in _SORTS if sort.looks(text, path.name)), None)
    if sort is None:
        what = "an empty file" if not text.strip() else "no artifact of TorchInductor"
        first = next((line for line in text.splitlines() if line.strip()), "")[:120]
        hint = "give a debug folder, an archive of one, an IR dump, output code, an FX graph, or a log"
        raise ArtifactError(Location(str(path), 1), f"{what}: expected an IR dump, code, graph or log", first, hint)
    parsed = sort.parse(text, str(path))
    parts: dict[str, Any] = {sort.field: parsed}
    graph = CompiledGraph(path.stem, "unknown", str(path), (replace(parsed.artifact, file=path.name),), **parts)
    version = parsed.torch_version if sort.field == "runnable" else None
    return Run(str(path), (graph,), version, notes=("one artifact by itself: what the others say is unknown",))


# ------------------------------------------------------------------------------------------------------- trace logs


def _from_trace(path: str, log: TraceLog) -> Run:
    graphs = tuple(_traced(graph, log) for graph in log.graphs)
    notes = [*cache_notes(graphs, (log,), None), *([NO_DUMP] if graphs else [])]
    return Run(path, graphs, log.torch_version, cache_state(graphs, (log,), None), None, tuple(notes))


_RECORDS: Mapping[str, tuple[tuple[str, ...], Callable[[str, str], Any]]] = {
    "fx": (trace_file.POST_GRAD, fx_graph.parse),
    "readable": (("before_post_grad_graph",), fx_graph.parse),
    "code": (("inductor_output_code", "inductor_aot_wrapper_code"), output_code.parse),
    "runnable": (("fx_graph_runnable",), runnable.parse),
    "provenance": (("inductor_provenance_tracking_node_mappings",), provenance.parse),
}


def _traced(graph: TraceGraph, log: TraceLog) -> CompiledGraph:
    """A graph from its records; positions are moved to their lines in the log."""
    parts: dict[str, Any] = {}
    artifacts = [] if graph.index else [log.artifact]
    for field, (names, parse) in _RECORDS.items():
        record = graph.record(*names)
        if record is not None:
            parsed = parse(record.text, record.name)
            parts[field] = parsed
            moved = tuple(_moved(problem, record.location) for problem in parsed.artifact.problems)
            artifacts.append(replace(parsed.artifact, file=record.name, problems=moved))
    artifacts += [Artifact(f"ir_{when}_fusion.txt", ArtifactState.MISSING, cause=NO_DUMP) for when in ("pre", "post")]
    name = f"graph_{graph.index}" if graph.aot_id is None else f"{graph.aot_id}.{graph.index}"
    return CompiledGraph(name, graph.kind, log.artifact.file, tuple(artifacts), trace=graph, **parts)


def _moved(problem: Problem, start: Location) -> Problem:
    """A payload begins on the line after its header, one tab to the right."""
    at = problem.location
    return replace(problem, location=Location(start.file, start.line + at.line, at.column + 1))


# -------------------------------------------------------------------------------------------------------- TORCH_LOGS


_SECTIONS: Mapping[str, tuple[str, Callable[[str, str], Any]]] = {
    "post_grad_graphs": ("fx", fx_graph.parse),
    "ir_pre_fusion": ("pre", ir_dump.parse),
    "ir_post_fusion": ("post", ir_dump.parse),
    "output_code": ("code", output_code.parse),
}


def _from_logs(path: str, text: str) -> Run:
    graphs = tuple(_logged(graph, path) for graph in torch_logs.graphs(torch_logs.split(text, path)))
    notes = tuple(_log_notes(graphs))
    return Run(path, graphs, notes=notes)


def _logged(graph: LogGraph, path: str) -> CompiledGraph:
    parts: dict[str, Any] = {}
    artifacts = []
    for kind, (field, parse) in _SECTIONS.items():
        section = graph.sections.get(kind)
        if section is None:
            artifacts.append(Artifact(kind, ArtifactState.MISSING, cause=f"not in the log; TORCH_LOGS={kind} prints it"))
            continue
        parsed = parse(section.text, path)
        moved = tuple(_placed(problem, section) for problem in parsed.artifact.problems)
        parts[field] = parsed
        artifacts.append(replace(parsed.artifact, file=kind, problems=moved))
    name = f"graph_{graph.index}"
    return CompiledGraph(name, "unknown", path, tuple(artifacts), **parts)


def _placed(problem: Problem, section: LogSection) -> Problem:
    return replace(problem, location=section.place(problem.location.line, problem.location.column))


def _log_notes(graphs: tuple[CompiledGraph, ...]) -> Iterator[str]:
    if graphs and all(graph.pre is None and graph.post is None for graph in graphs):
        yield "the log has no IR dumps: either TORCH_LOGS lacks ir_pre_fusion,ir_post_fusion, or a cache was warm"
    if not graphs:
        yield "the log has no message of an Inductor graph"
