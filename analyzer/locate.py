"""Finds the run that a RUN argument means: which root to read from, which process folders, which graph folders."""

from __future__ import annotations

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
_RUN_FOLDER = re.compile(r"run_\d{4}_.*")
_TRACE_LOG = re.compile(r"dedicated_log_torch_trace_.*\.log|.*torch_trace.*\.log")


@dataclass(frozen=True, slots=True)
class Focus:
    """A RUN argument on disk: the folder to read from, and the part of it that was asked for."""

    root: Path
    prefix: PurePosixPath


@dataclass(frozen=True, slots=True)
class Found:
    """What belongs to the run, as paths below the root.

    `processes` are the `run_*` folders, one per process; `graphs` the folders with artifacts; `older` the runs that
    lie beside the newest one and were left out; `files` the names in each graph folder.
    """

    processes: tuple[PurePosixPath, ...]
    graphs: tuple[PurePosixPath, ...]
    traces: tuple[PurePosixPath, ...]
    manifest: PurePosixPath | None
    older: tuple[PurePosixPath, ...]
    files: Mapping[PurePosixPath, frozenset[str]]


def focus(path: Path) -> Focus:
    """Climbs from a folder inside a debug tree to the tree's top, so that the trace log and manifest are found too."""
    top = path
    while _inside_debug_tree(top):
        top = top.parent
    if (top.parent / MANIFEST).is_file() and top.name == "torch_compile_debug":
        top = top.parent
    return Focus(top, PurePosixPath(path.relative_to(top).as_posix()))


def _inside_debug_tree(folder: Path) -> bool:
    inner = folder.parent.name in ("torchinductor", "torch_compile_debug") or _is_run(folder.parent.name)
    return inner or folder.name == "torchinductor" or _is_run(folder.name)


def _is_run(name: str) -> bool:
    return _RUN_FOLDER.fullmatch(name) is not None


def find(paths: Iterable[PurePosixPath], prefix: PurePosixPath) -> Found:
    """Sorts the files of a tree into one run: all its processes if our capture made it, else the newest process."""
    all_paths = list(paths)
    inside = [path for path in all_paths if path.is_relative_to(prefix)]
    manifest = min((p for p in all_paths if p.name == MANIFEST and prefix.is_relative_to(p.parent)), default=None)
    processes = sorted({run for path in inside if (run := _process_of(path)) is not None}, key=lambda run: run.name)
    chosen = processes if manifest is not None else processes[-1:]
    graphs = tuple(_graph_folders(inside, set(chosen)))
    return Found(
        processes=tuple(chosen),
        graphs=graphs,
        traces=tuple(path for path in all_paths if _TRACE_LOG.fullmatch(path.name)),
        manifest=manifest,
        older=tuple(run for run in processes if run not in chosen),
        files=_names(inside, set(graphs)),
    )


def _names(paths: Iterable[PurePosixPath], folders: set[PurePosixPath]) -> dict[PurePosixPath, frozenset[str]]:
    found: dict[PurePosixPath, set[str]] = {folder: set() for folder in folders}
    for path in paths:
        if path.parent in found:
            found[path.parent].add(path.name)
    return {folder: frozenset(names) for folder, names in found.items()}


def _process_of(path: PurePosixPath) -> PurePosixPath | None:
    return next((parent for parent in path.parents if _is_run(parent.name)), None)


def _graph_folders(paths: Iterable[PurePosixPath], processes: set[PurePosixPath]) -> list[PurePosixPath]:
    """Folders with artifacts, in order of their number; Inductor's copies beside cached modules are left out."""
    folders = {path.parent for path in paths if path.name in ARTIFACT_NAMES and not _is_cached_copy(path.parent)}
    wanted = [folder for folder in folders if not processes or _process_of(folder / "x") in processes]
    return sorted(wanted, key=_graph_order)


def _is_cached_copy(folder: PurePosixPath) -> bool:
    return folder.name.endswith(".debug")


def _graph_order(folder: PurePosixPath) -> tuple[str, int, str]:
    number = folder.name.rpartition(".")[2]
    process = _process_of(folder / "x")
    return (process.name if process else "", int(number) if number.isdecimal() else 0, str(folder))
