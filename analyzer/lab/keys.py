"""When is a finished arm still good? When everything that made it is the same: code, environment, torch, switches."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import platform
from collections.abc import Iterator, Mapping
from pathlib import Path

from analyzer.capture.environment import INSIDE, relevant
from analyzer.capture.profile import FOLDER
from analyzer.lab.records import Role
from analyzer.lab.run import ArmTask

_MOST_FILES = 500


def arm_key(task: ArmTask, torch: str, environment: Mapping[str, str] = os.environ) -> str:
    """A digest of all that decides what an arm compiles, for a version of torch.

    That is the script and the modules that it imports from beside it, its arguments, the interpreter and torch, the
    variables that matter to torch, the switches, the device that is assumed, and the hook itself.
    """
    spec, target = task.spec, task.target
    profiles = sorted(FOLDER.glob("*.json")) if target.device else []
    parts = {
        "sources": {str(path): _digest(path) for path in local_sources(task.cwd / task.script.path)},
        "arguments": task.script.arguments,
        "cwd": str(task.cwd),
        "python": task.python,
        "torch": torch,
        "machine": platform.machine(),
        "environment": relevant(environment) | {"PYTHONPATH": environment.get("PYTHONPATH", "")},
        "arm": (spec.role is Role.CONTROL, spec.ablations, spec.baseline_of, task.settings),
        "target": (target.device, target.codegen_only),
        "profiles": [_digest(path) for path in (*profiles, *((target.profile,) if target.profile else ()))],
        "hook": [_digest(path) for path in sorted(INSIDE.rglob("*.py"))],
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def local_sources(script: Path) -> tuple[Path, ...]:
    """The script and every module that it imports from its own folder, directly or through others, in order."""
    folder, waiting, found = script.parent, [script], dict[Path, None]()
    while waiting and len(found) < _MOST_FILES:
        path = waiting.pop()
        if path not in found:
            found[path] = None
            waiting += (file for name in _imported(path) for file in _files(folder, path.parent, name))
    return tuple(found)


def _imported(path: Path) -> Iterator[str]:
    """Dotted names of imports; of `from a import b` both `a` and `a.b`. A file that is no Python imports nothing."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = node.module or ""
            yield from (start, *(f"{start}.{alias.name}".strip(".") for alias in node.names))


def _files(*places: object) -> Iterator[Path]:
    """The files of a dotted name below the script's folder, or beside the importing file (relative imports)."""
    *folders, name = places
    for folder in dict.fromkeys(folders):
        at = Path(str(folder))
        for part in str(name).split(".") if name else ():
            at = at / part
            yield from (file for file in (at.with_suffix(".py"), at / "__init__.py") if file.is_file())
