"""Where artifacts are read from: a folder, or an archive read in place. Nothing is ever extracted or run."""

from __future__ import annotations

import os
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

from analyzer.errors import ArtifactError, UsageError
from analyzer.model import Location

MAX_FILES = 200_000
MAX_FILE_BYTES = 512 * 2**20
MAX_ARCHIVE_BYTES = 2 * 2**30


class Tree(Protocol):
    """Files by their path relative to the root that the user named."""

    @property
    def root(self) -> str:
        """The path as the user gave it."""
        ...

    def paths(self) -> list[PurePosixPath]:
        """Every file, sorted."""
        ...

    def data(self, path: PurePosixPath) -> bytes:
        """A file's bytes. Raises ArtifactError when it cannot be read."""
        ...


def open_tree(path: Path) -> Tree:
    """The tree for a RUN argument. Raises UsageError when there is nothing there."""
    if path.is_dir():
        return Folder(str(path))
    if not path.exists():
        raise UsageError(f"{path}: no such file or folder", "name a debug folder, an archive of one, or an artifact file")
    if zipfile.is_zipfile(path):
        return Archive(str(path), _zip_members(path))
    return Archive(str(path), _tar_members(path))


def is_archive(path: Path) -> bool:
    """Whether a file is an archive that can be read in place."""
    return zipfile.is_zipfile(path) or tarfile.is_tarfile(path)


def text_of(data: bytes) -> str:
    """Bytes as text; what is no UTF-8 becomes replacement characters."""
    return data.decode("utf-8", errors="replace")


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder on disk; links to folders are not followed."""

    root: str

    def paths(self) -> list[PurePosixPath]:
        """Every file below it. Raises UsageError when there are too many to be a debug folder."""
        found: list[PurePosixPath] = []
        for path in self._walk():
            found.append(path)
            if len(found) > MAX_FILES:
                raise UsageError(f"{self.root}: more than {MAX_FILES} files", "name the debug folder itself")
        return sorted(found)

    def _walk(self) -> Iterator[PurePosixPath]:
        for folder, _, names in os.walk(self.root):
            base = PurePosixPath(Path(folder).relative_to(self.root).as_posix())
            yield from (base / name for name in names)

    def data(self, path: PurePosixPath) -> bytes:
        """The file's bytes."""
        return read_file(Path(self.root) / path)


def read_file(path: Path) -> bytes:
    """A file's bytes. Raises ArtifactError when it cannot be read or is far too large for an artifact."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise ArtifactError(Location(str(path), 1), f"larger than {MAX_FILE_BYTES >> 20} MiB")
        return path.read_bytes()
    except OSError as error:
        raise ArtifactError(Location(str(path), 1), f"cannot be read: {error.strerror}") from error


@dataclass(frozen=True, slots=True)
class Archive:
    """A .zip or .tar file, its members already in memory (names are only compared, never used as paths on disk)."""

    root: str
    members: Mapping[PurePosixPath, bytes]

    def paths(self) -> list[PurePosixPath]:
        """Every member that is a plain file."""
        return sorted(self.members)

    def data(self, path: PurePosixPath) -> bytes:
        """The member's bytes."""
        return self.members[path]


def _collect(root: Path, sized: Iterator[tuple[str, int, bytes | None]]) -> dict[PurePosixPath, bytes]:
    """Members by path; stops before an archive can fill the memory."""
    members: dict[PurePosixPath, bytes] = {}
    total = 0
    for name, size, data in sized:
        total += size
        if total > MAX_ARCHIVE_BYTES or len(members) > MAX_FILES:
            raise ArtifactError(Location(str(root), 1), f"archive of more than {MAX_ARCHIVE_BYTES >> 30} GiB or {MAX_FILES} files")
        if data is not None:
            members[PurePosixPath(name)] = data
    return members


def _zip_members(path: Path) -> dict[PurePosixPath, bytes]:
    def sized() -> Iterator[tuple[str, int, bytes | None]]:
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                yield info.filename, info.file_size, None if _oversized(info) else archive.read(info)

    try:
        return _collect(path, sized())
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, EOFError) as error:
        raise ArtifactError(Location(str(path), 1), f"broken or encrypted zip archive: {error}") from error


def _oversized(info: zipfile.ZipInfo) -> bool:
    return info.is_dir() or info.file_size > MAX_FILE_BYTES


def _tar_members(path: Path) -> dict[PurePosixPath, bytes]:
    def sized() -> Iterator[tuple[str, int, bytes | None]]:
        with tarfile.open(path) as archive:
            for info in archive:
                member = archive.extractfile(info) if info.isfile() and info.size <= MAX_FILE_BYTES else None
                yield info.name, info.size, member.read() if member else None

    try:
        return _collect(path, sized())
    except (tarfile.TarError, OSError, EOFError) as error:
        raise ArtifactError(Location(str(path), 1), f"broken tar archive: {error}") from error
