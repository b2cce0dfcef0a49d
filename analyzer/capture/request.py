"""What a capture is asked to do, and what it reports."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from analyzer.artifacts.manifest import Finding, Manifest

Setting = tuple[str, str]
"""A dotted key, and a Python literal as text."""


@dataclass(frozen=True, slots=True)
class CaptureRequest:
    """A command to run under the hook.

    `command`: the whole command line, see `script_command` and `module_command`. `ablations`: names of the registry.
    `baseline_of`: ablations whose `baseline` settings this arm needs, without ablating them. `settings`: keys may leave
    out `torch._inductor.config.`. `out`: the run folder, a fresh one by default. `python`: the interpreter of the
    command, the running one by default. `timeout`: seconds. `env`: variables added to the environment. `cache`: a
    folder that keeps what compilers made (a private one, deleted afterwards, by default). `log`: a file that takes the
    command's output, which passes through by default.
    """

    command: tuple[str, ...]
    ablations: tuple[str, ...] = ()
    settings: tuple[Setting, ...] = ()
    baseline_of: tuple[str, ...] = ()
    out: Path | None = None
    python: str = sys.executable
    timeout: float | None = None
    cwd: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    target: str | None = None
    profile: Path | None = None
    codegen_only: bool = False
    ptx: bool = False
    cache: Path | None = None
    log: Path | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a running capture is: seconds since its start, graphs whose folder exists."""

    elapsed_s: float
    graphs: int


OnProgress = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class CaptureResult:
    """What a capture left. `exit_code` is the command's own; None when a signal ended it (the time limit does)."""

    folder: Path
    exit_code: int | None
    manifest: Manifest

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Everything that makes this run less than a good one, with its cause in one line."""
        return self.manifest.findings


def script_command(script: str, arguments: tuple[str, ...] = (), python: str = sys.executable) -> tuple[str, ...]:
    """`python script arguments...`: argv, `__main__` and sys.path[0] are Python's own doing."""
    return (python, script, *arguments)


def module_command(module: str, arguments: tuple[str, ...] = (), python: str = sys.executable) -> tuple[str, ...]:
    """`python -m module arguments...`."""
    return (python, "-m", module, *arguments)
