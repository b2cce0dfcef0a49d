"""Measures all arms of a script, in sessions with new processes, and keeps the samples.

A round is a few calls of every graph of one arm on the inputs that the script passed. What is measured is another run
of each arm than the audited one; that it is the same code is checked, not assumed.
"""

from __future__ import annotations

import json
import platform
import random
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from analyzer.capture import OnProgress
from analyzer.lab.records import Agreement, ArmSamples
from analyzer.lab.run import SEED, STATE_FOLDER, ArmTask
from analyzer.lab.session import Session

_SCHEMA = 1


@dataclass(frozen=True, slots=True)
class TimingTask:
    """The fine arms of one script, baselines first. Each is measured in `rounds` rounds of each of some processes.

    `jobs`: processes that are started at a time. While any is measured, all others wait.
    """

    arms: tuple[ArmTask, ...]
    rounds: int
    processes: int = 3
    jobs: int = 1

    @property
    def file(self) -> Path:
        """Where the samples are kept."""
        return self.arms[0].folder / STATE_FOLDER / "timing.json"

    @property
    def keys(self) -> dict[str, Any]:
        """What the samples depend on: a change of anything measures all arms anew."""
        arms = {arm.spec.name: arm.key for arm in self.arms}
        return {"arms": arms, "rounds": self.rounds, "processes": self.processes, "machine": platform.node()}


Samples = dict[str, ArmSamples]


def kept_samples(task: TimingTask) -> Samples | None:
    """What an earlier call measured, when nothing has changed since."""
    try:
        found = json.loads(task.file.read_text(encoding="utf-8"))
        if found.get("schema_version") != _SCHEMA or found.get("keys") != task.keys:
            return None
        return {name: _samples(entry) for name, entry in found["arms"].items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _samples(entry: Mapping[str, Any]) -> ArmSamples:
    rounds = {name: tuple(tuple(map(float, one)) for one in sessions) for name, sessions in entry["rounds"].items()}
    found = Agreement(**entry["agreement"]) if entry["agreement"] else None
    return ArmSamples(rounds, {name: int(number) for name, number in entry["calls"].items()}, found, entry["failure"])


def time_arms(task: TimingTask, progress: OnProgress | None = None) -> Samples:
    """Samples of every arm; one that cannot be measured has a failure instead, and the others go on."""
    order, sessions, failures = random.Random(SEED), list[Session](), dict[str, str]()  # noqa: S311 - an order, no secret
    for number in range(task.processes):
        arms = [arm for arm in task.arms if arm.spec.name not in failures]
        sessions.append(_session(task, arms, order, number == 0, progress))
        failures |= sessions[-1].failures
    samples = {arm.spec.name: _arm_samples(arm.spec.name, sessions, failures) for arm in task.arms}
    _keep(task, samples)
    for arm in task.arms:
        shutil.rmtree(arm.state(".cache"), ignore_errors=True)
    return samples


def _session(
    task: TimingTask, arms: Sequence[ArmTask], order: random.Random, first: bool, progress: OnProgress | None
) -> Session:
    """New processes, measured and ended. Results are compared once: they do not depend on the process."""
    with _scratch() as scratch:
        session = Session(arms, scratch, progress)
        try:
            session.start(task.jobs)
            if first:
                session.compare()
            session.measure(task.rounds, order)
        finally:
            session.close()
        session.check_code()
        return session


def _arm_samples(name: str, sessions: Sequence[Session], failures: Mapping[str, str]) -> ArmSamples:
    first = sessions[0]
    rounds = {
        graph: tuple(tuple(session.rounds[name][graph]) for session in sessions)
        for graph in (first.rounds.get(name, {}) if name not in failures else ())
    }
    return ArmSamples(rounds, first.calls.get(name, {}), first.agreements.get(name), failures.get(name))


def _keep(task: TimingTask, samples: Samples) -> None:
    arms = {name: asdict(one) for name, one in samples.items()}
    document = {"schema_version": _SCHEMA, "keys": task.keys, "arms": arms}
    fresh = task.file.with_suffix(".fresh")
    fresh.write_text(json.dumps(document) + "\n", encoding="utf-8")
    fresh.replace(task.file)


@contextmanager
def _scratch() -> Iterator[Path]:
    """A folder with a short name (see Session), deleted afterwards."""
    path = Path(tempfile.mkdtemp(prefix="ia-lab-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
