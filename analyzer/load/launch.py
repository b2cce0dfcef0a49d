"""Which processes belong to one launch: a run folder and a trace log are of one process each, told by its pid.

A launch has several processes under torch.distributed, whose logs name ranks, and where one process starts another that
compiles: a compile worker (torch/_inductor/compile_fx_subproc.py), a data loader's worker. Those run at the same time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from analyzer.artifacts.trace_log import TraceLog

_PID = re.compile(r"-pid_(\d{1,12})$")
_STARTED = re.compile(r"run_\d{4}_(\d\d)_(\d\d)_(\d\d)_(\d\d)_(\d\d)_(\d{6})-")


@dataclass(frozen=True, slots=True)
class Process:
    """A process of a launch. `folder` is its `run_*` folder, None where only its trace log is left.

    `span` is that of its log, None without one.
    """

    folder: PurePosixPath | None
    pid: int | None
    rank: int | None
    span: tuple[str, str] | None = None

    @property
    def started(self) -> str | None:
        """When it began to compile, as logs write it: `1130 02:33:15.432140`."""
        match = _STARTED.match(self.folder.name) if self.folder is not None else None
        if match is None:
            return self.span[0] if self.span is not None else None
        month, day, *time, fraction = match.groups()
        return f"{month}{day} {':'.join(time)}.{fraction}"

    def ran_when(self, other: Process) -> bool:
        """Whether its log shows that it had begun, and not ended, when the other one started."""
        at = other.started
        return self.span is not None and at is not None and self.span[0] <= at <= self.span[1]


def processes_of(folders: Iterable[PurePosixPath], logs: Sequence[TraceLog]) -> list[Process]:
    """One per run folder in order of their start; where there is no such folder, one per process with a trace log."""
    known = {log.pid: (rank_of(log), log.span) for log in logs}
    started = sorted(folders, key=lambda folder: folder.name)
    found = [Process(folder, pid, *known.get(pid, (None, None))) for folder in started for pid in [pid_of(folder)]]
    return found or [Process(None, pid, rank, span) for pid, (rank, span) in known.items() if pid is not None]


def pid_of(folder: PurePosixPath) -> int | None:
    """The pid at the end of a run folder's name."""
    match = _PID.search(folder.name)
    return int(match[1]) if match else None


def rank_of(log: TraceLog) -> int | None:
    """The rank that torch.distributed gave the log's process."""
    return next((compile_.key.rank for compile_ in log.compiles if compile_.key.rank is not None), None)


def newest_launch(processes: Sequence[Process]) -> list[Process]:
    """The newest process, all from the first one on that ran at the same time, and its peers by rank."""
    first = max(len(processes) - 1, 0)
    for at in range(first - 1, -1, -1):
        process, launch = processes[at], processes[first:]
        peer = at == first - 1 and _is_peer(process, launch)
        if peer or any(process.ran_when(other) for other in launch):
            first = at
    return sorted(processes[first:], key=lambda process: process.rank or 0)


def _is_peer(process: Process, launch: Sequence[Process]) -> bool:
    """Going back, the ranks are those of one launch until a rank comes again."""
    ranks = [other.rank for other in launch]
    return process.rank is not None and None not in ranks and process.rank not in ranks


def process_names(processes: Sequence[Process]) -> Mapping[int | None, str | None]:
    """For each pid how reports call its process; None for the only one."""
    if len(processes) < 2:
        return {process.pid: None for process in processes}
    return {
        process.pid: f"process {number}" if process.rank is None else f"rank {process.rank}"
        for number, process in enumerate(processes, 1)
    }
