"""RUN argument → `Run`: reads every artifact of every graph once, and says what is missing and why."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from analyzer.artifacts import fx_graph, ir_dump, output_code, provenance, runnable, sidecar
from analyzer.artifacts import manifest as manifest_file
from analyzer.artifacts import trace_log as trace_file
from analyzer.artifacts.manifest import Manifest
from analyzer.artifacts.trace_log import TraceGraph, TraceLog
from analyzer.cache import cache_notes, cache_state
from analyzer.errors import UsageError
from analyzer.locate import Found, find, focus
from analyzer.loose import load_loose
from analyzer.model import Artifact, ArtifactState, CompiledGraph, Run
from analyzer.tree import Folder, Tree, is_archive, open_tree, text_of

Parser = Callable[[str, str], Any]
"""`parse(text, source)` of an artifact module; its result has an `artifact`."""


@dataclass(frozen=True, slots=True)
class Slot:
    """An artifact's file, its field in `CompiledGraph`, and the trace record that can stand in for it.

    `expected`: its absence is worth a line in the report.
    """

    file: str
    field: str
    parse: Parser
    record: tuple[str, ...] = ()
    expected: bool = True


SLOTS = (
    Slot("fx_graph_transformed.py", "fx", fx_graph.parse, trace_file.POST_GRAD),
    Slot("fx_graph_readable.py", "readable", fx_graph.parse, ("before_post_grad_graph",)),
    Slot("ir_pre_fusion.txt", "pre", ir_dump.parse),
    Slot("ir_post_fusion.txt", "post", ir_dump.parse),
    Slot("output_code.py", "code", output_code.parse, ("inductor_output_code",)),
    Slot("output_code.cpp", "code", output_code.parse, ("inductor_aot_wrapper_code",), expected=False),
    Slot("fx_graph_runnable.py", "runnable", runnable.parse, ("fx_graph_runnable",)),
    Slot(
        "inductor_provenance_tracking_node_mappings.json",
        "provenance",
        provenance.parse,
        ("inductor_provenance_tracking_node_mappings",),
    ),
    Slot(sidecar.FILE_NAME, "sidecar", sidecar.parse, expected=False),
)

_KIND = re.compile(r"_(inference|forward|backward)_")
_SUBGRAPH_OP = re.compile(r"(\w+_graph_\d+)_(?:op|buf)\d+$")
_PID = re.compile(r"-pid_(\d+)$")


def load_run(path: str | Path) -> Run:
    """Reads a run. `path` takes every form that the command line's RUN takes.

    Raises UsageError when there is nothing to read and ArtifactError when an archive or manifest is broken; a broken
    artifact inside a run is no error: its graph says so.
    """
    path = Path(path)
    if path.is_file() and not is_archive(path):
        return load_loose(path)
    at = focus(path if path.name else path.absolute()) if path.is_dir() else None
    tree: Tree = Folder(str(at.root)) if at else open_tree(path)
    found = find(tree.paths(), at.prefix if at else PurePosixPath())
    if not (found.graphs or found.processes or found.manifest or found.traces):
        raise UsageError(f"{path}: no Inductor artifacts here", "make some: inductor-audit capture SCRIPT")
    return _Loader(tree, found).run(str(path))


@dataclass(frozen=True, slots=True)
class _Loader:
    """Reads what `find` found below the tree's root."""

    tree: Tree
    found: Found

    def run(self, path: str) -> Run:
        manifest = self._manifest()
        traces = self._traces()
        graphs = tuple(self._graph(folder, traces) for folder in self.found.graphs)
        return Run(
            path=path,
            graphs=graphs,
            torch_version=_torch_version(graphs, traces, manifest),
            cache_state=cache_state(graphs, traces, manifest),
            manifest=manifest,
            notes=(*cache_notes(graphs, traces, manifest), *self._notes(manifest)),
        )

    def _manifest(self) -> Manifest | None:
        if self.found.manifest is None:
            return None
        return manifest_file.parse(self._text(self.found.manifest), self._source(self.found.manifest))

    def _text(self, path: PurePosixPath) -> str:
        return text_of(self.tree.data(path))

    def _source(self, path: PurePosixPath) -> str:
        return str(PurePosixPath(Path(self.tree.root).as_posix()) / path)

    def _traces(self) -> tuple[TraceLog, ...]:
        """The logs of the chosen processes; all logs where no process folder says which."""
        pids = {int(match[1]) for run in self.found.processes if (match := _PID.search(run.name))}
        logs = [trace_file.parse(self.tree.data(path), self._source(path)) for path in self.found.traces]
        return tuple(log for log in logs if not pids or log.pid in pids)

    def _notes(self, manifest: Manifest | None) -> Iterator[str]:
        if self.found.older:
            names = ", ".join(run.name for run in self.found.older[-3:])
            yield f"{len(self.found.older)} older run(s) beside this one were left out: {names}"
        for finding in manifest.findings if manifest else ():
            yield finding.message if finding.hint is None else f"{finding.message}; {finding.hint}"

    # --------------------------------------------------------------------------------------------------- one graph

    def _graph(self, folder: PurePosixPath, traces: Sequence[TraceLog]) -> CompiledGraph:
        trace = next((graph for log in traces if (graph := log.graph_of_folder(folder.name))), None)
        parts, artifacts = self._read(folder, trace)
        kind = _KIND.search(folder.name)
        graph = CompiledGraph(
            name=folder.name,
            kind=kind[1] if kind else "unknown",
            path=self._source(folder),
            artifacts=tuple(artifacts),
            trace=trace,
            **parts,
        )
        return replace(graph, overwritten=overwritten(graph))

    def _read(self, folder: PurePosixPath, trace: TraceGraph | None) -> tuple[dict[str, Any], list[Artifact]]:
        present = self.found.files.get(folder, frozenset())
        parts: dict[str, Any] = {}
        artifacts = []
        for slot in SLOTS:
            record = trace.record(*slot.record) if trace is not None and slot.record else None
            if slot.file in present:
                parsed = slot.parse(self._text(folder / slot.file), self._source(folder / slot.file))
            elif record is not None and slot.field not in parts:
                parsed = slot.parse(record.text, str(record.location.file))
            else:
                parsed = None
            if parsed is not None:
                parts[slot.field] = parsed
                artifacts.append(replace(parsed.artifact, file=slot.file))
            elif slot.expected and slot.field not in parts:
                artifacts.append(Artifact(slot.file, ArtifactState.MISSING, cause=missing_cause(slot, present)))
        return parts, artifacts


def missing_cause(slot: Slot, present: frozenset[str]) -> str:
    """Why Inductor did not write an artifact, as far as its neighbours tell."""
    if slot.field == "provenance":
        return "provenance tracking off, torch before 2.7, or a backward graph that was compiled lazily"
    if slot.field in ("pre", "post") and "output_code.py" in present:
        return "not among the files: Inductor writes it before output_code.py"
    if slot.field in ("pre", "post", "fx") and "fx_graph_readable.py" in present:
        return "the compile failed before it was written"
    if slot.field == "code" and "ir_post_fusion.txt" in present:
        return "the compile failed in code generation, or another wrapper was used"
    return "not among the files"


def overwritten(graph: CompiledGraph) -> tuple[str, ...]:
    """Subgraphs of control flow found in the dumps: they are written over their parent's (FORMATS: `cond`, `scan`)."""
    dump = graph.post or graph.pre
    names = (_SUBGRAPH_OP.match(leaf.name) for leaf in (dump.leaves() if dump else ()))
    return tuple(dict.fromkeys(match[1] for match in names if match))


def _torch_version(graphs: Sequence[CompiledGraph], traces: Sequence[TraceLog], manifest: Manifest | None) -> str | None:
    if manifest is not None and manifest.torch:
        return manifest.torch
    stated = [graph.runnable.torch_version for graph in graphs if graph.runnable]
    return next((version for version in [*stated, *(log.torch_version for log in traces)] if version), None)


def changed_config(graph: CompiledGraph) -> Mapping[str, str]:
    """The settings that differ from torch's defaults, as `fx_graph_runnable.py` shows them."""
    return runnable.meaningful_config(graph.runnable) if graph.runnable is not None else {}
