"""What a doctor sees of a RUN argument: the run or the error in its place, its logs, and the files that lie there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from analyzer.artifacts.trace_log import TraceCompile, TraceLog
from analyzer.errors import AnalyzerError
from analyzer.load import load_run
from analyzer.load.launch import newest_launch, processes_of
from analyzer.load.locate import find, focus
from analyzer.load.traces import trace_logs
from analyzer.load.tree import Folder, is_archive, open_tree
from analyzer.model import Run


@dataclass(frozen=True, slots=True)
class Scene:
    """`run` or `error` is there, never both. `failure` is what the system said where the path itself is impossible.

    `files` are relative to `path`; `older` are names of process folders beside those that were read.
    """

    path: Path
    run: Run | None = None
    error: AnalyzerError | None = None
    failure: OSError | None = None
    traces: tuple[TraceLog, ...] = ()
    files: tuple[PurePosixPath, ...] = ()
    older: tuple[str, ...] = ()

    @property
    def compiles(self) -> tuple[TraceCompile, ...]:
        """All compiles that the logs tell of."""
        return tuple(compile_ for log in self.traces for compile_ in log.compiles)

    def findings(self, *kinds: str) -> tuple[str, ...]:
        """What the capture that made the run noticed, of these kinds."""
        manifest = self.run.manifest if self.run is not None else None
        found = manifest.findings if manifest is not None else ()
        return tuple(finding.message for finding in found if finding.kind in kinds)


def look(path: Path) -> Scene:
    """Everything that can be seen; what fails is part of the scene, not an error."""
    try:
        there = path.exists()
    except OSError as error:
        return Scene(path, failure=error)
    files = _files(path) if there else ()
    try:
        run = load_run(path)
    except AnalyzerError as error:
        return Scene(path, error=error, files=files, traces=_logs(path) if there else ())
    except OSError as error:
        return Scene(path, failure=error, files=files)
    return Scene(path, run, traces=_logs(path), files=files, older=_older(path))


def _files(path: Path) -> tuple[PurePosixPath, ...]:
    try:
        return tuple(open_tree(path).paths()) if path.is_dir() or is_archive(path) else ()
    except (AnalyzerError, OSError):
        return ()


def _logs(path: Path) -> tuple[TraceLog, ...]:
    try:
        return trace_logs(path)
    except (AnalyzerError, OSError):
        return ()


def _older(path: Path) -> tuple[str, ...]:
    """Process folders of earlier launches; a captured run is one launch by itself."""
    if not path.is_dir():
        return ()
    at = focus(path)
    found = find(Folder(str(at.root)).paths(), at.prefix)
    if found.manifest is not None:
        return ()
    processes = processes_of(found.processes, trace_logs(path))
    chosen = newest_launch(processes)
    return tuple(one.folder.name for one in processes if one.folder is not None and one not in chosen)
