"""The JSON Schemas (draft 2020-12) of all documents that commands print; docs/json.md says what a version promises."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

NAMES = ("report", "explain", "audit", "diff", "ablate", "ablations", "check", "doctor", "export")
"""The commands that print a document."""


def schema(name: str) -> dict[str, Any]:
    """The schema of a command's document. KeyError for a command that prints none."""
    if name not in NAMES:
        raise KeyError(name)
    text = (files(__name__) / f"{name}.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded
