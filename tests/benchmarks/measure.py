"""CPU time and peak memory of a whole process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
TRIES = 3


@dataclass(frozen=True, slots=True)
class Cost:
    """`seconds` of CPU time, user and system; `megabytes` (MiB) resident at most."""

    seconds: float
    megabytes: float


def measure(command: Sequence[str], tries: int = TRIES) -> Cost:
    """The cheapest of some runs of a command. Raises CalledProcessError when it fails."""
    costs = [_once(command) for _ in range(tries)]
    return Cost(min(cost.seconds for cost in costs), min(cost.megabytes for cost in costs))


def _once(command: Sequence[str]) -> Cost:
    """Python may keep its bytecode, as it does for whoever installed the tool."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    quiet = subprocess.DEVNULL
    child = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=quiet, stderr=quiet)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, command)
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / unit)
