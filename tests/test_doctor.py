"""Every cause that the doctor knows, reproduced; those that need a compile are in test_doctor_live.py."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

import cli
from analyzer.doctor import CAUSES, MACHINE, Level, Report, examine_machine, examine_run
from analyzer.doctor.variables import is_unknown, nearest
from analyzer.views.doctor import DoctorView, doctor_document
from tests.test_doctor_live import REPRODUCED_LIVE

ROOT = Path(__file__).parent.parent
FIXTURES = ROOT / "fixtures"
CHAIN = FIXTURES / "runs/cpu-2.13/c01_pointwise_chain"
TRAINED = FIXTURES / "runs/cpu-2.13/c11_mlp_train"


def graph_folder(run: Path) -> Path:
    return next(path.parent for path in sorted(run.rglob("ir_pre_fusion.txt")))


def copied(tmp_path: Path, run: Path = CHAIN) -> Path:
    return Path(shutil.copytree(run, tmp_path / "run"))


# ------------------------------------------------------------------------------------------ how each cause comes about


def path_too_long(tmp_path: Path) -> Path:
    return tmp_path / ("d" * 300)


def no_such_path(tmp_path: Path) -> Path:
    return tmp_path / "torch_compile_debgu"


def cache_folder(tmp_path: Path) -> Path:
    """The layout of /tmp/torchinductor_USER after one compile."""
    for name in ("fxgraph/ab/fab7/x", "aotautograd/ac/x", "ab/cab7.py"):
        (tmp_path / "cache" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "cache" / name).write_text("import torch\n")
    return tmp_path / "cache"


def unreadable(tmp_path: Path) -> Path:
    """An archive whose download was cut off."""
    whole = shutil.make_archive(str(tmp_path / "run"), "zip", CHAIN)
    data = Path(whole).read_bytes()
    Path(whole).write_bytes(data[: len(data) // 2])
    return Path(whole)


def wrong_folder(tmp_path: Path) -> Path:
    """The source folder beside the debug folder."""
    shutil.copytree(CHAIN / "torch_compile_debug", tmp_path / "torch_compile_debug")
    (tmp_path / "src").mkdir()
    (tmp_path / "src/model.py").write_text("import torch\n")
    (tmp_path / "src/train.py").write_text("import torch\n")
    return tmp_path / "src"


def no_artifacts(tmp_path: Path) -> Path:
    return tmp_path


def one_program(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text("import torch\n")
    return tmp_path


def compile_crashed(tmp_path: Path) -> Path:
    return FIXTURES / "doctor/crashed_compile"


def compile_crashed_without_log(tmp_path: Path) -> Path:
    run = copied(tmp_path, FIXTURES / "doctor/crashed_compile")
    shutil.rmtree(run / "torch_compile_debug/tlparse")
    return run


def cache_hit(tmp_path: Path) -> Path:
    return FIXTURES / "runs/cpu-2.13/cache_warm"


def log_alone(tmp_path: Path) -> Path:
    return FIXTURES / "doctor/graph_break"


def truncated(tmp_path: Path) -> Path:
    """A dump that was cut in the middle of a node, as a full disk leaves it."""
    run = copied(tmp_path)
    dump = graph_folder(run) / "ir_post_fusion.txt"
    dump.write_text(dump.read_text()[: len(dump.read_text()) // 2])
    return run


def sidecar_of_another_kind(tmp_path: Path) -> Path:
    run = Path(shutil.copytree(FIXTURES / "captured/sin_cos_thresholds", tmp_path / "run"))
    next(run.rglob("inductor_audit.json")).write_text('{"schema_version": 1, "graphs": 5}')
    return run


def emptied(tmp_path: Path) -> Path:
    run = copied(tmp_path)
    for name in ("ir_pre_fusion.txt", "output_code.py"):
        (graph_folder(run) / name).write_text("")
    shutil.rmtree(run / "torch_compile_debug/tlparse", ignore_errors=True)
    return run


def files_left_out(tmp_path: Path) -> Path:
    run = copied(tmp_path)
    shutil.rmtree(run / "torch_compile_debug/tlparse", ignore_errors=True)
    folder = graph_folder(run)
    for name in ("ir_pre_fusion.txt", "ir_post_fusion.txt"):
        (folder / name).unlink()
    return run


def unknown_variable(tmp_path: Path) -> Path:
    return FIXTURES / "ablations/cpu-2.13-silent/env_typo"


def overwritten(tmp_path: Path) -> Path:
    return FIXTURES / "runs/cpu-2.13/c29_cond"


def version(wanted: str) -> Callable[[Path], Path]:
    """A run by another torch, which only its script says."""

    def made(tmp_path: Path) -> Path:
        script = tmp_path / "model__0_inference_0.0/fx_graph_runnable.py"
        script.parent.mkdir()
        script.write_text(f"# torch version: {wanted}\nclass Repro:\n    def forward(self, x):\n        return (x,)\n")
        return tmp_path

    return made


def provenance_off(tmp_path: Path) -> Path:
    run = copied(tmp_path)
    (graph_folder(run) / "inductor_provenance_tracking_node_mappings.json").unlink()
    shutil.rmtree(run / "torch_compile_debug/tlparse", ignore_errors=True)
    return run


def older_run(tmp_path: Path) -> Path:
    """Two processes, one after the other, in one working folder."""
    run = copied(tmp_path)
    shutil.copytree(TRAINED / "torch_compile_debug", run / "torch_compile_debug", dirs_exist_ok=True)
    return run


def backward_left_out(tmp_path: Path) -> Path:
    """The log tells of a backward graph, whose folder was not copied."""
    run = copied(tmp_path, TRAINED)
    shutil.rmtree(next(run.rglob("model__0_backward_3.1")))
    return run


def first_left_out(tmp_path: Path) -> Path:
    """Without a log, too, a folder that ends in .1 tells of one that ends in .0."""
    run = copied(tmp_path, TRAINED)
    shutil.rmtree(run / "torch_compile_debug/tlparse")
    shutil.rmtree(next(run.rglob("model__0_forward_1.0")))
    return run


def never_backward(tmp_path: Path) -> Path:
    run = backward_left_out(tmp_path)
    shutil.rmtree(run / "torch_compile_debug/tlparse")
    return run


def compile_worker(tmp_path: Path) -> Path:
    """TORCHINDUCTOR_FX_COMPILE_MODE=SUBPROCESS: the parent's folder has no graph."""
    return FIXTURES / "doctor/compile_worker"


def recompile(tmp_path: Path) -> Path:
    return FIXTURES / "doctor/recompile"


CASES: tuple[tuple[str, Callable[[Path], Path], str], ...] = (
    ("path too long", path_too_long, "a folder name in the path has 300 characters; the limit is 255"),
    ("no such path", no_such_path, "torch_compile_debgu"),
    ("cache folder", cache_folder, "cache is a cache of compiled graphs (it holds ab, aotautograd, fxgraph)"),
    ("unreadable", unreadable, "run.zip:1:1"),
    ("wrong folder", wrong_folder, "src holds no artifacts; "),
    ("no artifacts", no_artifacts, "no Inductor artifacts here"),
    ("no artifacts", one_program, "train.py, the only file, is none of TorchInductor's"),
    ("compile crashed", compile_crashed, "InductorError: RuntimeError: hook broke"),
    ("compile crashed", compile_crashed_without_log, "the compile failed before it was written"),
    ("cache hit", cache_hit, "1 graph came from a warm cache"),
    ("log alone", log_alone, "logs hold no IR dumps"),
    ("damaged files", truncated, "model__0_inference_0.0/ir_post_fusion.txt:"),
    ("damaged files", sidecar_of_another_kind, "model__0_inference_0.0/inductor_audit.json:1: "),
    ("damaged files", emptied, "model__0_inference_0.0/output_code.py is empty"),
    ("files left out", files_left_out, "ir_pre_fusion.txt, ir_post_fusion.txt not among the files"),
    ("graphs left out", backward_left_out, "the log has graph 0_backward of compile 0/0, which has no folder here"),
    ("numbers missing", first_left_out, "folders end in .1: .0 is not here"),
    ("unknown variable", unknown_variable, "torch reads no variable TORCHINDUCTOR_MAX_FUSION_SIZE"),
    ("dumps overwritten", overwritten, "the dumps are those of false_graph_0"),
    ("torch too old", version("2.3.1"), "the run was made by torch 2.3.1"),
    ("torch too new", version("2.16.0"), "the newest that is known is 2.15"),
    ("provenance off", provenance_off, "model__0_inference_0.0: no provenance record"),
    ("old run beside a new one", older_run, "beside the one that was read: 1 older run, run_2026_"),
    ("compiled in another process", compile_worker, "process 3843 compiled what process 3806 traced"),
    ("no backward graph", never_backward, "no backward graph for 1 of 1 forward graph"),
    ("graph breaks", log_alone, "/home/user/work/silent_cases.py:40: Encountered graph break"),
    ("recompiles", recompile, "tensor 'x' size mismatch at index 0. expected 4096, actual 8192"),
)


def told(report: Report, cause: str) -> str:
    return "\n".join(text for diagnosis in report.diagnoses if diagnosis.cause == cause for text in diagnosis.told)


@pytest.mark.parametrize(("cause", "make", "sentence"), CASES, ids=[f"{c}-{m.__name__}" for c, m, _ in CASES])
def test_each_cause_is_found_where_it_is(
    cause: str, make: Callable[[Path], Path], sentence: str, tmp_path: Path
) -> None:
    assert sentence in told(examine_run(make(tmp_path)), cause)


def test_every_cause_of_a_run_is_reproduced() -> None:
    assert {case[0] for case in CASES} | REPRODUCED_LIVE | {"permission denied"} == {cause.name for cause in CAUSES}


@pytest.mark.parametrize(
    "run", [CHAIN, TRAINED, FIXTURES / "runs/cpu-2.5/c11_mlp_train", FIXTURES / "captured/sin_cos_inlining"]
)
def test_a_good_run_has_no_cause(run: Path) -> None:
    assert examine_run(run).diagnoses == ()


def test_a_compile_worker_is_no_old_run() -> None:
    """Its parent, whose log goes on while it compiles, began before it and belongs to the same run."""
    report = examine_run(compile_worker(Path()))
    assert [diagnosis.cause for diagnosis in report.diagnoses] == ["compiled in another process"]
    assert report.facts == ("torch 2.13.0+cpu", "1 compiled graph", "caches cold")


def test_one_graph_that_was_asked_for_is_no_left_out_one() -> None:
    for name in ("model__0_forward_1.0", "model__0_backward_3.1"):
        assert examine_run(next(TRAINED.rglob(name))).diagnoses == ()


def test_a_broken_manifest_is_found(tmp_path: Path) -> None:
    run = copied(tmp_path, FIXTURES / "captured/sin_cos_inlining")
    (run / "manifest.json").write_text("{", encoding="utf-8")
    assert "manifest.json:1" in told(examine_run(run), "unreadable")


@pytest.mark.parametrize("name", [".", "torchinductor", "output_code.py"])
def test_what_may_not_be_read_is_named(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A closed folder looks empty, as if nothing had been compiled. Root may read all, so the refusal is made up."""
    run = copied(tmp_path)
    closed = run if name == "." else next(run.rglob(name))
    scandir, access = os.scandir, os.access

    def refusing(path: str) -> object:
        if Path(path) == closed:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != closed and access(path, mode))
    report = examine_run(run)
    assert [diagnosis.cause for diagnosis in report.diagnoses] == ["permission denied"]
    assert report.diagnoses[0].told == (f"{closed} may not be read by this user",)


def test_the_cause_comes_before_its_consequences(tmp_path: Path) -> None:
    """A dump cut short also looks like a crash: what is missing after it was never copied."""
    run = truncated(tmp_path)
    shutil.rmtree(run / "torch_compile_debug/tlparse", ignore_errors=True)
    (graph_folder(run) / "output_code.py").unlink()
    assert [diagnosis.cause for diagnosis in examine_run(run).problems] == ["damaged files"]


# -------------------------------------------------------------------------------------------------------- the machine


@pytest.fixture
def interpreter(tmp_path: Path) -> Callable[..., str]:
    """An interpreter that answers the doctor's question so."""

    def made(**answer: object) -> str:
        path = tmp_path / "python"
        document = json.dumps({"headers": True, "torch": "2.13.0", "cuda": False, **answer})
        path.write_text(f"#!/bin/sh\ncat <<'EOF'\n{document}\nEOF\n")
        path.chmod(0o755)
        return str(path)

    return made


def machine(tmp_path: Path, python: str, **variables: str) -> Report:
    clean = {"PATH": os.environ["PATH"], "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"), **variables}
    return examine_machine(python, clean, tmp_path)


MACHINES: tuple[tuple[str, dict[str, object], dict[str, str], str], ...] = (
    ("no torch", {"torch": None, "error": "ModuleNotFoundError: torch"}, {}, "ModuleNotFoundError: torch"),
    ("torch too old", {"torch": "2.3.1"}, {}, "torch 2.3.1 is older than 2.5"),
    ("torch too new", {"torch": "2.16.0a0"}, {}, "torch 2.16.0a0 is newer than 2.15"),
    ("compilation switched off", {}, {"TORCHDYNAMO_DISABLE": "1"}, "TORCHDYNAMO_DISABLE=1"),
    ("debug variable", {}, {"TORCH_COMPILE_DEBUG": "true"}, "only 1 switches it on"),
    ("no C++ compiler", {}, {"CXX": "no-such-compiler"}, "no C++ compiler on PATH (no-such-compiler)"),
    ("no Python headers", {"headers": False}, {}, "has no Python.h"),
    ("no Triton", {"cuda": True}, {}, "cannot import triton"),
    (
        "folder not writable",
        {},
        {"TORCH_COMPILE_DEBUG_DIR": "/dev/null/x"},
        "/dev/null/x/torch_compile_debug cannot be",
    ),
    ("path too long", {}, {"TORCH_COMPILE_DEBUG_DIR": "/tmp/" + "d" * 300}, "300 characters; the limit is 255"),
    ("errors suppressed", {}, {"TORCHDYNAMO_SUPPRESS_ERRORS": "1"}, "runs uncompiled, without a word"),
    ("unknown variable", {}, {"TORCHINDUCTOR_MAX_AUTOTUNED": "1"}, "there is TORCHINDUCTOR_MAX_AUTOTUNE"),
    ("provenance off", {}, {"INDUCTOR_PROVENANCE": "0"}, "INDUCTOR_PROVENANCE=0"),
)


@pytest.mark.parametrize(("cause", "answer", "variables", "sentence"), MACHINES, ids=[case[0] for case in MACHINES])
def test_each_cause_is_found_in_the_environment(
    cause: str,
    answer: dict[str, object],
    variables: dict[str, str],
    sentence: str,
    tmp_path: Path,
    interpreter: Callable[..., str],
) -> None:
    assert sentence in told(machine(tmp_path, interpreter(**answer), **variables), cause)


def test_a_warm_cache_hides_compiles(tmp_path: Path, interpreter: Callable[..., str]) -> None:
    (tmp_path / "cache/fxgraph/ab").mkdir(parents=True)
    assert "dumps nothing for a graph that is found there" in told(machine(tmp_path, interpreter()), "warm cache")
    assert told(machine(tmp_path, interpreter(), TORCHINDUCTOR_FX_GRAPH_CACHE="0"), "warm cache") == ""


def test_an_almost_full_disk(tmp_path: Path, interpreter: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=3_000_000))
    assert "has 3 MB left" in told(machine(tmp_path, interpreter()), "disk almost full")


def test_every_cause_of_the_environment_is_reproduced() -> None:
    here = {"warm cache", "disk almost full"}
    assert {case[0] for case in MACHINES} | here == {cause.name for cause in MACHINE}


def test_an_interpreter_that_is_not_there(tmp_path: Path) -> None:
    assert "cannot run" in told(machine(tmp_path, str(tmp_path / "no-python")), "no torch")


def test_a_good_machine_says_what_it_has(tmp_path: Path, interpreter: Callable[..., str]) -> None:
    report = machine(tmp_path, interpreter(), CXX="sh")
    assert report.diagnoses == ()
    assert report.facts[0].startswith("torch 2.13.0 (")
    assert report.facts[-1] == f"dumps go to {tmp_path / 'torch_compile_debug'}"


def test_variables_of_torch_are_known() -> None:
    assert not is_unknown("TORCHINDUCTOR_FX_GRAPH_CACHE")
    assert not is_unknown("PATH")
    assert nearest("TORCHINDUCTOR_FX_GRAF_CACHE") == "TORCHINDUCTOR_FX_GRAPH_CACHE"


# ----------------------------------------------------------------------------------------------- views and command line


def test_registries_are_whole() -> None:
    for causes in (CAUSES, MACHINE):
        names = [cause.name for cause in causes]
        assert len(names) == len(set(names))
        assert all(cause.remedy and cause.find.__doc__ for cause in causes)


def test_the_view_ends_with_one_thing_to_do(show: Callable[..., str], golden: Callable[[str], str]) -> None:
    report = examine_run(FIXTURES / "doctor/crashed_compile")
    named = Report("crashed_compile", report.diagnoses, report.facts)
    assert show(DoctorView(named), 80) == golden("doctor_crashed_80.txt")


def test_a_path_is_text_not_markup(show: Callable[..., str]) -> None:
    text = show(DoctorView(examine_run("[bold]x[/bold]\x1b")), 80)
    assert "there is no [bold]x[/bold]\\x1b" in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("run", "code"), [(str(CHAIN), 0), (str(FIXTURES / "doctor/crashed_compile"), 1), ("no/such/run", 1)]
)
def test_exit_codes(run: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor", run, "--json"]) == code
    document = json.loads(capsys.readouterr().out)
    assert document["healthy"] is (code == 0)


def test_notes_alone_are_no_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor", str(older_run(tmp_path))]) == 0
    assert "old run beside a new one" in capsys.readouterr().out


def test_json_has_every_diagnosis(tmp_path: Path) -> None:
    report = examine_run(recompile(tmp_path))
    document = doctor_document(report)
    assert [entry["cause"] for entry in document["diagnoses"]] == [one.cause for one in report.diagnoses]
    assert document["diagnoses"][-1]["level"] == Level.NOTE
