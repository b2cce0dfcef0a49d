"""Finds what a RUN argument means: which root to read from, which process folders, graph folders and logs are there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ARTIFACT_NAMES = (
    "fx_graph_readable.py",
    "fx_graph_transformed.py",
    "fx_graph_runnable.py",
    "ir_pre_fusion.txt",
    "ir_post_fusion.txt",
    "output_code.py",
    "output_code.cpp",
    "inductor_provenance_tracking_node_mappings.json",
    "inductor_audit.json",
)
"""Exact names only: people leave edited copies (`output_code_fixed.py`) beside the artifacts."""

MANIFEST = "manifest.json"
_DEBUG_ROOT = "torch_compile_debug"
_GRAPHS = "torchinductor"
_RUN_FOLDER = re.compile(r"run_\d{4}_.*")
_TRACE_LOG = re.compile(r".*torch_trace.*\.log")


@dataclass(frozen=True, slots=True)
class Focus:
    """A RUN argument on disk: the folder to read from, and the part of it that was asked for."""

    root: Path
    prefix: PurePosixPath


@dataclass(frozen=True, slots=True)
class Found:
    """What is there, as paths below the root, whatever launch it belongs to.

    `processes` are the `run_*` folders, one per process; `graphs` the folders with artifacts, in order; `files` the
    names in each of them; `traces` the structured trace logs that may belong to them.
    """

    processes: tuple[PurePosixPath, ...]
    graphs: tuple[PurePosixPath, ...]
    traces: tuple[PurePosixPath, ...]
    manifest: PurePosixPath | None
    files: Mapping[PurePosixPath, frozenset[str]]


def focus(path: Path) -> Focus:
    """Climbs from a folder inside a debug tree to the tree's top, so that the trace log and manifest are found too.

    Both the folder and the climb are of absolute paths: `.` and `model__0_forward_1.0` say nothing of what is above.
    """
    asked = Path(os.path.abspath(path))
    top = asked
    while _inside_debug_tree(top):
        top = top.parent
    if top.name == _DEBUG_ROOT and (top.parent / MANIFEST).is_file():
        top = top.parent
    return Focus(top, PurePosixPath(asked.relative_to(top).as_posix()))


def _inside_debug_tree(folder: Path) -> bool:
    above = folder.parent.name
    return folder.name == _GRAPHS or is_run(folder.name) or above in (_GRAPHS, _DEBUG_ROOT) or is_run(above)


def is_run(name: str) -> bool:
    """Whether a folder's name is that of a process's debug folder."""
    return _RUN_FOLDER.fullmatch(name) is not None


def process_of(path: PurePosixPath) -> PurePosixPath | None:
    """The process folder that a path is or lies in."""
    return next((folder for folder in (path, *path.parents) if is_run(folder.name)), None)


def find(paths: Iterable[PurePosixPath], prefix: PurePosixPath) -> Found:
    """Sorts the files of a tree; `prefix` is the part of it that was asked for."""
    all_paths = list(paths)
    inside = [path for path in all_paths if path.is_relative_to(prefix)]
    graphs = sorted(_graph_folders(inside, prefix), key=_graph_order)
    processes = {run for path in inside if (run := process_of(path.parent)) is not None}
    return Found(
        processes=tuple(sorted(processes, key=lambda run: run.name)),
        graphs=tuple(graphs),
        traces=_traces(all_paths, prefix),
        manifest=_manifest(all_paths, prefix, graphs),
        files=_names(inside, graphs),
    )


def _manifest(
    paths: Iterable[PurePosixPath], prefix: PurePosixPath, graphs: Iterable[PurePosixPath]
) -> PurePosixPath | None:
    """The manifest of the capture that made all these graphs: above what was asked for, or in the one folder inside."""
    found = sorted(path for path in paths if path.name == MANIFEST)
    above = [path for path in found if prefix.is_relative_to(path.parent)]
    around = [path for path in found if all(graph.is_relative_to(path.parent) for graph in graphs)]
    return next(iter([*above, *around]), None)


def _traces(paths: Iterable[PurePosixPath], prefix: PurePosixPath) -> tuple[PurePosixPath, ...]:
    """The logs inside what was asked for; for a folder of a debug tree, which holds none, those of the tree."""
    logs = [path for path in paths if _TRACE_LOG.fullmatch(path.name)]
    return tuple([log for log in logs if log.is_relative_to(prefix)] or logs)


def _names(paths: Iterable[PurePosixPath], folders: Iterable[PurePosixPath]) -> dict[PurePosixPath, frozenset[str]]:
    found: dict[PurePosixPath, set[str]] = {folder: set() for folder in folders}
    for path in paths:
        if path.parent in found:
            found[path.parent].add(path.name)
    return {folder: frozenset(names) for folder, names in found.items()}


def _graph_folders(paths: Iterable[PurePosixPath], prefix: PurePosixPath) -> set[PurePosixPath]:
    """Folders with artifacts; Inductor's copies beside cached modules (`<module>.debug`) only when asked for."""
    folders = {path.parent for path in paths if path.name in ARTIFACT_NAMES}
    return {folder for folder in folders if folder == prefix or not folder.name.endswith(".debug")}


def _graph_order(folder: PurePosixPath) -> tuple[str, int, str]:
    """By process, then by the number at the end of Inductor's folder names."""
    process, number = process_of(folder), folder.name.rpartition(".")[2]
    counted = int(number) if number.isdecimal() and len(number) < 10 else 0
    return process.name if process else "", counted, str(folder)
