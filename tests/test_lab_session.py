"""Measuring against processes that behave and processes that do not. No torch: the programs speak the protocol."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from analyzer.lab.agreement import agreement
from analyzer.lab.records import ArmSpec, Role, Script
from analyzer.lab.run import ArmTask, capture_arm
from analyzer.lab.session import Session

PROGRAM = """
import json, os, socket, sys, time
wish = json.loads(os.environ["INDUCTOR_AUDIT_LAB"])
how = sys.argv[1]
if how == "silent":
    sys.exit(0)
if how == "crash":
    sys.exit("no such layer")
if how == "hang":
    time.sleep(1000)
with socket.socket(socket.AF_UNIX) as line:
    line.connect(wish["socket"])
    stream = line.makefile("rw")
    def say(answer):
        stream.write(json.dumps(answer) + chr(10))
        stream.flush()
    say({"graphs": [{"name": "g", "calls": 2}]})
    for number, text in enumerate(stream):
        ask = json.loads(text)
        if how == "die" and ask["do"] == "round" and number > 3:
            os._exit(9)
        if how == "stall" and ask["do"] == "round":
            time.sleep(1000)
        if ask["do"] == "export":
            open(ask["file"], "w").close()
        close = {"close": how != "differ", "max_abs": 0.5, "max_rel": 0.1, "reason": "far off", "inputs": "same"}
        answers = {"round": {"g": 0.25 if how == "slow" else 0.125}, "check": {"g": close}}
        say({"error": "boom"} if how == "refuse" and ask["do"] == "check" else {"answer": answers.get(ask["do"])})
"""


@pytest.fixture
def arms(tmp_path: Path):
    (tmp_path / "program.py").write_text(PROGRAM)

    def make(*ways: str, timeout: float = 60) -> list[ArmTask]:
        found = []
        for number, way in enumerate(ways):
            spec = ArmSpec(way, Role.ABLATION if number else Role.BASELINE, against=ways[0] if number else None)
            task = ArmTask(
                Script("program.py", (way,), "program"), spec, tmp_path / "out", tmp_path, "python3", timeout
            )
            task.state("").parent.mkdir(parents=True, exist_ok=True)
            found.append(task)
        return found

    return make


def measured(arms: list[ArmTask], folder: Path, jobs: int = 4) -> Session:
    session = Session(arms, folder, lambda _: None)
    try:
        session.start(jobs)
        session.compare()
        session.measure(3, random.Random(0))
    finally:
        session.close()
    return session


def test_arms_that_behave_are_measured_and_compared(tmp_path, arms):
    session = measured(arms("base", "slow", "differ"), tmp_path)
    assert session.failures == {}
    assert session.rounds == {"base": {"g": [0.125] * 3}, "slow": {"g": [0.25] * 3}, "differ": {"g": [0.125] * 3}}
    assert session.calls["base"] == {"g": 2}
    assert {name: found.close for name, found in session.agreements.items()} == {"slow": True, "differ": False}
    assert session.agreements["differ"].reason == "g: far off"


def test_arms_that_fail_drop_out_and_the_others_go_on(tmp_path, arms):
    session = measured(arms("base", "crash", "silent", "die", "refuse", "slow"), tmp_path)
    assert session.rounds["base"] == {"g": [0.125] * 3}
    assert session.rounds["slow"] == {"g": [0.25] * 3}
    assert "exit code 1" in session.failures["crash"]
    assert "no process of the command imported torch" in session.failures["silent"]
    assert "the process failed in round" in session.failures["die"]
    assert session.failures["refuse"] == "check failed: boom"
    assert set(session.failures) == {"crash", "silent", "die", "refuse"}


def test_arms_that_hang_are_ended_after_the_time_limit(tmp_path, arms):
    session = measured(arms("base", "hang", "stall", timeout=2), tmp_path)
    assert session.failures["hang"] == "the script did not end within 2 s"
    assert "round" in session.failures["stall"]
    assert session.rounds["base"] == {"g": [0.125] * 3}


def test_an_arm_that_crashes_says_how(arms):
    """Its last line of output is the exception of a Python program."""
    _, task = arms("base", "crash")
    run = capture_arm(task)
    assert (str(run.status), run.why) == (
        "crashed",
        "the command ended with exit code 1 before any graph was compiled: no such layer",
    )
    assert json.loads(task.state(".json").read_text())["status"] == "crashed"
    assert capture_arm(task).status == run.status


# --------------------------------------------------------------------------------------------------------- agreement

CLOSE = {"close": True, "max_abs": 1e-7, "max_rel": 1e-8, "reason": None, "inputs": "same"}
FAR = {"close": False, "max_abs": 2.0, "max_rel": 0.5, "reason": "mismatch", "inputs": "own"}
UNKNOWN = {"close": None, "max_abs": None, "max_rel": None, "reason": "other shapes", "inputs": "same"}


@pytest.mark.parametrize(
    ("graphs", "close", "reason"),
    [
        ({"f": CLOSE, "b": CLOSE}, True, None),
        ({"f": CLOSE, "b": FAR}, False, "b: mismatch"),
        ({"f": UNKNOWN, "b": FAR}, False, "b: mismatch"),
        ({"f": CLOSE, "b": UNKNOWN}, None, "b: other shapes"),
        ({"f": CLOSE}, None, "this arm did not call b"),
        ({}, None, "this arm did not call f, b"),
    ],
)
def test_one_graph_that_differs_decides(graphs, close, reason):
    found = agreement(graphs, ["f", "b"])
    assert (found.close, found.reason) == (close, reason)
    assert found.same_inputs == (FAR not in graphs.values())
