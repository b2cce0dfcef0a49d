"""Whole experiments on real compiles: arms that act, crash, hang and change results; interruption and resumption."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch"),
]

HERE = Path(__file__).parent
CLI = [sys.executable, str(HERE.parent / "cli.py"), "ablate"]
FAST = str(HERE / "without_cxx.py")
SIN_COS = str(HERE.parent / "fixtures/programs/sin_cos.py")

MISBEHAVING = """
import time, torch
from torch._inductor import config
if config.max_fusion_size == 1:
    raise SystemExit("out of ideas")
if not config.inplace_buffers:
    time.sleep(1000)
torch.compile(lambda x: torch.sin(torch.cos(x)))(torch.randn(1000))
"""

LYING = """
import torch
from torch._inductor import config
scale = 2.0 if config.cpp.simdlen == 1 else 1.0
model = torch.compile(lambda x: torch.sin(torch.cos(x) * scale))
for _ in range(3):
    model(torch.randn(1000))
"""


def ablate(folder: Path, *arguments: str) -> tuple[int, dict[str, dict[str, Any]], str]:
    """Exit code, arms by name, and what was said meanwhile."""
    done = subprocess.run(
        [*CLI, "--json", *arguments], cwd=folder, capture_output=True, text=True, timeout=900, check=False
    )
    arms = json.loads(done.stdout)["arms"] if done.stdout else []
    return done.returncode, {one["arm"]: one for one in arms}, done.stderr


def verdicts(arms: dict[str, dict[str, Any]]) -> dict[str, tuple[str | None, str | None]]:
    return {name: (one["verdict"], one["masked_by"]) for name, one in arms.items() if one["ablation"]}


def test_the_founding_table(tmp_path):
    names = ("realize-thresholds", "inlining", "fusion", "inlining+fusion")
    code, arms, _ = ablate(tmp_path, "--out", "o", *(f"--ablation={name}" for name in names), FAST, SIN_COS)
    assert verdicts(arms) == {
        "realize-thresholds": ("INERT", None),
        "inlining": ("EFFECTIVE", "fusion"),
        "fusion": ("NO_OPPORTUNITY", None),
        "inlining+fusion": ("EFFECTIVE", None),
    }
    assert arms["control"]["before"] == arms["control"]["summary"] == arms["baseline"]["summary"]
    assert all(one["time"] is None and one["compile_s"] is None for one in arms.values())  # nothing was compiled
    assert code == 1


def test_an_arm_that_crashes_and_one_that_hangs_and_what_is_kept(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(MISBEHAVING)
    asked = (
        "--out=o",
        "--timeout=60",
        "--jobs=2",
        *(f"--ablation={n}" for n in ("fusion", "inplace-buffers", "inlining")),
    )
    code, arms, _ = ablate(tmp_path, *asked, FAST, "program.py")
    assert code == 1
    assert (arms["fusion"]["status"], arms["inplace-buffers"]["status"]) == ("crashed", "timeout")
    assert "out of ideas" in arms["fusion"]["failure"]
    assert arms["fusion"]["verdict"] == "UNDECIDED"
    assert verdicts(arms)["inlining"] == ("EFFECTIVE", "fusion")
    code, again, said = ablate(tmp_path, *asked[:1], "--ablation=inlining", FAST, "program.py")
    assert code == 0
    assert [one["kept"] for one in again.values()] == [True] * 3
    assert said.count("kept from an earlier call") == 3


@pytest.mark.parametrize(("engine", "needs"), [("slurm:local", "submitit"), ("dask", "distributed")])
def test_other_engines_give_the_same_results(tmp_path, engine, needs):
    pytest.importorskip(needs)
    asked = ("--engine", engine, "--jobs=2", "--ablation=inlining", "--out=o", FAST, SIN_COS)
    code, arms, _ = ablate(tmp_path, *asked)
    assert code == 0
    assert verdicts(arms) == {"inlining": ("EFFECTIVE", "fusion")}
    assert (tmp_path / "o/inlining/manifest.json").is_file()


def running_in(folder: Path) -> list[str]:
    """The processes that work there."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "cwd").resolve(strict=True) == folder:
                found.append((process / "cmdline").read_text())
    return found


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interruption_leaves_what_was_finished_and_no_process(tmp_path, number, code):
    command = [*CLI, "--out", "o", "--ablation", "inlining", FAST, SIN_COS]
    running = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, stdout=subprocess.PIPE)
    until = time.monotonic() + 300
    state = tmp_path / "o/.lab/baseline.json"
    while time.monotonic() < until and not (state.is_file() and '"fine"' in state.read_text()):
        time.sleep(0.1)
    time.sleep(1.0)
    os.kill(running.pid, number)
    _, said = running.communicate(timeout=60)
    assert running.returncode == code
    assert running_in(tmp_path.resolve()) == []
    assert "finished arms are kept" in said
    code, arms, _ = ablate(tmp_path, *command[len(CLI) :])
    assert code == 0
    assert arms["baseline"]["kept"]
    assert not arms["inlining"]["kept"]


def test_times_and_an_arm_that_changes_results(tmp_path):
    """The C++ compiler is needed here. An arm that computes something else is never credited."""
    pytest.importorskip("scipy")
    (tmp_path / "program.py").write_text(LYING)
    names = ("inlining+fusion", "vectorization")
    code, arms, _ = ablate(
        tmp_path, *(f"--ablation={n}" for n in names), "program.py", "--time", "--rounds=5", "--processes=1", "--jobs=2"
    )
    assert code == 1
    honest, lying = arms["inlining+fusion"], arms["vectorization"]
    assert (honest["agreement"]["close"], arms["control"]["agreement"]["max_abs"]) == (True, 0.0)
    assert honest["time"]["ratio"] > 0
    assert honest["time"]["credited"] == (honest["time"]["why_not"] is None)
    assert lying["agreement"]["close"] is False
    assert lying["verdict"] != "EFFECTIVE"
    assert not lying["time"]["credited"]
    assert list(honest["time"]["graphs"]) == ["model__0_inference_0.0"]
    assert (tmp_path / "inductor-audit-runs/ablate-program/baseline/manifest.json").is_file()
