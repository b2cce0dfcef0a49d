"""Causes that only a real process shows: each is brought about with torch, and then diagnosed."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from analyzer.capture import CaptureRequest, capture, script_command
from analyzer.doctor import Report, examine_machine, examine_run

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch"),
]

HERE = Path(__file__).parent
FAST = str(HERE / "without_cxx.py")
PROGRAMS = HERE.parent / "fixtures/programs"

REPRODUCED_LIVE = {
    "debug switched on too late",
    "dumps switched off",
    "nothing compiled",
    "options ignored",
    "ran uncompiled",
}
"""Causes that test_doctor.py leaves to this file."""

LATE = """
import os, torch, torch._inductor.config
os.environ["TORCH_COMPILE_DEBUG"] = "1"
torch.compile(lambda x: x.cos().sin())(torch.randn(1000))
"""
UNTRACED = """
import torch, torch._inductor.config
torch._inductor.config.trace.enabled = False
torch.compile(lambda x: x.cos().sin())(torch.randn(1000))
"""
LAZY = "import torch\nf = torch.compile(torch.sin)\n"
FAILING = """
import torch, torch._inductor.lowering
def refuse(*args): raise RuntimeError("no sine today")
torch._inductor.lowering.lowerings[torch.ops.aten.sin.default] = refuse
torch.compile(lambda x: x.cos().sin())(torch.randn(1000))
"""


LIMITED = """
import torch
torch._dynamo.config.recompile_limit = 1
function = torch.compile(lambda x, n: x * n, backend="eager", dynamic=False)
for n in (2, 3, 4): function(torch.randn(8), n)
"""
UNTRACEABLE = """
import torch
def shout(x):
    print("hi")
    return x.sin()
torch.compile(shout, fullgraph=True)(torch.randn(8))
"""
UNTRACKED = """
import torch, torch._inductor.config
torch._inductor.config.trace.provenance_tracking_level = 0
torch.compile(lambda x: x.cos().sin())(torch.randn(1000))
"""


def told(report: Report) -> dict[str, str]:
    return {diagnosis.cause: "\n".join(diagnosis.told) for diagnosis in report.diagnoses}


def captured(folder: Path, text: str, **options: object) -> Report:
    program = folder / "program.py"
    program.write_text(text, encoding="utf-8")
    return captured_command(folder, script_command(FAST, (str(program),)), **options)


def captured_command(folder: Path, command: tuple[str, ...], **options: object) -> Report:
    out = folder / "run"
    capture(CaptureRequest(command, out=out, timeout=300, log=folder / "log", **options))  # type: ignore[arg-type]
    return examine_run(out)


def run_by_hand(folder: Path, text: str, **variables: str) -> Report:
    """A program that is run without `inductor-audit capture`."""
    (folder / "program.py").write_text(text, encoding="utf-8")
    rest = {key: value for key, value in os.environ.items() if not key.startswith("TORCH_COMPILE_DEBUG")}
    caches = {"TORCHINDUCTOR_FX_GRAPH_CACHE": "0", "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, FAST, "program.py"]
    subprocess.run(command, cwd=folder, env={**rest, **caches, **variables}, check=False, timeout=300)
    shutil.rmtree(folder / "cache", ignore_errors=True)
    return examine_run(folder)


def test_debug_switched_on_too_late(tmp_path: Path) -> None:
    report = run_by_hand(tmp_path, LATE)
    assert "TORCH_COMPILE_DEBUG was set after torch" in told(report)["debug switched on too late"]


def test_a_frame_beyond_the_recompile_limit(tmp_path: Path) -> None:
    found = told(run_by_hand(tmp_path, LIMITED, TORCH_COMPILE_DEBUG="1"))
    assert "Dynamo recompile limit exceeded" in found["ran uncompiled"]
    assert found["recompiles"].splitlines()[0] == "compile 0/1: 0/0: n == 2"
    assert "no graph reached Inductor" in found["nothing compiled"]


def test_a_function_that_cannot_be_one_graph(tmp_path: Path) -> None:
    """Torch ends its message with hints; the exception stands above them."""
    report = run_by_hand(tmp_path, UNTRACEABLE, TORCH_COMPILE_DEBUG="1")
    assert [diagnosis.cause for diagnosis in report.diagnoses] == ["compile crashed"]
    assert told(report)["compile crashed"] == "torch._dynamo.exc.Unsupported: Failed to trace builtin operator"


def test_compilation_switched_off_by_a_variable(tmp_path: Path) -> None:
    """Torch then writes nothing at all."""
    report = run_by_hand(tmp_path, UNTRACKED, TORCH_COMPILE_DEBUG="1", TORCHDYNAMO_DISABLE="1")
    assert [diagnosis.cause for diagnosis in report.diagnoses] == ["no artifacts"]
    assert "`inductor-audit doctor` without RUN" in report.diagnoses[0].remedy


def test_provenance_switched_off(tmp_path: Path) -> None:
    report = run_by_hand(tmp_path, UNTRACKED, TORCH_COMPILE_DEBUG="1")
    assert [diagnosis.cause for diagnosis in report.diagnoses] == ["provenance off"]


def test_dumps_switched_off_by_the_program(tmp_path: Path) -> None:
    assert "1 graph compiled without a debug folder" in told(captured(tmp_path, UNTRACED))["dumps switched off"]


def test_nothing_compiled(tmp_path: Path) -> None:
    assert "nothing compiled was called" in told(captured(tmp_path, LAZY))["nothing compiled"]


def test_a_crashed_compile_with_torchs_own_words(tmp_path: Path) -> None:
    assert "no sine today" in told(captured(tmp_path, FAILING))["compile crashed"]


def test_an_option_that_the_program_sets_itself(tmp_path: Path) -> None:
    command = script_command(FAST, (str(PROGRAMS / "sin_cos_thresholds.py"),))
    report = captured_command(tmp_path, command, settings=(("realize_reads_threshold", "7"),))
    assert "realize_reads_threshold was 0, not 7" in told(report)["options ignored"]


@pytest.mark.skipif(sys.platform == "win32", reason="the limit there is another")
def test_a_debug_folder_too_deep_for_its_files(tmp_path: Path) -> None:
    """Torch itself then fails, at the name of its first log."""
    deep = str(tmp_path)
    while len(deep) < 4040:
        deep += "/" + "d" * min(200, max(1, 4039 - len(deep)))
    os.makedirs(deep)
    (tmp_path / "lazy.py").write_text(LATE, encoding="utf-8")
    environment = {**os.environ, "TORCH_COMPILE_DEBUG": "1", "TORCH_COMPILE_DEBUG_DIR": deep}
    done = subprocess.run(
        [sys.executable, FAST, str(tmp_path / "lazy.py")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert "File name too long" in done.stderr
    assert "passes the limit of 4,096" in told(examine_run(deep))["path too long"]


def test_this_machine_can_capture(tmp_path: Path) -> None:
    report = examine_machine(sys.executable, {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}, tmp_path)
    assert report.problems == ()
    assert report.facts[0].startswith("torch 2.")
