"""The whole experiment: plan, capture what is not there yet, judge, measure, conclude."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from analyzer.capture import CaptureRequest, Setting
from analyzer.capture.assumed_device import assumed_device
from analyzer.capture.settings import ask_interpreter
from analyzer.errors import UsageError
from analyzer.lab.conclusions import Samples, conclude
from analyzer.lab.effects import require_scipy
from analyzer.lab.engines import Engine
from analyzer.lab.judging import Judge
from analyzer.lab.keys import arm_key
from analyzer.lab.plan import plan_arms
from analyzer.lab.records import (
    ArmResult,
    ArmRun,
    ArmSamples,
    ArmSpec,
    LabResult,
    Script,
    Status,
    Watcher,
)
from analyzer.lab.run import AT_HAND, STATE_FOLDER, ArmTask, Target, capture_arm, finished
from analyzer.lab.timing import TimingTask, kept_samples, time_arms


@dataclass(frozen=True, slots=True)
class LabRequest:
    """What is to be found out. `rounds`: of measuring in each of some processes, 0 for no times.

    `out`: the folder that keeps everything. `jobs`: processes that are started at a time to be measured.
    """

    scripts: tuple[Script, ...]
    ablations: tuple[str, ...]
    out: Path
    cwd: Path
    python: str
    factorial: bool = False
    rounds: int = 0
    processes: int = 5
    jobs: int = 1
    timeout: float | None = None
    settings: tuple[Setting, ...] = ()
    target: Target = AT_HAND


Runs = dict[str, ArmRun]


def experiment(request: LabRequest, engine: Engine, watch: Watcher) -> LabResult:
    """Everything about every script. UsageError before anything runs; a failing arm is a row like any other.

    A KeyboardInterrupt passes through; arms that were finished until then are kept.
    """
    factors = tuple(dict.fromkeys(request.ablations)) if request.factorial else ()
    if factors and not request.rounds:
        raise UsageError("a factorial experiment needs times", "Ask for some rounds.")
    notes = tuple(_about_target(request))
    if request.rounds:
        require_scipy()
    specs = plan_arms(request.ablations, request.factorial)
    tasks = {script.label: _tasks(request, script, specs) for script in request.scripts}
    runs = _captured(tasks, engine, watch)
    rows = {label: _judged(tasks[label], runs[label], watch) for label in tasks}
    samples = _measured(request, tasks, rows, engine, watch) if request.rounds else {}
    found = (conclude(script, rows[script.label], samples.get(script.label), factors) for script in request.scripts)
    return LabResult(tuple(replace(one, notes=notes) for one in found))


def _about_target(request: LabRequest) -> Iterator[str]:
    """What to know of the device. UsageError before anything runs: can there be times, and is there such a device?"""
    target = request.target
    if request.rounds and not target.compiles:
        what = "--codegen-only" if target.device is None else f"--target {target.device}"
        raise UsageError(f"nothing to time: with {what}, no kernel runs", "Leave --time and --factorial out.")
    ask = CaptureRequest((), python=request.python, target=target.device, profile=target.profile)
    device = assumed_device(ask)
    if device is not None:
        yield f"No device: code for {device.profile.figures['name']}, generated without one; nothing ran"
        yield from (f"Experimental: {doubt}" for doubt in device.support.notes)


def _tasks(request: LabRequest, script: Script, specs: Sequence[ArmSpec]) -> list[ArmTask]:
    torch = ask_interpreter(request.python).version
    folder = request.out if len(request.scripts) == 1 else request.out / script.label
    _claim(folder)
    where = (folder, request.cwd, request.python, request.timeout, request.settings, bool(request.rounds))
    tasks = [ArmTask(script, spec, *where, request.target) for spec in specs]
    return [replace(task, key=arm_key(task, torch)) for task in tasks]


def _claim(folder: Path) -> None:
    """A folder of ours, or an empty or new one."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file", "Choose a folder with --out.")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / STATE_FOLDER).is_dir():
        raise UsageError(f"{folder} is not empty, and no experiment", "Choose a fresh folder with --out.")
    (folder / STATE_FOLDER).mkdir(parents=True, exist_ok=True)


# ------------------------------------------------------------------------------------------------ capturing and judging


def _captured(tasks: Mapping[str, list[ArmTask]], engine: Engine, watch: Watcher) -> dict[str, Runs]:
    runs: dict[str, Runs] = {label: {} for label in tasks}
    missing = []
    for task in (task for some in tasks.values() for task in some):
        kept = finished(task)
        if kept is None:
            missing.append(task)
        else:
            runs[task.script.label][task.spec.name] = kept
        watch(task.script, task.spec.name, "waiting" if kept is None else "kept from an earlier call")
    for task, run in engine.each(capture_arm, missing) if missing else ():
        found = run if isinstance(run, ArmRun) else ArmRun(task.spec, Status.IMPOSSIBLE, task.out, _told(run))
        runs[task.script.label][task.spec.name] = found
        watch(task.script, task.spec.name, "captured" if found.status is Status.FINE else str(found.status))
    return runs


def _told(error: Exception) -> str:
    """The last line of an error: submitit's and Dask's carry a remote traceback."""
    lines = str(error).strip().splitlines()
    return lines[-1] if lines else type(error).__name__


def _judged(tasks: Sequence[ArmTask], runs: Runs, watch: Watcher) -> list[ArmResult]:
    judge = Judge({task.spec.name: runs[task.spec.name] for task in tasks})
    rows = []
    for task in tasks:
        row = judge.result(task.spec)
        rows.append(row)
        watch(task.script, task.spec.name, str(row.verdict or row.run.status))
    return rows


# ----------------------------------------------------------------------------------------------------------- measuring


def _measured(
    request: LabRequest,
    tasks: Mapping[str, list[ArmTask]],
    rows: Mapping[str, list[ArmResult]],
    engine: Engine,
    watch: Watcher,
) -> dict[str, Samples]:
    """One task per script: its arms must share a machine, and the clock."""
    found: dict[str, Samples] = {}
    todo = []
    for label, arms in tasks.items():
        timing = TimingTask(tuple(_measurable(arms, rows[label])), request.rounds, request.processes, request.jobs)
        kept = kept_samples(timing) if timing.arms else {}
        if kept is None:
            todo.append(timing)
            watch(timing.script, "", "measuring")
        else:
            found[label] = kept
    for timing, outcome in engine.each(time_arms, todo) if todo else ():
        failed = outcome if isinstance(outcome, Exception) else None
        none = {arm.spec.name: ArmSamples(failure=_told(failed)) for arm in timing.arms} if failed else {}
        found[timing.script.label] = none if isinstance(outcome, Exception) else outcome
        watch(timing.script, "", "measured")
    return found


def _measurable(arms: Sequence[ArmTask], rows: Sequence[ArmResult]) -> Iterator[ArmTask]:
    """Fine arms with a fine baseline; baselines first."""
    fine = {row.spec.name for row in rows if row.run.status is Status.FINE}
    chosen = [arm for arm in arms if arm.spec.name in fine and arm.spec.against in (None, *fine)]
    yield from sorted(chosen, key=lambda arm: arm.spec.against is not None)
