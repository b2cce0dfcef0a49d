"""Runs the command, watches the clock, and writes the manifest."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from analyzer.artifacts import manifest as manifests
from analyzer.capture import environment, folder, ptx, settings, survey
from analyzer.capture.assumed_device import AssumedDevice, assumed_device
from analyzer.capture.request import CaptureRequest, CaptureResult, OnProgress, Progress
from analyzer.errors import CaptureError, UsageError

_POLL_S = 0.1
_GRACE_S = 5.0


@dataclass(frozen=True, slots=True)
class Ending:
    """How the command ended. `code` is subprocess's: negative for a signal."""

    code: int
    timed_out: bool = False
    interrupted: bool = False


def capture(request: CaptureRequest, progress: OnProgress | None = None) -> CaptureResult:
    """Run the command of a request under the hook and describe what it left.

    The command's output passes through unchanged. A command that fails is a finding, not an error. Raises UsageError
    for a request that makes no sense and CaptureError when the command cannot be started; nothing has run then.
    """
    if not request.command:
        raise UsageError("no command to capture", "Name a script, or a command after `--`.")
    plan = settings.plan(request)
    device = assumed_device(request)
    cwd = (request.cwd or Path.cwd()).resolve()
    command = _resolved(request, cwd)
    run = folder.prepare(request.out, _label(request.command), cwd)
    with _cache(request.cache) as cache:
        state = _write_request(run, plan, request, device)
        variables = environment.child_environment({**os.environ, **request.env}, run, cache, state)
        variables |= environment.WITHOUT_DEVICE if device is not None else {}
        start, began = datetime.now(timezone.utc), time.monotonic()
        child = _start(command, cwd, variables, request.log)
        ending = _watched(child, request.timeout, _reporter(run, progress))
        duration = time.monotonic() - began
        facts = survey.Ran(request, plan, start.isoformat(), duration, ending.code, variables, cwd, command[0])
        document = survey.survey(run, facts, ending.timed_out, ending.interrupted)
        document["findings"] += ptx.estimate(request.python, run, variables) if request.ptx else []
    text = json.dumps(document, indent=1) + "\n"
    (run / manifests.FILE_NAME).write_text(text, encoding="utf-8")
    shutil.rmtree(state.parent, ignore_errors=True)
    parsed = manifests.parse(text, str(run / manifests.FILE_NAME))
    return CaptureResult(run, parsed.exit_code, parsed)


def _label(command: tuple[str, ...]) -> str:
    """A folder name from a command: its script, module or program."""
    words = [word for word in command[1:] if not word.startswith("-")] if "python" in command[0] else []
    stem = Path((words or command)[0]).stem
    return "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in stem) or "run"


def _resolved(request: CaptureRequest, cwd: Path) -> tuple[str, ...]:
    """Find the program: beside the chosen interpreter first, so that `torchrun` is that environment's."""
    program, *arguments = request.command
    if os.sep in program:
        found = program if (cwd / program).exists() else None
    else:
        beside = str(Path(request.python).parent)
        found = shutil.which(program, path=os.pathsep.join((beside, os.environ.get("PATH", os.defpath))))
    if found is None:
        raise CaptureError(f"no such program: {program}", "Check the command, or choose an interpreter with --python.")
    return (found, *arguments)


@contextmanager
def _cache(kept: Path | None) -> Iterator[Path]:
    """A cache folder that no other run sees. Deleted afterwards, also when files appear meanwhile, unless kept."""
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
        yield kept.resolve()
        return
    path = Path(tempfile.mkdtemp(prefix="inductor-audit-cache-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _write_request(run: Path, plan: settings.Plan, request: CaptureRequest, device: AssumedDevice | None) -> Path:
    """What the hook reads in the child (inside/inductor_audit_inside/request.py)."""
    path = run / folder.REQUEST_FOLDER / "request.json"
    path.parent.mkdir()
    wish = {
        "settings": [list(setting) for setting in plan.settings],
        "switches": list(plan.switches),
        "probe_cache": str(environment.probe_cache({**os.environ, **request.env})),
        "codegen_only": request.codegen_only or device is not None,
        **(device.request() if device is not None else {}),
    }
    path.write_text(json.dumps(wish), encoding="utf-8")
    return path


def _start(command: tuple[str, ...], cwd: Path, variables: dict[str, str], log: Path | None) -> subprocess.Popen[bytes]:
    """In a session of its own, so that the whole process group can be ended; output passes through without a log."""
    try:
        if log is None:
            return subprocess.Popen(command, cwd=cwd, env=variables, start_new_session=True)
        with log.open("wb") as output:
            return subprocess.Popen(
                command, cwd=cwd, env=variables, start_new_session=True, stdout=output, stderr=subprocess.STDOUT
            )
    except OSError as error:
        raise CaptureError(f"cannot start {command[0]}: {error.strerror or error}") from error


def _reporter(run: Path, progress: OnProgress | None) -> OnProgress | None:
    """Fill in the number of graphs."""
    if progress is None:
        return None
    return lambda seen: progress(Progress(seen.elapsed_s, sum(1 for _ in folder.graph_folders(run))))


def _watched(child: subprocess.Popen[bytes], timeout: float | None, report: OnProgress | None) -> Ending:
    """Wait for the command; end its whole group on time-out and on Ctrl-C."""
    began = time.monotonic()
    try:
        while child.poll() is None:
            elapsed = time.monotonic() - began
            if timeout is not None and elapsed >= timeout:
                return Ending(_end_group(child), timed_out=True)
            if report is not None:
                report(Progress(elapsed, 0))
            _wait(child, timeout, elapsed)
    except KeyboardInterrupt:
        return Ending(_end_group(child, signal.SIGINT), interrupted=True)
    _end_stragglers(child)
    return Ending(child.returncode)


def _wait(child: subprocess.Popen[bytes], timeout: float | None, elapsed: float) -> None:
    pause = _POLL_S if timeout is None else max(0.0, min(_POLL_S, timeout - elapsed))
    try:
        child.wait(pause)
    except subprocess.TimeoutExpired:
        return


def _end_group(child: subprocess.Popen[bytes], first: signal.Signals = signal.SIGTERM) -> int:
    """Ask the group to stop, then stop it; the answer is how the command itself ended."""
    for number in (first, signal.SIGKILL):
        _signal_group(child, number)
        try:
            child.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            continue
        break
    _end_stragglers(child)
    return child.returncode if child.returncode is not None else -int(signal.SIGKILL)


def _end_stragglers(child: subprocess.Popen[bytes]) -> None:
    """Compile workers that outlive the command would go on writing into a folder that is being read."""
    _signal_group(child, signal.SIGKILL)


def _signal_group(child: subprocess.Popen[bytes], number: signal.Signals) -> None:
    try:
        os.killpg(child.pid, number)
    except (ProcessLookupError, PermissionError):
        return
