"""Asks the interpreter of the captured command what it has, in a process of its own: torch is never imported here."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from analyzer.errors import CaptureError

_TIMEOUT_S = 600
_HAS_TORCH = """
import importlib.util, sys
sys.path[:] = [entry for entry in sys.path if entry]
sys.exit(0 if importlib.util.find_spec("torch") else 77)
"""
_HAS_NONE = 77


def answer(python: str, program: str, *arguments: str) -> dict[str, Any]:
    """The JSON object in the last line that a program prints. CaptureError when it cannot import torch or be run.

    The time limit is for an import that hangs. On a busy machine with cold files an import takes minutes.
    """
    try:
        done = _run(python, program, arguments)
    except OSError as error:
        raise CaptureError(f"cannot run {python}: {error}", "Choose an interpreter with --python.") from error
    except subprocess.TimeoutExpired as error:
        message = f"{python} did not import torch within {_TIMEOUT_S / 60:.0f} minutes"
        raise CaptureError(message, f'Is the machine very busy? Try `{python} -c "import torch"`.') from error
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise CaptureError(
            f"{python} cannot import torch: {last}", "Choose an interpreter that has torch with --python."
        )
    try:
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError) as error:
        raise CaptureError(f"{python} is no Python interpreter", "Choose one with --python.") from error
    return found


def _run(python: str, program: str, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    command = [python, "-W", "ignore", "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)


def lacks_torch(python: str, cwd: Path, variables: Mapping[str, str]) -> bool:
    """Whether a program of this interpreter cannot find torch. It is looked for, not imported; False when in doubt."""
    try:
        done = subprocess.run(
            [python, "-c", _HAS_TORCH], cwd=cwd, env=dict(variables), capture_output=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == _HAS_NONE
