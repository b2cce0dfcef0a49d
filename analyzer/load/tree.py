"""Where artifacts are read from: a folder, an archive read in place, or one file. Nothing is ever extracted or run."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Protocol

from analyzer.errors import ArtifactError, UsageError
from analyzer.load.archive import MAX_FILE_BYTES, MAX_FILES, is_archive, open_archive
from analyzer.model import Location

__all__ = ["Folder", "Tree", "is_archive", "open_tree", "read_file", "text_of"]

_NAME_ONE = "name a debug folder, an archive of one, or an artifact file"


class Tree(Protocol):
    """Files by their path relative to a root; `notes` say what of it cannot be read."""

    @property
    def root(self) -> str:
        """The path of the folder or archive."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out, in plain sentences."""
        ...

    def paths(self) -> list[PurePosixPath]:
        """Every file, sorted."""
        ...

    def data(self, path: PurePosixPath) -> bytes:
        """A file's bytes. Raises ArtifactError when it cannot be read."""
        ...


def open_tree(path: Path) -> Tree:
    """The tree for a folder or an archive. Raises UsageError when there is nothing there."""
    if path.is_dir():
        return Folder(str(path))
    if not path.exists():
        raise UsageError(f"{path}: no such file or folder", _NAME_ONE)
    if not path.is_file():
        raise ArtifactError(Location(str(path), 1), "expected a folder or a plain file", "", _NAME_ONE)
    return open_archive(path)


def text_of(data: bytes) -> str:
    """Bytes as text; what is no UTF-8 becomes replacement characters. Windows editors save UTF-16, and marks."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace")
    return data.decode("utf-8", errors="replace").removeprefix("\ufeff")


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder on disk; links to folders are not followed. `refused`: folders that may not be read, and why."""

    root: str
    refused: dict[str, str] = field(default_factory=dict)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was passed over; known once `paths` has been asked for."""
        return tuple(f"{folder} cannot be read: {why}" for folder, why in self.refused.items())

    def paths(self) -> list[PurePosixPath]:
        """Every file below it. Raises UsageError when there are too many to be a debug folder."""
        found: list[PurePosixPath] = []
        for path in self._walk():
            found.append(path)
            if len(found) > MAX_FILES:
                raise UsageError(f"{self.root}: more than {MAX_FILES} files", "name the debug folder itself")
        return sorted(found)

    def _walk(self) -> Iterator[PurePosixPath]:
        for folder, _, names in os.walk(self.root, onerror=self._refuse):
            base = PurePosixPath(Path(folder).relative_to(self.root).as_posix())
            yield from (base / name for name in names)

    def _refuse(self, error: OSError) -> None:
        self.refused[str(error.filename)] = error.strerror or "unreadable"

    def data(self, path: PurePosixPath) -> bytes:
        """The file's bytes."""
        return read_file(Path(self.root) / path)


def read_file(path: Path) -> bytes:
    """A file's bytes. Raises ArtifactError when it cannot be read, is no plain file, or far too large."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise ArtifactError(Location(str(path), 1), "expected a plain file")
        if found.st_size > MAX_FILE_BYTES:
            raise ArtifactError(Location(str(path), 1), f"expected a file of at most {MAX_FILE_BYTES >> 20} MiB")
        return path.read_bytes()
    except OSError as error:
        raise ArtifactError(Location(str(path), 1), f"cannot be read: {error.strerror}") from error
