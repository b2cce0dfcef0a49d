"""What the laboratory notes for its next call: JSON files with a version, each written in one step."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def read_state(path: Path, schema: int) -> dict[str, Any]:
    """Empty where there is none, or one that is damaged or of another version."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and found.get("schema_version") == schema else {}


def write_state(path: Path, schema: int, state: Mapping[str, Any]) -> None:
    """An interruption leaves the old state or the new one."""
    fresh = path.with_name(f".{path.name}.fresh")
    fresh.write_text(json.dumps({"schema_version": schema, **state}) + "\n", encoding="utf-8")
    fresh.replace(path)
