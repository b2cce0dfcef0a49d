"""Which processes belong to one launch: a run folder and a trace log are of one process each, told by its pid."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from analyzer.artifacts.trace_log import TraceLog

_PID = re.compile(r"-pid_(\d{1,12})$")


@dataclass(frozen=True, slots=True)
class Process:
    """A process of a launch. `folder` is its `run_*` folder, None where only its trace log is left."""

    folder: PurePosixPath | None
    pid: int | None
    rank: int | None


def processes_of(folders: Iterable[PurePosixPath], logs: Sequence[TraceLog]) -> list[Process]:
    """One per run folder in order of their start; where there is no such folder, one per process with a trace log."""
    ranks = {log.pid: rank_of(log) for log in logs}
    started = sorted(folders, key=lambda folder: folder.name)
    found = [Process(folder, pid, ranks.get(pid)) for folder in started for pid in [pid_of(folder)]]
    return found or [Process(None, pid, rank) for pid, rank in ranks.items() if pid is not None]


def pid_of(folder: PurePosixPath) -> int | None:
    """The pid at the end of a run folder's name."""
    match = _PID.search(folder.name)
    return int(match[1]) if match else None


def rank_of(log: TraceLog) -> int | None:
    """The rank that torch.distributed gave the log's process."""
    return next((compile_.key.rank for compile_ in log.compiles if compile_.key.rank is not None), None)


def newest_launch(processes: Sequence[Process]) -> list[Process]:
    """The newest process, with its peers by rank where it has one: going back, until a rank comes again."""
    newest: list[Process] = []
    for process in reversed(processes):
        ranks = [other.rank for other in newest]
        if newest and (process.rank is None or None in ranks or process.rank in ranks):
            break
        newest.append(process)
    return sorted(newest, key=lambda process: process.rank or 0)


def process_names(processes: Sequence[Process]) -> Mapping[int | None, str | None]:
    """For each pid how reports call its process; None for the only one."""
    if len(processes) < 2:
        return {process.pid: None for process in processes}
    return {
        process.pid: f"process {number}" if process.rank is None else f"rank {process.rank}"
        for number, process in enumerate(processes, 1)
    }
