"""Folders and archives as sources of artifacts: what is read, what is refused, and with which words."""

from __future__ import annotations

import gzip
import io
import os
import struct
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

import pytest

import cli
from analyzer.errors import AnalyzerError, ArtifactError, UsageError
from analyzer.load import archive, load_run
from analyzer.load.tree import Folder, open_tree, text_of

NAME = "torch_compile_debug/run_2026_01_01_00_00_00_000000-pid_7/torchinductor/model__0_inference_0.0/ir_pre_fusion.txt"
TEXT = b"op0: NopKernelSchedulerNode(ComputedBuffer)\n"


def zipped(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in members.items():
            made.writestr(name, data)
    return path


def tarred(path: Path, members: dict[str, bytes], mode: str = "w") -> Path:
    with tarfile.open(path, mode) as made:  # type: ignore[call-overload]
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            made.addfile(info, io.BytesIO(data))
    return path


def failure(path: Path) -> AnalyzerError:
    with pytest.raises(AnalyzerError) as caught:
        open_tree(path)
    return caught.value


# ------------------------------------------------------------------------------------------------------ what is read


@pytest.mark.parametrize("suffix", [".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz"])
def test_archives_are_read_in_place(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"run{suffix}"
    mode = {".tar": "w", ".tar.bz2": "w:bz2", ".tar.xz": "w:xz"}.get(suffix, "w:gz")
    made = zipped(path, {NAME: TEXT}) if suffix == ".zip" else tarred(path, {NAME: TEXT}, mode)
    tree = open_tree(made)
    assert tree.paths() == [PurePosixPath(NAME)]
    assert tree.data(PurePosixPath(NAME)) == TEXT
    assert tree.notes == ()
    assert os.listdir(tmp_path) == [path.name]


def test_an_archive_is_told_by_its_content_too(tmp_path: Path) -> None:
    renamed = tarred(tmp_path / "attachment", {NAME: TEXT}, "w:gz")
    assert open_tree(renamed).paths() == [PurePosixPath(NAME)]


def test_names_of_other_packers(tmp_path: Path) -> None:
    """Some Windows packers write backslashes, `tar -P` absolute names."""
    windows = zipped(tmp_path / "w.zip", {NAME.replace("/", "\\"): TEXT})
    absolute = tarred(tmp_path / "a.tar", {f"/home/user/{NAME}": TEXT})
    assert open_tree(windows).paths() == [PurePosixPath(NAME)]
    assert open_tree(absolute).paths() == [PurePosixPath("home/user", NAME)]


def test_folders_that_may_not_be_read_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is root may read everything: the refusal is the operating system's, replayed."""
    (tmp_path / "closed").mkdir()
    (tmp_path / "ir_pre_fusion.txt").write_bytes(TEXT)
    real = os.scandir

    def refusing(path: str) -> object:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", refusing)
    tree = Folder(str(tmp_path))
    assert tree.paths() == [PurePosixPath("ir_pre_fusion.txt")]
    assert tree.notes == (f"{tmp_path}/closed cannot be read: Permission denied",)


def test_an_archive_of_which_nothing_was_read_says_why(tmp_path: Path) -> None:
    path = tarred(tmp_path / "evil.tar", {"../../etc/ir_pre_fusion.txt": TEXT})
    with pytest.raises(UsageError, match="1 member of the archive left out, names that lead out of it"):
        load_run(path)


def test_folders_do_not_follow_links_to_folders(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/ir_pre_fusion.txt").write_bytes(TEXT)
    (tmp_path / "run/loop").symlink_to(tmp_path)
    assert Folder(str(tmp_path)).paths() == [PurePosixPath("run/ir_pre_fusion.txt")]


@pytest.mark.parametrize("data", ["é\n".encode(), "\ufeffé\n".encode(), "é\n".encode("utf-16")])
def test_encodings_of_editors(data: bytes) -> None:
    assert text_of(data) == "é\n"


def test_bytes_that_are_no_text() -> None:
    assert text_of(b"op\xff0\x80") == "op\ufffd0\ufffd"


# ---------------------------------------------------------------------------------------------------- what is left out


def test_links_and_names_that_lead_out_are_left_out_and_named(tmp_path: Path) -> None:
    path = tmp_path / "odd.tar"
    with tarfile.open(path, "w") as made:
        for name in (NAME, "../../etc/cron.d/job", "a/../../x"):
            info = tarfile.TarInfo(name)
            info.size = len(TEXT)
            made.addfile(info, io.BytesIO(TEXT))
        link = tarfile.TarInfo("output_code.py")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        made.addfile(link)
        pipe = tarfile.TarInfo("pipe")
        pipe.type = tarfile.FIFOTYPE
        made.addfile(pipe)
    tree = open_tree(path)
    assert tree.paths() == [PurePosixPath(NAME)]
    assert tree.notes == (
        "2 members of the archive left out, names that lead out of it: ../../etc/cron.d/job, a/../../x",
        "1 member of the archive left out, links: output_code.py",
        "1 member of the archive left out, no plain files: pipe",
    )


def test_links_in_a_zip_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "links.zip"
    with zipfile.ZipFile(path, "w") as made:
        info = zipfile.ZipInfo("output_code.py")
        info.external_attr = 0o120777 << 16
        made.writestr(info, "/etc/passwd")
    assert open_tree(path).notes == ("1 member of the archive left out, links: output_code.py",)


# ------------------------------------------------------------------------------------------------------ what is refused


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_ARCHIVE_BYTES", 2 * 2**20)
    zeros = bytes(2**20)
    for path in (
        zipped(tmp_path / "bomb.zip", {f"{n}.txt": zeros for n in range(4)}),
        tarred(tmp_path / "bomb.tgz", {f"{n}.txt": zeros for n in range(4)}, "w:gz"),
    ):
        error = failure(path)
        assert str(error) == f"{path}:1:1: expected an archive of at most 2 MiB and 200000 files unpacked"
        assert error.hint == "name the debug folder inside, or pack only that"


def test_a_large_member_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_FILE_BYTES", 2**20)
    tree = open_tree(zipped(tmp_path / "big.zip", {"core.dump": bytes(2**21), NAME: TEXT}))
    assert tree.paths() == [PurePosixPath(NAME)]
    assert tree.notes == ("1 member of the archive left out, larger than 1 MiB: core.dump",)


def test_too_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_FILES", 3)
    path = zipped(tmp_path / "many.zip", {f"{n}.txt": b"" for n in range(4)})
    assert isinstance(failure(path), ArtifactError)


def test_a_header_that_lies_about_its_length(tmp_path: Path) -> None:
    """An extended header is read into memory as a whole: 7 GiB of it must not be asked for."""
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, 7 * 2**30
    path = tmp_path / "pax.tar.gz"
    path.write_bytes(gzip.compress(info.tobuf(tarfile.USTAR_FORMAT) + bytes(2048)))
    assert str(failure(path)) == (
        f"{path}:1:1: expected a tar archive: a header asks for more than an artifact can hold"
    )


def test_an_encrypted_zip(tmp_path: Path) -> None:
    path = zipped(tmp_path / "secret.zip", {"output_code.py": b"x"})
    data = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        struct.pack_into("<H", data, data.index(signature) + offset, 1)
    path.write_bytes(data)
    error = failure(path)
    assert str(error) == f"{path}/output_code.py:1:1: expected a readable member, found an encrypted one"
    assert error.hint == "pack the debug folder again, or unpack this one and name the folder"


@pytest.mark.parametrize(
    ("name", "size", "message"),
    [
        ("cut.zip", 60, "expected a zip archive: File is not a zip file"),
        ("cut.tar.gz", 40, "expected a tar archive: it is cut off"),
        ("cut.tar", 512, "expected a tar archive: unexpected end of data"),
    ],
)
def test_archives_that_were_cut_off(tmp_path: Path, name: str, size: int, message: str) -> None:
    members = {NAME[-80:]: TEXT * 40}
    mode = "w:gz" if name.endswith("gz") else "w"
    path = zipped(tmp_path / name, members) if name.endswith("zip") else tarred(tmp_path / name, members, mode)
    path.write_bytes(path.read_bytes()[:size])
    assert str(failure(path)) == f"{path}:1:1: {message}"


def test_a_damaged_member_of_a_zip(tmp_path: Path) -> None:
    path = zipped(tmp_path / "bad.zip", {"output_code.py": TEXT * 50})
    data = bytearray(path.read_bytes())
    data[60] ^= 0xFF
    path.write_bytes(data)
    assert str(failure(path)).startswith(f"{path}:1:1: expected a zip archive: ")


def test_text_in_the_clothes_of_an_archive(tmp_path: Path) -> None:
    for name in ("run.zip", "run.tar.gz", "run.tar"):
        path = tmp_path / name
        path.write_text("not an archive")
        assert str(failure(path)).startswith(f"{path}:1:1: expected a {'zip' if 'zip' in name else 'tar'} archive: ")


def test_what_is_no_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert str(failure(pipe)) == f"{pipe}:1:1: expected a folder or a plain file"
    missing = failure(tmp_path / "nowhere")
    assert isinstance(missing, UsageError)
    assert missing.message == f"{tmp_path / 'nowhere'}: no such file or folder"


def test_the_command_line_says_it_and_ends_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.zip"
    path.write_bytes(b"PK\x03\x04 cut off")
    assert cli.main(["report", str(path), "--no-color"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    flat = " ".join(printed.err.split())
    assert f"error: {path}:1:1: expected a zip archive: File is not a zip file".replace(" ", "") in flat.replace(
        " ", ""
    )
    assert "next: pack the debug folder again, or unpack this one and name the folder" in flat
