"""The consoles that the command line prints to."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from rich.console import Console


class _PipeConsole(Console):
    """Leaves a closed pipe to the command line, which knows the exit code; rich would end the process itself."""

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError


def make_console(no_color: bool = False, stderr: bool = False) -> Console:
    """A console without markup, highlighting and emoji codes; plain when asked for or when NO_COLOR is set.

    NO_COLOR is taken at its word: no bold either, so that what is left is text alone.
    """
    stream = sys.stderr if stderr else sys.stdout
    _never_fail_on_encoding(stream)
    console = _PipeConsole(file=stream, markup=False, highlight=False, emoji=False, soft_wrap=False)
    if no_color or os.environ.get("NO_COLOR"):
        console = _PipeConsole(file=stream, markup=False, highlight=False, emoji=False, color_system=None)
    return console


def _never_fail_on_encoding(stream: object) -> None:
    """An arrow that a terminal's encoding lacks becomes a question mark, not a traceback."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")
