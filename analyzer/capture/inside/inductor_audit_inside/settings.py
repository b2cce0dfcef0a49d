"""Applies the requested settings as soon as a configuration module of torch has been imported.

That is before the first line of user code that could see it, so the script's own assignments win, as usual.
"""

from __future__ import annotations

import ast
from types import ModuleType

from inductor_audit_inside.notes import note
from inductor_audit_inside.request import load_request

APPLIED: list[dict[str, str]] = []


def apply(module: ModuleType) -> None:
    """Set what the request asks of this configuration module; a refused setting becomes a note and stays unapplied."""
    request = load_request() or {}
    prefix = module.__name__ + "."
    for key, text in request.get("settings", []):
        if key.startswith(prefix):
            _apply_one(module, key, key[len(prefix) :], text)


def _apply_one(module: ModuleType, key: str, name: str, text: str) -> None:
    try:
        setattr(module, name, ast.literal_eval(text))
    except (AttributeError, ValueError, SyntaxError, TypeError, RuntimeError) as error:
        note(f"setting {key}", type(error).__name__, str(error))
    else:
        APPLIED.append({"key": key, "value": text})
