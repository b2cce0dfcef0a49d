"""What the capturing parent asks of this process: a JSON file that an environment variable names."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

VARIABLE = "INDUCTOR_AUDIT_REQUEST"
_loaded: dict[str, Any] = {}


def load_request() -> dict[str, Any] | None:
    """The request (`folder`, `settings`, `switches`, `probe_cache`), or None in a process that nobody captures."""
    path = os.environ.get(VARIABLE)
    if not path:
        return None
    if not _loaded:
        _loaded.update(json.loads(Path(path).read_text(encoding="utf-8")))
        _loaded["folder"] = str(Path(path).parent)
    return _loaded
