"""What Inductor or the program would have measured or read on a device, and what was assumed instead.

A choice belongs to the compile in which it was made (torch._guards.TracingContext), and to one graph of it when it was
made while that graph was lowered. Choices outside any compile belong to the program: to every graph after it.
"""

from __future__ import annotations

from typing import Any

_ATTRIBUTE = "_inductor_audit_assumed"
_LIMIT = 1000
_of_program: list[dict[str, Any]] = []


def assume(kind: str, subject: str, chosen: str, basis: str) -> None:
    """Keep one choice. `kind`: autotune, pad_mm, sdpa or placeholder. Equal ones are counted, floods cut off."""
    kept = _bucket()
    entry = {"kind": kind, "subject": subject, "chosen": chosen, "basis": basis, "folder": _folder(kind)}
    for known in kept:
        if all(known[key] == value for key, value in entry.items()):
            known["count"] += 1
            return
    if len(kept) < _LIMIT:
        kept.append({**entry, "count": 1})


def _bucket() -> list[dict[str, Any]]:
    from torch._guards import TracingContext

    tracing = TracingContext.try_get()
    kept: list[dict[str, Any]] = _of_program if tracing is None else vars(tracing).setdefault(_ATTRIBUTE, [])
    return kept


def _folder(kind: str) -> str | None:
    """The graph that is being lowered. Kernels are chosen then; anything else is decided before."""
    if kind != "autotune":
        return None
    from inductor_audit_inside.store import debug_folder

    return debug_folder()


def of_graph(folder: str | None) -> list[dict[str, Any]]:
    """The choices that the graph with this debug folder rests on, as `deviceless.json` lists them."""
    found = list(_of_program)
    if _bucket() is not _of_program:
        found += [entry for entry in _bucket() if entry["folder"] in (None, folder)]
    return [{key: value for key, value in entry.items() if key != "folder"} for entry in found]
