"""Captures one arm, and keeps it for the next call: the task that every engine runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import rmtree
from typing import Any

from analyzer.capture import CaptureRequest, CaptureResult, OnProgress, Setting, capture, script_command
from analyzer.errors import AnalyzerError
from analyzer.lab.records import ArmRun, ArmSpec, Script, Status
from analyzer.lab.state import read_state, write_state

STATE_FOLDER = ".lab"
LAB_VARIABLE = "INDUCTOR_AUDIT_LAB"
SEED = 0
_SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Target:
    """What all arms are compiled for.

    `device` and `profile`: as `capture --target` and `--profile` take them, None for the machine at hand.
    `codegen_only`: kernels are written and not compiled, which is all that an audit reads.
    """

    device: str | None = None
    profile: Path | None = None
    codegen_only: bool = False

    @property
    def compiles(self) -> bool:
        """Whether kernels are compiled, so that the time this takes is known."""
        return self.device is None and not self.codegen_only


AT_HAND = Target()


@dataclass(frozen=True, slots=True)
class ArmTask:
    """An arm to capture into `folder/NAME`. `keep_cache`: its compiled kernels are needed again, to be timed.

    `key` tells whether an earlier capture is still good (keys.py).
    """

    script: Script
    spec: ArmSpec
    folder: Path
    cwd: Path
    python: str
    timeout: float | None = None
    settings: tuple[Setting, ...] = ()
    keep_cache: bool = False
    target: Target = AT_HAND
    key: str = ""

    @property
    def out(self) -> Path:
        """The run folder."""
        return self.folder / self.spec.name

    def state(self, ending: str) -> Path:
        """A file or folder of the laboratory's own about this arm."""
        return self.folder / STATE_FOLDER / f"{self.spec.name}{ending}"

    def request(self, out: Path, wish: Mapping[str, Any], log: str) -> CaptureRequest:
        """The capture of this arm, with what the laboratory asks of the process itself (inside/laboratory.py)."""
        return CaptureRequest(
            script_command(self.script.path, self.script.arguments, self.python),
            ablations=self.spec.ablations,
            baseline_of=self.spec.baseline_of,
            settings=self.settings,
            out=out,
            python=self.python,
            timeout=self.timeout,
            cwd=self.cwd,
            env={LAB_VARIABLE: json.dumps({"seed": SEED, **wish})},
            target=self.target.device,
            profile=self.target.profile,
            codegen_only=self.target.codegen_only,
            cache=self.state(".cache") if self.keep_cache else None,
            log=self.state(log),
        )


def finished(task: ArmTask) -> ArmRun | None:
    """The arm as an earlier call left it: only a fine one, and only if nothing that made it has changed."""
    state = read_state(task.state(".json"), _SCHEMA)
    if state.get("key") != task.key or state.get("status") != Status.FINE or not (task.out / "manifest.json").is_file():
        return None
    return ArmRun(task.spec, Status.FINE, task.out, None, state.get("duration_s"), _compile_s(task), kept=True)


def capture_arm(task: ArmTask, progress: OnProgress | None = None) -> ArmRun:
    """Captures an arm anew. What goes wrong is a status: nothing is raised but KeyboardInterrupt.

    A script that fails while its kernels are only written gets another chance: some ops run in compiled code alone.
    """
    run = _captured(task, progress)
    if run.status is Status.CRASHED and task.target.codegen_only and task.target.device is None:
        return _captured(replace(task, target=replace(task.target, codegen_only=False)), progress)
    return run


def _captured(task: ArmTask, progress: OnProgress | None) -> ArmRun:
    _forget(task)
    wish = {"compile_log": str(task.state(".compile.json").resolve())}
    try:
        result = capture(task.request(task.out, wish, ".log"), progress)
    except AnalyzerError as error:
        return _remember(task, ArmRun(task.spec, Status.IMPOSSIBLE, task.out, str(error)))
    status, why = _ending(result, task.state(".log"))
    duration = result.manifest.duration_s
    log = task.state(".log") if why else None
    return _remember(task, ArmRun(task.spec, status, task.out, why, duration, _compile_s(task), log=log))


def _forget(task: ArmTask) -> None:
    """Clear what an earlier call left of this arm; a folder that no call of ours began is left for capture to judge."""
    mine = task.state(".json").is_file()
    if mine and task.out.is_dir() and not task.out.is_symlink():
        rmtree(task.out)
    rmtree(task.state(".cache"), ignore_errors=True)
    task.state(".compile.json").unlink(missing_ok=True)
    task.state(".json").parent.mkdir(parents=True, exist_ok=True)
    if mine or not task.out.exists():
        write_state(task.state(".json"), _SCHEMA, {"key": None, "status": "begun"})


def _remember(task: ArmTask, run: ArmRun) -> ArmRun:
    state = {"key": task.key, "status": str(run.status), "why": run.why, "duration_s": run.duration_s}
    write_state(task.state(".json"), _SCHEMA, state)
    return run


def _ending(result: CaptureResult, log: Path) -> tuple[Status, str | None]:
    kinds = {finding.kind: finding.message for finding in result.findings}
    for kind in (Status.TIMEOUT, Status.INTERRUPTED, Status.CRASHED):
        if kind in kinds:
            said = _last_line(log) if kind is Status.CRASHED else None
            return kind, kinds[kind] + (f": {said}" if said else "")
    if not result.manifest.graphs:
        return Status.NO_GRAPHS, next(iter(kinds.values()), "compiled nothing")
    return Status.FINE, None


def _last_line(log: Path) -> str | None:
    """What the script said last: of a crash, the exception."""
    lines = log.read_text(encoding="utf-8", errors="replace")[-4000:].strip().splitlines() if log.is_file() else []
    return lines[-1][:200] if lines else None


def _compile_s(task: ArmTask) -> float | None:
    """None where kernels were only written: that is another time."""
    if not task.target.compiles:
        return None
    try:
        entries = json.loads(task.state(".compile.json").read_text(encoding="utf-8"))
        return float(sum(entry["seconds"] for entry in entries))
    except (OSError, ValueError, TypeError, KeyError):
        return None
