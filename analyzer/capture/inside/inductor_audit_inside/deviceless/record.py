"""`deviceless.json` beside a graph's artifacts: what stood in for the device, and what was assumed."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from inductor_audit_inside.deviceless import choices, device, table
from inductor_audit_inside.request import load_request

FILE_NAME = "deviceless.json"
SCHEMA_VERSION = 1


def save(folder: str | None) -> None:
    """Write it, in one step, for a graph that has been compiled."""
    if folder is None or not Path(folder).is_dir():
        return
    file = Path(folder) / FILE_NAME
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    fresh.write_text(json.dumps(_document(folder), indent=1) + "\n", encoding="utf-8")
    fresh.replace(file)


def _document(folder: str) -> dict[str, Any]:
    import torch

    request = load_request() or {}
    return {
        "schema_version": SCHEMA_VERSION,
        "profile": request["profile"]["name"],
        "device": device.properties().name,
        "figures": device.figures(),
        "torch": torch.__version__,
        "cuda_wheel": torch.backends.cuda.is_built(),
        "triton": getattr(sys.modules.get("triton"), "__version__", None),
        "support": request.get("support"),
        "patches": [patch.fact() for patch in table.chosen()],
        "choices": choices.of_graph(folder),
    }
