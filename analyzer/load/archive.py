"""A .zip or .tar of a run, read in place: nothing is written to disk, and names are only ever compared."""

from __future__ import annotations

import bz2
import gzip
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from analyzer.errors import ArtifactError
from analyzer.model import Location
from analyzer.words import counted

MAX_FILES = 200_000
MAX_FILE_BYTES = 512 * 2**20
MAX_ARCHIVE_BYTES = 2**30

_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_OPENERS: Mapping[bytes, Callable[[Path], Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}
_TAR_SUFFIXES = (".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
_USTAR = slice(257, 262)
_BROKEN = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, OSError, EOFError, NotImplementedError)
_REPACK = "pack the debug folder again, or unpack this one and name the folder"
_TOO_LARGE = "name the debug folder inside, or pack only that"


@dataclass(frozen=True, slots=True)
class Archive:
    """The plain files of an archive, in memory; `notes` say which members were left out."""

    root: str
    members: Mapping[PurePosixPath, bytes]
    notes: tuple[str, ...] = ()

    def paths(self) -> list[PurePosixPath]:
        """Every member that is a plain file, sorted."""
        return sorted(self.members)

    def data(self, path: PurePosixPath) -> bytes:
        """The member's bytes."""
        return self.members[path]


@dataclass(frozen=True, slots=True)
class _Member:
    """`skipped` says why a member is not read; `read` may only be called before the next member is asked for."""

    name: str
    size: int
    skipped: str | None
    read: Callable[[], bytes]


def is_archive(path: Path) -> bool:
    """Whether a plain file is, or by its name should be, an archive that can be read in place."""
    if not path.is_file():
        return False  # whoever opens a pipe waits for its writer
    with path.open("rb") as file:
        head = file.read(512)
    return head.startswith((*_ZIP, *_OPENERS)) or head[_USTAR] == b"ustar" or _named_as_archive(path)


def _named_as_archive(path: Path) -> bool:
    return path.name.lower().endswith((".zip", *_TAR_SUFFIXES))


def open_archive(path: Path) -> Archive:
    """Reads an archive. Raises ArtifactError for one that is broken, encrypted, or would fill the memory."""
    with path.open("rb") as file:
        is_zip = file.read(4) in _ZIP or path.suffix.lower() == ".zip"
    try:
        return _collect(str(path), _zip_members(path) if is_zip else _tar_members(path))
    except _BROKEN as error:
        kind = "zip" if is_zip else "tar"
        raise ArtifactError(
            Location(str(path), 1), f"expected a {kind} archive: {_cause(error)}", "", _REPACK
        ) from error


def _cause(error: BaseException) -> str:
    """The library's words; those of a compressed stream that ends early say the least."""
    return "it is cut off" if isinstance(error, EOFError) else str(error) or "it is damaged"


def _collect(root: str, found: Iterator[_Member]) -> Archive:
    members: dict[PurePosixPath, bytes] = {}
    left_out: dict[str, list[str]] = {}
    total = 0
    for number, member in enumerate(found):
        total += member.size
        if total > MAX_ARCHIVE_BYTES or number >= MAX_FILES:
            limits = f"{MAX_ARCHIVE_BYTES >> 20} MiB and {MAX_FILES} files"
            raise ArtifactError(Location(root, 1), f"expected an archive of at most {limits} unpacked", "", _TOO_LARGE)
        reason = member.skipped or _unsafe(member.name) or _oversized(member.size)
        if reason:
            left_out.setdefault(reason, []).append(member.name)
        else:
            members[_plain_path(member.name)] = member.read()
    return Archive(root, members, tuple(_note(reason, names) for reason, names in left_out.items()))


def _note(reason: str, names: list[str]) -> str:
    shown = ", ".join(name[:80] for name in names[:3])
    return f"{counted(len(names), 'member')} of the archive left out, {reason}: {shown}"


def _unsafe(name: str) -> str | None:
    return "names that lead out of it" if ".." in _plain_path(name).parts else None


def _oversized(size: int) -> str | None:
    return f"larger than {MAX_FILE_BYTES >> 20} MiB" if size > MAX_FILE_BYTES else None


def _plain_path(name: str) -> PurePosixPath:
    """A member's path below the archive; some Windows packers write backslashes, `tar -P` writes absolute paths."""
    return PurePosixPath((name if "/" in name else name.replace("\\", "/")).lstrip("/"))


# --------------------------------------------------------------------------------------------------------------- zip


def _zip_members(path: Path) -> Iterator[_Member]:
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if not info.is_dir():
                yield _Member(info.filename, info.file_size, _zip_skips(info), _zip_reader(path, archive, info))


def _zip_skips(info: zipfile.ZipInfo) -> str | None:
    return "links" if stat.S_ISLNK(info.external_attr >> 16) else None


def _zip_reader(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Callable[[], bytes]:
    def read() -> bytes:
        if info.flag_bits & 1:
            place = Location(f"{path}/{info.filename}", 1)
            raise ArtifactError(place, "expected a readable member, found an encrypted one", "", _REPACK)
        return archive.read(info)

    return read


# --------------------------------------------------------------------------------------------------------------- tar


class _Bounded(BufferedIOBase):
    """An unpacked stream that refuses to hand out more than an artifact may hold: headers may lie about lengths."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def read(self, size: int | None = -1, /) -> bytes:
        """Up to `size` bytes. Raises tarfile.ReadError when a member asks for far too many."""
        if size is None or size < 0 or size > MAX_FILE_BYTES:
            raise tarfile.ReadError("a header asks for more than an artifact can hold")
        return self._stream.read(size)

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """As the stream below."""
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        """As the stream below."""
        return self._stream.tell()


def _tar_members(path: Path) -> Iterator[_Member]:
    with path.open("rb") as file:
        magic = file.read(6)
    opener = next((opener for start, opener in _OPENERS.items() if magic.startswith(start)), None)
    with opener(path) if opener else path.open("rb") as stream:
        bounded = cast("IO[bytes]", _Bounded(stream))
        with tarfile.open(fileobj=bounded, mode="r:") as archive:
            for info in archive:
                if not info.isdir():
                    yield _Member(info.name, info.size, _tar_skips(info), _tar_reader(archive, info))


def _tar_skips(info: tarfile.TarInfo) -> str | None:
    if info.issym() or info.islnk():
        return "links"
    return None if info.isfile() else "no plain files"


def _tar_reader(archive: tarfile.TarFile, info: tarfile.TarInfo) -> Callable[[], bytes]:
    def read() -> bytes:
        member = archive.extractfile(info)
        data = member.read(info.size) if member else b""
        if len(data) < info.size:
            raise tarfile.ReadError(f"{info.name} is cut off")
        return data

    return read
