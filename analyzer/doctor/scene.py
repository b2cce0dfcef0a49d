"""What a doctor sees of a RUN argument: the run or the error in its place, its logs, and the files that lie there."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from analyzer.artifacts import trace_log
from analyzer.artifacts.trace_log import TraceCompile, TraceLog
from analyzer.errors import AnalyzerError, ArtifactError
from analyzer.load import load_run
from analyzer.load.locate import ARTIFACT_NAMES, MANIFEST
from analyzer.load.recognize import is_trace_log
from analyzer.load.tree import is_archive, open_tree, read_file, text_of
from analyzer.model import Run


@dataclass(frozen=True, slots=True)
class Scene:
    """`run` or `error` is there, never both. `failure` is what the system said where the path itself is impossible.

    `files` are relative to `path`; `denied` are folders and artifacts that may not be read.
    """

    path: Path
    run: Run | None = None
    error: AnalyzerError | None = None
    failure: OSError | None = None
    traces: tuple[TraceLog, ...] = ()
    files: tuple[PurePosixPath, ...] = ()
    denied: tuple[Path, ...] = ()

    @property
    def compiles(self) -> tuple[TraceCompile, ...]:
        """All compiles that the logs tell of."""
        return tuple(compile_ for log in self.traces for compile_ in log.compiles)

    @property
    def holds_nothing(self) -> bool:
        """A folder without anything of Inductor's in it, be it one file, which is then read as if it were."""
        alone = len(self.files) == 1 and self.files[0].name != MANIFEST and self.path.is_dir()
        return self.error is not None and (alone or not isinstance(self.error, ArtifactError))

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
    denied = _denied(path) if there else ()
    if denied:
        return Scene(path, denied=denied)
    files = _files(path) if there else ()
    try:
        run = load_run(path)
    except AnalyzerError as error:
        return Scene(path, error=error, files=files, traces=_lone_log(path) if there else ())
    except OSError as error:
        return Scene(path, failure=error, files=files)
    return Scene(path, run, traces=run.traces, files=files)


def _denied(path: Path) -> tuple[Path, ...]:
    """Whoever reads a tree passes over folders that are closed to him, and would take them for empty."""
    if not os.access(path, os.R_OK):
        return (path,)
    refused: list[OSError] = []
    tree = os.walk(path, onerror=refused.append)
    read = (Path(folder, name) for folder, _, names in tree for name in names if _is_read(name))
    files = tuple(file for file in read if not os.access(file, os.R_OK))
    return (*(Path(error.filename) for error in refused if isinstance(error, PermissionError)), *files)


def _is_read(name: str) -> bool:
    return name in ARTIFACT_NAMES or name == MANIFEST or name.endswith(".log")


def _files(path: Path) -> tuple[PurePosixPath, ...]:
    try:
        return tuple(open_tree(path).paths()) if path.is_dir() or is_archive(path) else ()
    except (AnalyzerError, OSError):
        return ()


def _lone_log(path: Path) -> tuple[TraceLog, ...]:
    """A log without graphs is no run, but it tells why there is none."""
    try:
        data = read_file(path) if path.is_file() and not is_archive(path) else b""
    except (AnalyzerError, OSError):
        return ()
    return (trace_log.parse(data, str(path)),) if is_trace_log(text_of(data)) else ()
