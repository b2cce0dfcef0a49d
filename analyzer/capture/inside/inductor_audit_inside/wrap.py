"""Wrapping functions of torch at run time, recognizably: `__inductor_audit__` says whether it records or switches."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from inductor_audit_inside.notes import guarded, note

Make = Callable[[Callable[..., Any]], Callable[..., Any]]
"""From the original function to the one that takes its place."""

RECORDS = "records"
SWITCHES = "switches"


def around(owner: Any, name: str, make: Make, role: str = RECORDS) -> bool:
    """Replace `owner.name` by `make(original)`. False, and a note, where this torch version has no such function."""
    original = getattr(owner, name, None)
    if original is None:
        note(f"wrap {getattr(owner, '__name__', owner)}.{name}", "AttributeError", "absent in this torch version")
        return False
    wrapper = functools.wraps(original)(make(original))
    wrapper.__inductor_audit__ = role  # type: ignore[attr-defined]
    setattr(owner, name, wrapper)
    return True


def before(owner: Any, name: str, record: Callable[..., None]) -> bool:
    """Call `record(*args, **kwargs)` before the original; its failure is noted and changes nothing."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def recorded(*args: Any, **kwargs: Any) -> Any:
            with guarded(f"before {name}"):
                record(*args, **kwargs)
            return original(*args, **kwargs)

        return recorded

    return around(owner, name, make)


def after(owner: Any, name: str, record: Callable[..., None]) -> bool:
    """Call `record(result, *args, **kwargs)` after the original."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def recorded(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            with guarded(f"after {name}"):
                record(result, *args, **kwargs)
            return result

        return recorded

    return around(owner, name, make)
