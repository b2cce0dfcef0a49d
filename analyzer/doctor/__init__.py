"""Why there is no dump, or a wrong one, and the one thing to do about it.

A cause is one entry in a registry: NOTHING and WRONG for a run, MACHINE for the environment.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from analyzer.doctor.machine import MACHINE, in_order, survey
from analyzer.doctor.nothing import NOTHING
from analyzer.doctor.records import Cause, Diagnosis, Level, Report, diagnose
from analyzer.doctor.scene import Scene, look
from analyzer.doctor.wrong import WRONG
from analyzer.words import counted

__all__ = [
    "CAUSES",
    "MACHINE",
    "Cause",
    "Diagnosis",
    "Level",
    "Report",
    "Scene",
    "examine_machine",
    "examine_run",
]

CAUSES: tuple[Cause[Scene], ...] = (*NOTHING, *WRONG)
"""What can be wrong with a run, the most important first."""


def examine_run(path: str | Path) -> Report:
    """What is wrong with a RUN argument. Never raises for what is wrong with it: that is the diagnosis."""
    scene = look(Path(path))
    run = scene.run
    facts = []
    if run is not None:
        facts.append(f"torch {run.torch_version}" if run.torch_version else "torch version unknown")
        facts.append(counted(len(run.graphs), "compiled graph"))
        facts.append(f"caches {run.cache_state}")
    return Report(str(path), tuple(diagnose(CAUSES, scene)), tuple(facts))


def examine_machine(
    python: str = sys.executable, variables: Mapping[str, str] | None = None, folder: Path | None = None
) -> Report:
    """What would keep a capture with this interpreter from making a dump."""
    machine = survey(python, os.environ if variables is None else variables, folder or Path.cwd())
    return Report(f"the environment of {python}", tuple(diagnose(MACHINE, machine)), tuple(in_order(machine)))
