"""The structured trace logs of a run: what Dynamo did before Inductor began, which no graph folder tells."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from analyzer.artifacts import trace_log
from analyzer.artifacts.trace_log import TraceLog
from analyzer.load.launch import newest_launch, processes_of
from analyzer.load.locate import find, focus
from analyzer.load.recognize import is_trace_log
from analyzer.load.tree import Folder, Tree, is_archive, open_tree, read_file, text_of


def trace_logs(path: str | Path) -> tuple[TraceLog, ...]:
    """The logs of the processes that `load_run(path)` reads. Raises what opening the run raises."""
    path = Path(path)
    if path.is_file() and not is_archive(path):
        data = read_file(path)
        return (trace_log.parse(data, str(path)),) if is_trace_log(text_of(data)) else ()
    at = focus(path) if path.is_dir() else None
    tree: Tree = Folder(str(at.root)) if at else open_tree(path)
    found = find(tree.paths(), at.prefix if at else PurePosixPath())
    logs = tuple(trace_log.parse(tree.data(log), str(Path(tree.root) / log)) for log in found.traces)
    processes = processes_of(found.processes, logs)
    chosen = processes if found.manifest is not None else newest_launch(processes)
    pids = {process.pid for process in chosen}
    return tuple(log for log in logs if not pids or log.pid in pids)
