"""Measures all arms of a script, in sessions with new processes, and keeps the samples.

A round is a few calls of every graph of one arm on the inputs that the script passed. What is measured is another run
of each arm than the audited one; that it is the same code is checked, not assumed.
"""

from __future__ import annotations

import platform
import random
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from analyzer.lab.records import Agreement, ArmSamples, ArmSpec, Measuring, OnStep, Script, SessionSamples
from analyzer.lab.run import SEED, STATE_FOLDER, ArmTask
from analyzer.lab.session import Session
from analyzer.lab.state import read_state, write_state
from analyzer.words import counted

_SCHEMA = 3


@dataclass(frozen=True, slots=True)
class TimingTask:
    """The fine arms of one script, baselines first. Each is measured in `rounds` rounds of each of some processes.

    `jobs`: processes that are started at a time. While any is measured, all others wait.
    """

    arms: tuple[ArmTask, ...]
    rounds: int
    processes: int = 5
    jobs: int = 1

    @property
    def script(self) -> Script:
        """What is measured."""
        return self.arms[0].script

    @property
    def file(self) -> Path:
        """Where the samples are kept."""
        return self.arms[0].folder / STATE_FOLDER / "timing.json"

    @property
    def keys(self) -> dict[str, Any]:
        """What the samples depend on: a change of anything measures all arms anew."""
        arms = {arm.spec.name: arm.key for arm in self.arms}
        return {"arms": arms, "rounds": self.rounds, "machine": platform.node()}


Samples = dict[str, ArmSamples]


def kept_samples(task: TimingTask) -> Samples | None:
    """What earlier calls measured, when that is all and nothing has changed since."""
    sessions = _kept(task)
    return _by_arm(task, sessions) if len(sessions) == task.processes else None


def time_arms(task: TimingTask, progress: OnStep | None = None) -> Samples:
    """Samples of every arm; one that cannot be measured has a failure instead, and the others go on.

    Each session is kept as soon as it has ended: an interruption costs one of them.
    """
    sessions = _kept(task)
    while len(sessions) < task.processes:
        sessions.append(_session(task, sessions, progress))
        _keep(task, sessions)
    for arm in task.arms:
        shutil.rmtree(arm.state(".cache"), ignore_errors=True)
    return _by_arm(task, sessions)


def _session(task: TimingTask, before: Sequence[SessionSamples], progress: OnStep | None) -> SessionSamples:
    """New processes, measured, compared and ended."""

    def tell(doing: str) -> None:
        if progress is not None:
            progress(Measuring(len(before) + 1, task.processes, doing))

    failed, order = _failures(before), random.Random(SEED + len(before))  # noqa: S311 - an order, no secret
    with _scratch() as scratch:
        session = Session([arm for arm in task.arms if arm.spec.name not in failed], scratch, tell)
        try:
            session.start(task.jobs, order)
            session.measure(task.rounds, order)
            session.compare()
        finally:
            session.close()
        session.check_code()
        return session.samples()


def _failures(sessions: Sequence[SessionSamples]) -> dict[str, str]:
    """The arms that failed in any session."""
    return {name: why for session in sessions for name, why in session.failures.items()}


def _by_arm(task: TimingTask, sessions: Sequence[SessionSamples]) -> Samples:
    failures = _failures(sessions)
    return {arm.spec.name: _arm_samples(arm.spec, sessions, failures.get(arm.spec.name)) for arm in task.arms}


def _arm_samples(spec: ArmSpec, sessions: Sequence[SessionSamples], failure: str | None) -> ArmSamples:
    name = spec.name
    measured = [session.rounds.get(name, {}) for session in sessions if failure is None]
    rounds = {
        graph: tuple(tuple(session.get(graph, ())) for session in measured)
        for graph in dict.fromkeys(graph for session in measured for graph in session)
    }
    calls = sessions[0].calls.get(name, {})
    return ArmSamples(rounds, calls, _agreement(spec, sessions), failure, _left_out(name, sessions))


def _left_out(name: str, sessions: Sequence[SessionSamples]) -> str | None:
    """How many sessions ran other code, and what the first of them says."""
    whys = [session.other_code[name] for session in sessions if name in session.other_code]
    if not whys:
        return None
    number = f"{len(whys)} of {counted(len(sessions), 'session')}"
    return f"{number}, where other code ran than the code that was audited: {whys[0]}"


def _agreement(spec: ArmSpec, sessions: Sequence[SessionSamples]) -> Agreement | None:
    """Of the first session in which both the arm and its baseline ran the code that was audited."""
    sound = (session for session in sessions if not session.other_code.keys() & {spec.name, spec.against})
    return next((session.agreements[spec.name] for session in sound if spec.name in session.agreements), None)


# ------------------------------------------------------------------------------------------------------- what is kept


def _kept(task: TimingTask) -> list[SessionSamples]:
    """The sessions of earlier calls; none when anything has changed since, or when the file is damaged."""
    found = read_state(task.file, _SCHEMA)
    if found.get("keys") != task.keys:
        return []
    try:
        return [_read(entry) for entry in found["sessions"]][: task.processes]
    except (ValueError, TypeError, KeyError, AttributeError):
        return []


def _read(entry: Mapping[str, Any]) -> SessionSamples:
    rounds = {
        name: {graph: tuple(map(float, values)) for graph, values in graphs.items()}
        for name, graphs in entry["rounds"].items()
    }
    calls = {name: {graph: int(number) for graph, number in one.items()} for name, one in entry["calls"].items()}
    agreements = {name: Agreement(**one) for name, one in entry["agreements"].items()}
    failures, other_code = ({name: str(why) for name, why in entry[key].items()} for key in ("failures", "other_code"))
    return SessionSamples(rounds, calls, agreements, failures, other_code)


def _keep(task: TimingTask, sessions: Sequence[SessionSamples]) -> None:
    write_state(task.file, _SCHEMA, {"keys": task.keys, "sessions": [asdict(one) for one in sessions]})


@contextmanager
def _scratch() -> Iterator[Path]:
    """A folder with a short name (see Session), deleted afterwards."""
    path = Path(tempfile.mkdtemp(prefix="ia-lab-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
