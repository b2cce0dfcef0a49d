"""Code for a GPU on a machine without one.

Every CUDA tensor of the process is a FakeTensor, every question about the device is answered from a profile, and a
graph's compilation ends when its code has been written: nothing is ever launched. What had to be replaced in torch is
listed in `table.py`, one entry per reason; what Inductor would have measured on a device is assumed instead, and each
such choice is kept in `choices.py`. The result stands in `deviceless.json` beside a graph's artifacts (`record.py`).

The process is of no use for computing afterwards, so this runs in captured child processes only.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from inductor_audit_inside.request import load_request


def wanted() -> bool:
    """Whether this capture is one for a device that is not there."""
    return (load_request() or {}).get("profile") is not None


def on_torch(torch: ModuleType) -> None:
    """Torch has been imported, and nothing else of the program's has run since."""
    request = load_request() or {}
    if not (wanted() or request.get("codegen_only")):
        return
    from inductor_audit_inside import waiting
    from inductor_audit_inside.deviceless import refusals, table

    table.select(torch)
    waiting.after_import(dict.fromkeys(table.modules(), "deviceless.table:install"))
    if wanted():
        refusals.explain_at_exit()


def on_graph(folder: str | None) -> None:
    """A graph has been compiled into this debug folder."""
    if wanted():
        from inductor_audit_inside.deviceless import record

        record.save(folder)


def process_facts() -> dict[str, Any]:
    """What the record of this process says: patches that failed, and the operators that ended the program."""
    if not wanted():
        return {}
    from inductor_audit_inside.deviceless import refusals, table

    failed = [patch.fact() for patch in table.chosen() if patch.error is not None]
    return {"patches_failed": failed, "refusals": list(refusals.REFUSALS)}
