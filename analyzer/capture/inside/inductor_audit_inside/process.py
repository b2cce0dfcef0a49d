"""The record of this process: which torch, which graphs, what the caches did. Written early and often, since a crash,
`os._exit` or a time limit leaves no chance to write it later.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

from inductor_audit_inside import deviceless
from inductor_audit_inside.notes import NOTES, guarded
from inductor_audit_inside.request import load_request
from inductor_audit_inside.settings import APPLIED
from inductor_audit_inside.switches import INSTALLED

_started = time.time_ns()
_graphs: list[dict[str, Any]] = []


def on_torch(module: ModuleType) -> None:
    """Torch has been imported: this process may compile."""
    atexit.register(_at_exit)
    os.register_at_fork(after_in_child=_after_fork)
    deviceless.on_torch(module)
    write(finished=False)


def _after_fork() -> None:
    """A forked child is a process of its own; its parent's graphs are not its graphs."""
    global _started  # noqa: PLW0603
    _started = time.time_ns()
    _graphs.clear()


def on_graph(folder: str | None, record: dict[str, Any]) -> None:
    """A graph has been compiled, or has failed to."""
    if record["parent"] is None:
        entry = {"folder": folder, "complete": record["complete"], "failure": record["failure"]}
        _graphs[:] = [known for known in _graphs if folder is None or known["folder"] != folder]
        _graphs.append(entry)
    write(finished=False)


def _at_exit() -> None:
    with guarded("process record"):
        write(finished=True)


def write(finished: bool) -> None:
    """Write the record anew, in one step."""
    request = load_request()
    if request is None:
        return
    folder = Path(request["folder"]) / "processes"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{os.getpid()}-{_started}.json"
    fresh = file.with_suffix(".tmp")
    fresh.write_text(json.dumps(_facts(finished), default=str), encoding="utf-8")
    fresh.replace(file)


def _facts(finished: bool) -> dict[str, Any]:
    return {
        "pid": os.getpid(),
        "parent_pid": os.getppid(),
        "started_ns": _started,
        "command": list(sys.orig_argv),
        "executable": sys.executable,
        "python": sys.version.split()[0],
        "role": "compile_worker" if any("compile_worker" in part for part in sys.orig_argv) else "program",
        "finished": finished,
        "graphs": list(_graphs),
        "settings_applied": list(APPLIED),
        "switches_installed": list(INSTALLED),
        "notes": list(NOTES),
        **deviceless.process_facts(),
        **_torch_facts(),
    }


def _torch_facts() -> dict[str, Any]:
    version = sys.modules.get("torch.version")
    facts = {"torch": getattr(version, "__version__", None), "torch_git": getattr(version, "git_version", None)}
    facts["device"] = _device(sys.modules.get("torch"))
    facts["counters"] = _counters()
    return facts


def _device(torch: Any) -> str | None:
    """The GPU if the program has initialized it; asking earlier would initialize it."""
    cuda = getattr(torch, "cuda", None)
    if cuda is None or not hasattr(cuda, "is_initialized"):
        return None
    if not cuda.is_initialized():
        return "cpu"
    return f"{cuda.get_device_name()} (assumed)" if deviceless.wanted() else str(cuda.get_device_name())


def _counters() -> dict[str, dict[str, int]]:
    """torch._dynamo.utils.counters: all that a cache hit leaves behind."""
    counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", None) or {}
    groups = ("frames", "stats", "inductor", "aot_autograd", "aot_autograd_cache", "fxgraph_cache", "graph_break")
    return {name: {str(key): int(value) for key, value in dict(counters.get(name, {})).items()} for name in groups}
