"""Starts the capture hook in every Python process of a captured command.

The folder of this file is put first on PYTHONPATH, so that `site` imports it at start-up. A sitecustomize that the
user already has still runs. Neither torch nor anything slow is imported here.
"""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path

_HERE = str(Path(__file__).resolve().parent)


def _elsewhere() -> list[str]:
    return [entry for entry in sys.path if str(Path(entry or ".").resolve()) != _HERE]


def _start_hook() -> None:
    import inductor_audit_inside  # found because this folder is still on sys.path

    # Later sub-imports go through the package's own __path__, so the script sees the sys.path of plain Python.
    sys.path[:] = _elsewhere()
    inductor_audit_inside.start()


def _chain() -> None:
    spec = PathFinder.find_spec("sitecustomize", _elsewhere())
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


try:
    _start_hook()
finally:
    _chain()
