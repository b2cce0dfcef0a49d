"""Which buffers the wrapper allocates, and which take over memory (torch/_inductor/codegen/wrapper.py)."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from inductor_audit_inside.store import current
from inductor_audit_inside.wrap import before


def watch_wrapper(module: ModuleType) -> None:
    """Listen where the lines of the wrapper are printed: after memory planning, so what is printed is final."""
    for kind in list(vars(module).values()):
        if isinstance(kind, type) and kind.__module__ == module.__name__:
            if "make_buffer_allocation" in vars(kind):
                before(kind, "make_buffer_allocation", _on_allocation)
            if "make_buffer_reuse" in vars(kind):
                before(kind, "make_buffer_reuse", _on_reuse)


def watch_pools(module: ModuleType) -> None:
    """With memory planning on, buffers come out of pools."""
    before(module.AllocFromPoolLine, "codegen", _on_pool)


def _on_allocation(_wrapper: Any, buffer: Any, *_: Any, **__: Any) -> None:
    _add("allocated", buffer.get_name())


def _on_reuse(_wrapper: Any, old: Any, new: Any, *_: Any, **__: Any) -> None:
    _add("reuses", [new.get_name(), old.get_name()])


def _on_pool(line: Any, *_: Any) -> None:
    _add("pooled", line.node.get_name())


def _add(key: str, entry: Any) -> None:
    entries = current()[key]
    if entry not in entries:
        entries.append(entry)
