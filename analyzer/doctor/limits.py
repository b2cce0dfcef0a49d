"""How long paths may be: torch adds about 130 characters of run, graph and file names below its debug folder."""

from __future__ import annotations

import os
from pathlib import Path

BELOW = 130
"""`torch_compile_debug/run_<time>-pid_<pid>/torchinductor/<graph>/inductor_provenance_tracking_node_mappings.json`."""

_WINDOWS, _ELSEWHERE = 260, 4096
_LONGEST_NAME = 255


def too_long(folder: Path) -> str | None:
    """Why torch cannot write below this folder, None when it can."""
    limit = _WINDOWS if os.name == "nt" else _ELSEWHERE
    path = os.path.abspath(folder)
    longest = max(len(os.fsencode(part)) for part in path.split(os.sep))
    if longest > _LONGEST_NAME:
        return f"a folder name in the path has {longest} characters; the limit is {_LONGEST_NAME}"
    length = len(os.fsencode(path))
    if length + BELOW > limit:
        return f"the path has {length:,} characters; with the names that torch adds it passes the limit of {limit:,}"
    return None
