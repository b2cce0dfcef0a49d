"""Task functions for the engine tests: other processes import them by name."""

from __future__ import annotations

import os
import time
from typing import Any


def squared(task: int, progress: Any = None) -> tuple[int, int]:
    """The square and the process that made it; 13 fails."""
    if task == 13:
        raise ValueError("first line\nthirteen is no task")
    return task * task, os.getpid()


def endless(task: int, progress: Any = None) -> int:
    """Goes on until it is told to stop."""
    while task:
        progress(None)
        time.sleep(0.01)
    return task
