"""RUN argument → `Run`: reads every artifact of every graph once, and says what is missing and why."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from analyzer.artifacts import fx_check, fx_graph, rare
from analyzer.artifacts import trace_log as trace_file
from analyzer.artifacts.trace_log import CacheEvent, TraceGraph, TraceLog
from analyzer.errors import ArtifactError, UsageError
from analyzer.load.cache import cache_event, cache_notes, cache_state
from analyzer.load.launch import Process, newest_launch, pid_of, process_names, processes_of
from analyzer.load.locate import Found, find, focus, process_of
from analyzer.load.loose import load_loose, read_record, traced, with_stacks
from analyzer.load.slots import SLOTS, Circumstances, Slot, missing_cause, overwritten
from analyzer.load.tree import Folder, Tree, is_archive, open_tree, read_file, text_of
from analyzer.model import Artifact, ArtifactState, CompiledGraph, FxGraph, Problem, Run
from analyzer.words import counted

if TYPE_CHECKING:
    from analyzer.artifacts.manifest import Manifest

_KIND = re.compile(r"_(inference|forward|backward)_")
_WITHOUT_MANIFEST = "capture again; or take the file away, to read the dumps without what the capture knew of them"
_MAKE_SOME = "make some: inductor-audit capture SCRIPT"


def load_run(path: str | Path) -> Run:
    """Reads a run. `path` takes every form that the command line's RUN takes.

    Raises UsageError when there is nothing to read and ArtifactError when an archive or manifest is broken; a broken
    artifact inside a run is no error: its graph says so.
    """
    path = Path(path)
    if path.is_file() and not is_archive(path):
        return load_loose(read_file(path), str(path), path.name)
    at = focus(path) if path.is_dir() else None
    tree: Tree = Folder(str(at.root)) if at else open_tree(path)
    prefix = at.prefix if at else PurePosixPath()
    found = find(tree.paths(), prefix)
    if found.graphs or found.processes or found.manifest or found.traces:
        return _Loader(tree, found, str(path), prefix).run()
    return _only_file(tree, prefix, path)


def _only_file(tree: Tree, prefix: PurePosixPath, path: Path) -> Run:
    """A folder or archive with one file in it: perhaps a log, or an artifact under another name."""
    files = [file for file in tree.paths() if file.is_relative_to(prefix)]
    if len(files) != 1:
        empty = "; ".join(tree.notes) or "it holds no file"
        what = f"none of its {len(files)} files is an artifact of TorchInductor" if files else empty
        raise UsageError(f"{path}: no Inductor artifacts here: {what}", _MAKE_SOME)
    return load_loose(tree.data(files[0]), str(path / files[0].relative_to(prefix)), files[0].name)


@dataclass(frozen=True)
class _Loader:
    """Reads what `find` found in the part of the tree below `prefix`; `path` is the argument as it was given."""

    tree: Tree
    found: Found
    path: str
    prefix: PurePosixPath

    def run(self) -> Run:
        folders = [folder for folder in self.found.graphs if self._is_chosen(folder)]
        graphs = tuple(self._in_order([*map(self._graph, folders), *self._without_folder(folders)]))
        logs, manifest = self.logs, self.manifest
        return Run(
            path=self.path,
            graphs=graphs,
            torch_version=self._torch_version(graphs),
            cache_state=cache_state(graphs, logs, manifest),
            manifest=manifest,
            notes=(*cache_notes(graphs, logs, manifest), *self._notes(graphs)),
            traces=logs,
            older=self.older,
        )

    def _source(self, path: PurePosixPath) -> str:
        """How a path is shown: below the argument as it was given, else in full."""
        if path.is_relative_to(self.prefix):
            return str(Path(self.path) / path.relative_to(self.prefix))
        return str(Path(self.tree.root) / path)

    def _name(self, folder: PurePosixPath) -> str:
        """The folder's name; that of the archive for artifacts at its top."""
        root = os.path.abspath(self.tree.root)
        return folder.name or Path(root).name.partition(".")[0] or root

    # ------------------------------------------------------------------------------------------------ what belongs here

    @cached_property
    def manifest(self) -> Manifest | None:
        if self.found.manifest is None:
            return None
        text = text_of(self.tree.data(self.found.manifest))
        try:
            return rare.manifest(text, self._source(self.found.manifest))
        except ArtifactError as error:
            error.hint = error.hint or _WITHOUT_MANIFEST
            raise

    @cached_property
    def _all_logs(self) -> tuple[TraceLog, ...]:
        return tuple(trace_file.parse(self.tree.data(path), self._source(path)) for path in self.found.traces)

    @cached_property
    def processes(self) -> Sequence[Process]:
        """The processes of the run: all that our capture started, else the newest launch."""
        every = processes_of(self.found.processes, self._all_logs)
        return every if self.manifest is not None else newest_launch(every)

    @cached_property
    def logs(self) -> tuple[TraceLog, ...]:
        """The logs of the chosen processes; all logs where nothing says which."""
        pids = {process.pid for process in self.processes}
        return tuple(log for log in self._all_logs if not pids or log.pid in pids)

    @cached_property
    def older(self) -> tuple[str, ...]:
        """Names of the process folders of earlier launches."""
        chosen = {process.folder for process in self.processes}
        return tuple(folder.name for folder in self.found.processes if folder not in chosen)

    @cached_property
    def _process_names(self) -> Mapping[int | None, str | None]:
        """A process that compiled nothing, such as the parent of a compile worker, needs no name."""
        folders = {None, *(process_of(folder) for folder in self.found.graphs)}
        pids = {log.pid for log in self.logs if log.graphs}
        return process_names([one for one in self.processes if one.folder in folders or one.pid in pids])

    def _is_chosen(self, folder: PurePosixPath) -> bool:
        process = process_of(folder)
        return process is None or any(process == chosen.folder for chosen in self.processes)

    def _in_order(self, graphs: Sequence[CompiledGraph]) -> list[CompiledGraph]:
        """Grouped by process; a process with a single rank or pid keeps the order of its graphs."""
        names = list(self._process_names.values())
        return sorted(graphs, key=lambda graph: names.index(graph.process) if graph.process in names else 0)

    def _notes(self, graphs: Sequence[CompiledGraph]) -> Iterator[str]:
        yield from self.tree.notes
        if self.older:
            yield f"{counted(len(self.older), 'older run')} beside this one left out: {', '.join(self.older[-3:])}"
        names = list(dict.fromkeys(graph.process for graph in graphs if graph.process))
        if len(names) > 1:
            yield f"graphs of {len(names)} processes of one launch: {', '.join(names)}"
        for finding in self.manifest.findings if self.manifest else ():
            yield finding.message if finding.hint is None else f"{finding.message}; {finding.hint}"

    def _torch_version(self, graphs: Sequence[CompiledGraph]) -> str | None:
        if self.manifest is not None and self.manifest.torch:
            return self.manifest.torch
        stated = [graph.runnable.torch_version for graph in graphs if graph.runnable]
        return next((version for version in [*stated, *(log.torch_version for log in self.logs)] if version), None)

    # --------------------------------------------------------------------------------------------------- one graph

    def _logs_of(self, folder: PurePosixPath) -> Iterator[TraceLog]:
        """The logs that may speak of a graph folder: those of its process."""
        process = process_of(folder)
        pid = pid_of(process) if process is not None else None
        return (log for log in self.logs if pid is None or log.pid == pid)

    def _graph(self, folder: PurePosixPath) -> CompiledGraph:
        name, process = self._name(folder), process_of(folder)
        kind = _KIND.search(name)
        traces = ((log, found) for log in self._logs_of(folder) if (found := log.graph_of_folder(name)))
        log, trace = next(traces, (None, None))
        graph = CompiledGraph(
            name=name,
            kind=kind[1] if kind else "unknown",
            path=self._source(folder),
            trace=trace,
            process=self._process_names.get(pid_of(process)) if process else None,
        )
        return self._read(graph, folder, cache_event(log, trace))

    def _read(self, graph: CompiledGraph, folder: PurePosixPath, cache: CacheEvent) -> CompiledGraph:
        present = self.found.files.get(folder, frozenset())
        parts: dict[str, Any] = {}
        read: dict[str, Artifact] = {}
        for slot in SLOTS:
            if slot.file in present:
                read[slot.file] = self._file(slot, folder / slot.file, parts)
            elif slot.field not in parts and (parsed := _recorded(slot, graph.trace)) is not None:
                parts[slot.field], read[slot.file] = parsed, replace(parsed.artifact, file=slot.file)
        graph = replace(graph, **with_stacks(parts, graph.trace))
        graph = replace(graph, pre_grad=_traced_program(graph))
        seen = self._circumstances(graph, folder, present, cache)
        artifacts = (read.get(slot.file) or _missing(slot, seen) for slot in SLOTS if _is_listed(slot, read, parts))
        return replace(graph, artifacts=tuple(artifacts), overwritten=overwritten(graph))

    def _file(self, slot: Slot, path: PurePosixPath, parts: dict[str, Any]) -> Artifact:
        """Reads a file into `parts`; one that cannot be read costs the graph that file."""
        try:
            text = text_of(self.tree.data(path))
        except ArtifactError as error:
            return Artifact(slot.file, ArtifactState.MISSING, cause=error.message)
        if slot.better in parts:
            return replace(fx_check.check(text, self._source(path)), file=slot.file)
        try:
            parsed = slot.parse(text, self._source(path))
        except ArtifactError as error:
            return _unreadable(slot, text, error)
        parts[slot.field] = parsed
        artifact: Artifact = parsed.artifact
        return replace(artifact, file=slot.file)

    def _circumstances(
        self, graph: CompiledGraph, folder: PurePosixPath, present: frozenset[str], cache: CacheEvent
    ) -> Circumstances:
        script, found = graph.runnable, self.found.manifest
        entries = self.manifest.graphs if self.manifest else ()
        failures = (entry.failure for entry in entries if found and found.parent / entry.folder == folder)
        return Circumstances(
            present=present,
            kind=graph.kind,
            version=self._torch_version([graph]),
            settings={**script.environment, **script.config} if script else {},
            cache=cache,
            failure=next(failures, None),
        )

    # -------------------------------------------------------------------------------------------- graphs without folder

    def _without_folder(self, folders: Sequence[PurePosixPath]) -> Iterator[CompiledGraph]:
        """Graphs that only a log knows: those from a warm cache, and all of them where there is no graph folder."""
        with_folder = {id(graph) for folder in folders for graph in self._traces_of(folder)}
        for log in self.logs:
            for graph in log.graphs:
                cached = cache_event(log, graph) is CacheEvent.HIT
                if (cached or not folders) and id(graph) not in with_folder:
                    yield replace(traced(graph, log), process=self._process_names.get(log.pid))

    def _traces_of(self, folder: PurePosixPath) -> Iterator[TraceGraph]:
        return (graph for log in self._logs_of(folder) if (graph := log.graph_of_folder(self._name(folder))))


def _traced_program(graph: CompiledGraph) -> FxGraph | None:
    """The graph that Dynamo traced, where it has the line of a node without one (the pattern matcher made it)."""
    record = graph.trace.pre_grad if graph.trace is not None else None
    nodes = graph.fx.nodes if graph.fx is not None else ()
    lost = {node.name for node in nodes if node.op == "call_function" and not node.source}
    traced_from = graph.provenance.post_to_pre if graph.provenance is not None else {}
    if record is None or not (lost & traced_from.keys() if traced_from else lost):
        return None
    parsed: FxGraph = read_record(record, fx_graph.parse)
    return parsed


def _recorded(slot: Slot, trace: TraceGraph | None) -> Any:
    """What the trace log has in the place of a file."""
    record = trace.record(*slot.record) if trace is not None and slot.record else None
    return None if record is None else read_record(record, slot.parse)


def _unreadable(slot: Slot, text: str, error: ArtifactError) -> Artifact:
    """A file that makes no sense as a whole, such as a record that is no JSON."""
    if not text.strip():
        return Artifact(slot.file, ArtifactState.EMPTY, text.count("\n"))
    lines = text.splitlines()
    problem = Problem(error.location, error.message, error.excerpt, len(lines))
    return Artifact(slot.file, ArtifactState.UNSUPPORTED, len(lines), (problem,), error.message)


def _is_listed(slot: Slot, read: Mapping[str, Artifact], parts: Mapping[str, Any]) -> bool:
    return slot.file in read or (slot.expected and slot.field not in parts)


def _missing(slot: Slot, seen: Circumstances) -> Artifact:
    return Artifact(slot.file, ArtifactState.MISSING, cause=missing_cause(slot, seen))
