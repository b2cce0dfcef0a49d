"""The debug runs to measure on: captured once, kept in `build/bench`."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.measure import ROOT

PROGRAM = ROOT / "fixtures/programs/transformer.py"
STORE = ROOT / "build/bench"


@dataclass(frozen=True, slots=True)
class DumpFiles:
    """A run's files: the two IR dumps, all artifacts, and the structured trace log where torch writes one (2.13+)."""

    run: Path
    dumps: tuple[Path, ...]
    artifacts: tuple[Path, ...]
    log: Path | None

    @property
    def log_bytes(self) -> int:
        return self.log.stat().st_size if self.log else 0


def dump_files(run: Path) -> DumpFiles:
    folders = sorted(run.glob("**/torchinductor/model__*"))
    artifacts = tuple(
        path for folder in folders for path in sorted(folder.iterdir()) if path.name != "ground_truth.json"
    )
    dumps = tuple(path for path in artifacts if path.name.startswith("ir_p"))
    return DumpFiles(run, dumps, artifacts, next(iter(sorted(run.glob("**/tlparse/*.log"))), None))


def captured(layers: int) -> Path:
    """The run of a transformer; compiled now if it is not there yet."""
    run = STORE / f"layers-{layers}"
    if not run.is_dir():
        print(f"compiling {layers} layers once, into {run}", file=sys.stderr)
        _compile(layers, run.with_suffix(".part"))
        run.with_suffix(".part").rename(run)
    return run


def _compile(layers: int, run: Path) -> None:
    run.mkdir(parents=True, exist_ok=True)
    environment = {
        **os.environ,
        "TORCH_COMPILE_DEBUG": "1",
        "TORCH_COMPILE_DEBUG_DIR": str(run),
        "TORCHINDUCTOR_CACHE_DIR": str(STORE / "cache"),
        "TORCHINDUCTOR_FX_GRAPH_CACHE": "0",
        "TORCHINDUCTOR_AUTOGRAD_CACHE": "0",
    }
    command = [sys.executable, str(PROGRAM), "--layers", str(layers)]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
