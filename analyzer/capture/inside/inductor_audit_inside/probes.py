"""Remembers which vector ISA the C++ compiler can build for, across captured processes.

A private cache folder makes Inductor compile its ISA probes anew in every process (5 to 10 s). A yes depends on the
machine, the compiler and torch alone, not on the program, so it is kept in a file of ours. A no may mean that the
machine was busy: torch gives the built probe 60 s to be loaded, which imports torch (`VecISA._probe_load`, torch 2.13).
Then the kernels of this process are scalar and those of the next are not. So a no is asked again, and never kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from inductor_audit_inside.notes import guarded, note
from inductor_audit_inside.request import load_request
from inductor_audit_inside.wrap import around


def remember(module: ModuleType) -> None:
    """Answer `VecISA.check_build` from the file where it was asked before."""
    file = (load_request() or {}).get("probe_cache")
    probe = getattr(getattr(module, "VecISA", None), "check_build", None)
    if file and probe is not None:
        around(module.VecISA, "check_build", lambda original: _remembering(original, Path(file)))


def _remembering(original: Callable[..., Any], file: Path) -> Callable[..., Any]:
    def check_build(self: Any, code: str) -> Any:
        key = _key(self, code)
        if _read(file).get(key) is True:
            return True
        answer = original(self, code) or original(self, code)
        if not answer:
            note("vector ISA", "NotBuilt", f"{self} could not be built and loaded twice: kernels do without it")
            return answer
        with guarded("probe cache"):
            _write(file, {**_read(file), key: True})
        return answer

    return check_build


def _key(isa: Any, code: str) -> str:
    import torch

    where = (platform.node(), platform.machine(), torch.__version__, torch.__file__)
    text = "|".join((*where, _compiler(), str(isa), str(isa.build_arch_flags()), code))
    return hashlib.sha256(text.encode()).hexdigest()


def _compiler() -> str:
    """The compiler and its date: an update asks anew."""
    path = shutil.which(os.environ.get("CXX", "g++")) or ""
    return f"{path}@{os.stat(path).st_mtime_ns}" if path else "none"


def _read(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write(file: Path, answers: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_suffix(f".{os.getpid()}")
    fresh.write_text(json.dumps(answers), encoding="utf-8")
    fresh.replace(file)
