"""Estimates of registers and spills: a step after the capture, in the same environment."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

_MODULE = "inductor_audit_inside.deviceless.ptx"
_TIMEOUT_S = 1800


def estimate(python: str, run: Path, variables: Mapping[str, str]) -> list[dict[str, str | None]]:
    """Write `ptx.json` beside every wrapper of a run; a finding for the manifest when that failed."""
    command = [python, "-W", "ignore", "-m", _MODULE, str(run)]
    without_dumps = {key: value for key, value in variables.items() if not key.startswith("TORCH_COMPILE_DEBUG")}
    try:
        done = subprocess.run(
            command, env=without_dumps, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return [_finding(str(error))]
    return [] if done.returncode == 0 else [_finding((done.stderr.strip().splitlines() or ["no message"])[-1])]


def _finding(why: str) -> dict[str, str | None]:
    return {"kind": "ptx-failed", "message": f"no estimates of registers and spills: {why}", "hint": None}
