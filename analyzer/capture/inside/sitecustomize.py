"""Starts the capture hook in every Python process of a captured command.

The folder of this file is put first on PYTHONPATH, so that `site` imports it at start-up. A sitecustomize that the
user already has still runs. Neither torch nor anything slow is imported here: most processes never compile.
"""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _start_hook() -> None:
    import inductor_audit_inside  # found because this folder is still on sys.path

    # Later sub-imports go through the package's own __path__, so the script sees the sys.path of plain Python.
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != _HERE]
    inductor_audit_inside.start()


def _chain() -> None:
    """Import the user's own sitecustomize under its name; `site` then sees that one."""
    mine = sys.modules.pop("sitecustomize")
    try:
        import sitecustomize  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        sys.modules.setdefault("sitecustomize", mine)


try:
    _start_hook()
finally:
    _chain()
