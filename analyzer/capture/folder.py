"""The run folder: where it lies, and that nobody's files are overwritten."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from analyzer.artifacts import manifest
from analyzer.errors import ArtifactError, UsageError

MANIFEST = "manifest.json"
REQUEST_FOLDER = "capture_state"
DEFAULT_PARENT = "inductor-audit-runs"
_OWN = frozenset({MANIFEST, REQUEST_FOLDER, "torch_compile_debug"})


def prepare(out: Path | None, label: str, cwd: Path) -> Path:
    """Make the run folder and return its absolute path. UsageError when it holds something already."""
    if out is None:
        return _fresh(cwd / DEFAULT_PARENT, label)
    folder = out if out.is_absolute() else cwd / out
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file", "Choose a folder with --out.")
    if folder.is_dir():
        _clear_own(folder)
    _make(folder, exist_ok=True)
    return folder.resolve()


def _make(folder: Path, *, exist_ok: bool = False) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=exist_ok)
    except FileExistsError:
        raise
    except OSError as error:
        raise UsageError(f"cannot make {folder}: {error.strerror}", "Choose another folder with --out.") from error


def _clear_own(folder: Path) -> None:
    """An earlier capture may be replaced; anything else in the folder is somebody's."""
    content = {path.name for path in folder.iterdir()}
    if not content:
        return
    if MANIFEST not in content or content - _OWN:
        raise UsageError(f"{folder} is not empty", "Choose a fresh folder with --out, or delete this one first.")
    try:
        manifest.parse((folder / MANIFEST).read_text(encoding="utf-8", errors="replace"), MANIFEST)
    except ArtifactError as error:
        raise UsageError(f"{folder} holds a manifest.json of something else", "Choose another --out.") from error
    for name in content:
        path = folder / name
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def _fresh(parent: Path, label: str) -> Path:
    stamp = time.strftime("%Y%m%d-%H%M%S")
    for number in range(1000):
        folder = parent / f"{label}-{stamp}{f'-{number}' if number else ''}"
        try:
            _make(folder)
        except FileExistsError:
            continue
        return folder.resolve()
    raise UsageError(f"no free folder name under {parent}", "Choose one with --out.")


def graph_folders(folder: Path) -> Iterator[Path]:
    """The graph folders that Inductor has made so far, in order of run and name."""
    yield from sorted(path for path in folder.glob("torch_compile_debug/run_*/torchinductor/*") if path.is_dir())
