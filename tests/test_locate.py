"""What a RUN argument means: every form of it finds the same graphs, and says what it left out."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path, PurePosixPath

import pytest

from analyzer.errors import UsageError
from analyzer.load import load_run
from analyzer.load.locate import find, focus
from analyzer.model import Run

ROOT = Path(__file__).parent.parent
TRAINED = ROOT / "fixtures/runs/cpu-2.13/c11_mlp_train"
RUN = "run_2026_11_30_01_36_30_954177-pid_20658"
BOTH = ["model__0_forward_1.0", "model__0_backward_3.1"]


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    """A run folder of our own with a training run in it: one process, its trace log beside it."""
    return Path(shutil.copytree(TRAINED, tmp_path / "run"))


def names(run: Run) -> list[str]:
    return [graph.label for graph in run.graphs]


# -------------------------------------------------------------------------------------------------------- all its forms


@pytest.mark.parametrize(
    "inside", ["", "torch_compile_debug", f"torch_compile_debug/{RUN}", f"torch_compile_debug/{RUN}/torchinductor"]
)
def test_folders_at_every_level(trained: Path, inside: str) -> None:
    run = load_run(trained / inside)
    assert names(run) == BOTH
    assert all(graph.trace is not None for graph in run.graphs), "the log beside the run folder belongs to it"
    assert run.path == str(trained / inside)
    assert run.notes == ()


def test_one_model_folder(trained: Path) -> None:
    folder = trained / "torch_compile_debug" / RUN / "torchinductor" / BOTH[1]
    run = load_run(folder)
    assert names(run) == BOTH[1:]
    assert run.graphs[0].kind == "backward"
    assert run.graphs[0].path == str(folder)
    assert run.graphs[0].trace is not None


@pytest.mark.parametrize(("at", "argument", "shown"), [(BOTH[0], ".", "."), ("", BOTH[0], BOTH[0])])
def test_relative_paths_know_what_is_above(
    trained: Path, monkeypatch: pytest.MonkeyPatch, at: str, argument: str, shown: str
) -> None:
    monkeypatch.chdir(trained / "torch_compile_debug" / RUN / "torchinductor" / at)
    run = load_run(argument)
    assert names(run) == BOTH[:1]
    assert run.graphs[0].path == shown
    assert run.graphs[0].trace is not None


def test_a_folder_with_nothing_but_artifact_files(trained: Path, tmp_path: Path) -> None:
    source = trained / "torch_compile_debug" / RUN / "torchinductor" / BOTH[0]
    plain = Path(shutil.copytree(source, tmp_path / "from_the_issue"))
    run = load_run(plain)
    assert names(run) == ["from_the_issue"]
    assert run.graphs[0].pre is not None
    assert run.torch_version == "2.13.0+cpu"


@pytest.mark.parametrize("suffix", ["zip", "gztar", "tar"])
@pytest.mark.parametrize(
    ("inside", "expected"),
    [("..", BOTH), ("torch_compile_debug", BOTH), (f"torch_compile_debug/{RUN}/torchinductor", BOTH)],
)
def test_archives_of_every_level(trained: Path, tmp_path: Path, suffix: str, inside: str, expected: list[str]) -> None:
    packed = shutil.make_archive(str(tmp_path.parent / f"{tmp_path.name}-packed"), suffix, trained / inside)
    run = load_run(packed)
    assert names(run) == expected
    assert run.graphs[0].pre is not None
    assert run.graphs[0].path.startswith(packed)


def test_an_archive_of_artifact_files_alone(trained: Path, tmp_path: Path) -> None:
    folder = trained / "torch_compile_debug" / RUN / "torchinductor" / BOTH[0]
    run = load_run(shutil.make_archive(str(tmp_path / "dump"), "gztar", folder))
    assert names(run) == ["dump"]
    assert {artifact.state for artifact in run.graphs[0].artifacts} == {"parsed"}


def test_an_archive_of_one_log(tmp_path: Path) -> None:
    packed = tmp_path / "log.tgz"
    with tarfile.open(packed, "w:gz") as made:
        made.add(ROOT / "fixtures/logs/sin_cos-cpu-2.13.log", "console.txt")
    run = load_run(packed)
    assert names(run) == ["graph_0"]
    assert run.graphs[0].path == f"{packed}/console.txt"


# -------------------------------------------------------------------------------------------------- several run folders


def test_the_newest_run_counts_and_older_ones_are_named(trained: Path) -> None:
    debug = trained / "torch_compile_debug"
    shutil.copytree(debug / RUN, debug / "run_2025_01_01_00_00_00_000000-pid_9")
    run = load_run(debug)
    assert names(run) == BOTH
    assert all(f"/{RUN}/" in graph.path for graph in run.graphs)
    assert run.notes == ("1 older run beside this one left out: run_2025_01_01_00_00_00_000000-pid_9",)
    older = load_run(debug / "run_2025_01_01_00_00_00_000000-pid_9")
    assert names(older) == BOTH
    assert older.notes == ()
    assert all(graph.trace is None for graph in older.graphs), "the log is of another pid"


def test_copies_beside_cached_modules_are_no_graphs(trained: Path) -> None:
    source = trained / "torch_compile_debug" / RUN / "torchinductor" / BOTH[0]
    copy = Path(shutil.copytree(source, trained / "torch_compile_debug" / RUN / "cache/ab/cabc.debug"))
    assert names(load_run(trained)) == BOTH
    assert names(load_run(copy)) == ["cabc"]


def test_edited_copies_of_artifacts_are_no_artifacts(trained: Path) -> None:
    folder = trained / "torch_compile_debug" / RUN / "torchinductor" / BOTH[0]
    for name in ("output_code_fixed.py", "left.cpp", "ir_pre_fusion.txt.orig"):
        (folder / name).write_text("op0: broken(")
    assert [artifact.state for artifact in load_run(folder).graphs[0].artifacts] == ["parsed"] * 7


# ---------------------------------------------------------------------------------------------------- what is not a run


def test_folders_without_artifacts(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no Inductor artifacts here: it holds no file") as caught:
        load_run(tmp_path)
    assert caught.value.hint == "make some: inductor-audit capture SCRIPT"
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("hello")
    with pytest.raises(UsageError, match="none of its 2 files is an artifact of TorchInductor"):
        load_run(tmp_path)


def test_focus_climbs_to_the_top_of_a_debug_tree_and_no_higher(trained: Path) -> None:
    debug = trained / "torch_compile_debug"
    inside = focus(debug / RUN / "torchinductor" / BOTH[0])
    assert inside.root == debug
    assert inside.prefix == PurePosixPath(RUN, "torchinductor", BOTH[0])
    assert focus(trained).root == trained


def test_find_orders_graphs_by_their_numbers() -> None:
    paths = [
        PurePosixPath(f"run_2026_x-pid_1/torchinductor/model__{n}_forward_1.{n}/output_code.py") for n in (10, 9, 2)
    ]
    found = find(paths, PurePosixPath())
    assert [folder.name for folder in found.graphs] == [f"model__{n}_forward_1.{n}" for n in (2, 9, 10)]
    assert found.files[found.graphs[0]] == frozenset({"output_code.py"})
