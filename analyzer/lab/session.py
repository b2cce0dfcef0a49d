"""One session of measuring: a live process for each arm, asked in rounds whose order is drawn anew each time."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from analyzer.capture import CaptureRequest
from analyzer.lab.agreement import agreement
from analyzer.lab.records import Agreement, SessionSamples
from analyzer.lab.run import ArmTask
from analyzer.lab.same_code import other_code
from analyzer.lab.workers import Worker, WorkerError

_DEFAULT_TIMEOUT_S = 1800.0


class Session:
    """The processes of the arms, and what they answer. An arm that fails drops out; the others go on.

    `rounds`: arm, graph, seconds per call in each round; `calls`: how often the script called each graph.
    """

    def __init__(self, arms: Sequence[ArmTask], folder: Path, tell: Callable[[str], None]) -> None:
        """`folder`: an empty one with a short name, since a Unix socket's path takes about 100 bytes.

        `tell` is called often with what is being done; it may raise KeyboardInterrupt.
        """
        self.calls: dict[str, dict[str, int]] = {}
        self.agreements: dict[str, Agreement] = {}
        self.failures: dict[str, str] = {}
        self.other_code: dict[str, str] = {}
        self.rounds: dict[str, dict[str, list[float]]] = {}
        self._arms = arms
        self._folder = folder
        self._tell = tell
        self._doing = ""
        self._workers: dict[str, Worker] = {}

    def _tick(self) -> None:
        self._tell(self._doing)

    def _living(self) -> list[ArmTask]:
        return [arm for arm in self._arms if arm.spec.name not in self.failures]

    def _ask(self, arm: ArmTask, what: str, **details: str) -> Any:
        """The answer, or None and the arm is out."""
        self._tick()
        try:
            return self._workers[arm.spec.name].ask(what, **details)
        except WorkerError as error:
            self.failures[arm.spec.name] = str(error)
            return None

    def start(self, jobs: int, order: random.Random) -> None:
        """Starts all processes, some at a time, and waits until each has run its script.

        The order is drawn too: the one that starts first gets other memory, and may be slower for as long as it lives.
        """
        arms = order.sample(self._arms, len(self._arms))
        for first in range(0, len(arms), jobs):
            some = arms[first : first + jobs]
            for arm in some:
                name = arm.spec.name
                request = partial(_measured, arm, self._out(arm))
                self._workers[name] = Worker(request, self._out(arm, ".s"), arm.timeout or _DEFAULT_TIMEOUT_S)
            for arm in some:
                self._connect(arm.spec.name)

    def _connect(self, name: str) -> None:
        self._doing = f"starting, {len(self.calls)} of {len(self._arms)} arms ready"
        try:
            self.calls[name] = self._workers[name].connect(self._tick)
        except (WorkerError, OSError, ValueError) as error:
            self.failures[name] = str(error)

    def _out(self, arm: ArmTask, ending: str = "") -> Path:
        return self._folder / f"{self._arms.index(arm)}{ending}"

    def compare(self) -> None:
        """Each arm beside its baseline, on the baseline's inputs."""
        self._doing = "comparing results"
        for arm in self._living():
            if arm.spec.against is None:
                self._ask(arm, "export", file=str(self._exported(arm.spec.name)))
        for arm in self._living():
            against = arm.spec.against
            if against is not None and self._exported(against).is_file():
                found = self._ask(arm, "check", file=str(self._exported(against)))
                if found is not None:
                    self.agreements[arm.spec.name] = agreement(found, self.calls[against])

    def _exported(self, name: str) -> Path:
        return self._folder / f"{name}.outputs"

    def measure(self, rounds: int, order: random.Random) -> None:
        """All rounds, after a warm-up. What drifts (clock, temperature, neighbours) then hits all arms alike."""
        self._doing = "warming up"
        for arm in self._living():
            self._ask(arm, "warm_up")
        for number in range(rounds):
            self._doing, arms = f"round {number + 1} of {rounds}", self._living()
            order.shuffle(arms)
            for arm in arms:
                for graph, seconds in (self._ask(arm, "round") or {}).items():
                    self.rounds.setdefault(arm.spec.name, {}).setdefault(graph, []).append(float(seconds))

    def close(self) -> None:
        """Ends all processes, at the same time."""
        for worker in self._workers.values():
            worker.hang_up()
        for worker in self._workers.values():
            worker.close()

    def check_code(self) -> None:
        """What ran other code than the code that was audited is not measured in this session."""
        for arm in self._living():
            if why := other_code(arm.out, self._out(arm)):
                self.other_code[arm.spec.name] = why
                self.rounds.pop(arm.spec.name, None)

    def samples(self) -> SessionSamples:
        """Everything that it found."""
        return SessionSamples(self.rounds, self.calls, self.agreements, self.failures, self.other_code)


def _measured(arm: ArmTask, out: Path, wish: Mapping[str, Any]) -> CaptureRequest:
    """The arm's capture once more, without a time limit of its own: it waits for the other arms."""
    return replace(arm, timeout=None, keep_cache=True).request(out, wish, ".timing.log")
