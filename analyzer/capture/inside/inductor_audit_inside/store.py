"""The record of each graph that Inductor lowers, and the sidecar file that it is written to.

Branches of control flow are graphs of their own in the debug folder of their parent: one sidecar holds a list.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from inductor_audit_inside.notes import NOTES, note

SCHEMA_VERSION = 1
FILE_NAME = "inductor_audit.json"
_ATTRIBUTE = "_inductor_audit_record"
_KEPT_FILES = 16
_files: dict[str, list[dict[str, Any]]] = {}

EMPTY_LISTS = ("scheduler_nodes", "groups", "kernels", "extern_calls", "allocated", "pooled", "reuses", "fusion_pairs")
"""Facts of scheduling and code generation: taken anew when code is generated a second time."""


def record_of(graph: Any) -> dict[str, Any]:
    """The record of a GraphLowering, made on first sight and kept on it."""
    record: dict[str, Any] | None = vars(graph).get(_ATTRIBUTE)
    if record is None:
        record = {"name": None, "parent": None, "complete": False, "failure": None, "lowerings": [], "births": {}}
        record.update({key: [] for key in EMPTY_LISTS})
        record["pairs_dropped"] = 0
        vars(graph)[_ATTRIBUTE] = record
    return record


def current() -> dict[str, Any]:
    """The record of the graph at hand (`V.graph`)."""
    from torch._inductor.virtualized import V

    return record_of(V.graph)


def forget_codegen(record: dict[str, Any]) -> None:
    """Drop what an earlier pass of code generation left (the C++ wrapper of some versions makes two)."""
    for key in ("kernels", "extern_calls", "allocated", "pooled", "reuses"):
        record[key].clear()


def debug_folder() -> str | None:
    """The folder of the graph's artifacts, None when Inductor writes none."""
    from torch._inductor.virtualized import V

    path = getattr(V.debug, "_path", None)
    return path if isinstance(path, str) else None


def save(record: dict[str, Any], folder: str | None) -> None:
    """Add the record to the sidecar of its folder and write that anew, in one step."""
    if folder is None:
        note("sidecar", "NoDebugFolder", "Inductor wrote no debug folder for a graph (trace.enabled is off)")
        return
    records = _files.setdefault(folder, [])
    if not any(known is record for known in records):
        records.append(record)
    while len(_files) > _KEPT_FILES:
        _files.pop(next(iter(_files)))
    _write(Path(folder) / FILE_NAME, records)


def _public(record: dict[str, Any]) -> dict[str, Any]:
    """Buffers carry their own reasons once they are described."""
    return {key: value for key, value in record.items() if key != "births" or "buffers" not in record}


def _write(file: Path, records: list[dict[str, Any]]) -> None:
    import torch

    document = {
        "schema_version": SCHEMA_VERSION,
        "torch": torch.__version__,
        "python": sys.version.split()[0],
        "pid": os.getpid(),
        "graphs": [_public(record) for record in records],
        "notes": NOTES,
    }
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    fresh.write_text(json.dumps(document, separators=(",", ":"), default=str) + "\n", encoding="utf-8")
    fresh.replace(file)
