"""Measuring against processes that behave and processes that do not. No torch: the programs speak the protocol."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from analyzer.lab.agreement import agreement
from analyzer.lab.records import ArmSpec, Measuring, Role, Script, Step
from analyzer.lab.run import ArmTask, capture_arm
from analyzer.lab.session import Session
from analyzer.lab.timing import TimingTask, kept_samples, time_arms

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
        session.start(jobs, random.Random(0))
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


# -------------------------------------------------------------------------------------------------- several sessions


@pytest.fixture
def task(arms, monkeypatch) -> TimingTask:
    """Two sessions of arms whose code is not looked at: these programs compile nothing."""
    monkeypatch.setattr("analyzer.lab.session.other_code", lambda one, other: None)
    return TimingTask(tuple(arms("base", "slow")), rounds=3, processes=2, jobs=2)


def test_a_measurement_that_was_interrupted_goes_on_with_the_session_it_was_in(task):
    def in_the_second(step: Step) -> None:
        if isinstance(step, Measuring) and (step.session, step.doing) == (2, "round 2 of 3"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        time_arms(task, in_the_second)
    assert kept_samples(task) is None
    steps: list[Step] = []
    samples = time_arms(task, steps.append)
    assert {(step.session, step.sessions) for step in steps if isinstance(step, Measuring)} == {(2, 2)}
    assert samples["base"].rounds == {"g": ((0.125,) * 3, (0.125,) * 3)}
    assert samples["slow"].rounds == {"g": ((0.25,) * 3, (0.25,) * 3)}
    assert (samples["slow"].calls, samples["slow"].agreement.close) == ({"g": 2}, True)
    assert kept_samples(task) == samples


def test_one_more_session_is_added_to_those_that_are_kept_and_other_rounds_begin_anew(task):
    time_arms(task)
    assert len(kept_samples(replace(task, processes=1))["slow"].rounds["g"]) == 1
    steps: list[Step] = []
    assert len(time_arms(replace(task, processes=3), steps.append)["slow"].rounds["g"]) == 3
    assert {step.session for step in steps if isinstance(step, Measuring)} == {3}
    assert kept_samples(replace(task, rounds=4)) is None


def test_a_session_in_which_an_arm_ran_other_code_is_left_out(task, monkeypatch):
    """As when autotuning picks another kernel than in the run that was audited."""
    asked: list[Path] = []

    def other_code(audited: Path, measured: Path) -> str | None:
        asked.append(audited)
        return "other code in g" if audited.name == "slow" and asked.count(audited) == 2 else None

    monkeypatch.setattr("analyzer.lab.session.other_code", other_code)
    samples = time_arms(replace(task, processes=3))
    assert time_arms(replace(task, processes=3)) == samples
    assert samples["base"].rounds == {"g": ((0.125,) * 3,) * 3}
    assert samples["slow"].rounds == {"g": ((0.25,) * 3, (), (0.25,) * 3)}
    told = "1 of 3 sessions, where other code ran than the code that was audited: other code in g"
    assert (samples["slow"].failure, samples["slow"].left_out, samples["base"].left_out) == (None, told, None)
    assert kept_samples(replace(task, processes=3)) == samples


@pytest.mark.parametrize("damage", ["", "[]", '{"schema_version": 3}', '{"schema_version": 1, "keys": {}}'])
def test_damaged_samples_are_measured_again(task, damage):
    time_arms(replace(task, processes=1))
    task.file.write_text(damage)
    assert kept_samples(replace(task, processes=1)) is None


def test_what_measuring_does_is_told_in_order(task):
    steps: list[Step] = []
    time_arms(replace(task, processes=1, jobs=1), steps.append)
    told = list(dict.fromkeys(step.doing for step in steps if isinstance(step, Measuring)))
    starting = ["starting, 0 of 2 arms ready", "starting, 1 of 2 arms ready"]
    assert told == [*starting, "warming up", "round 1 of 3", "round 2 of 3", "round 3 of 3", "comparing results"]


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
