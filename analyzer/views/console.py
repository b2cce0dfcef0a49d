"""The consoles that the command line prints to."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import NoReturn

from rich.console import Console, RenderableType
from rich.pager import Pager
from rich.theme import Theme

PALETTE = {
    "dim": "#767676",
    "green": "#008800",
    "yellow": "#b06000",
    "red": "#ec0000",
    "cyan": "#008488",
    "magenta": "#cb22cb",
}
"""The views' colours: as far from white as from black, because nobody tells a program which one it prints on."""

_THEME = Theme(
    {
        f"{before}{name}{after}": f"{before}{color}{after}"
        for name, color in PALETTE.items()
        for before in ("", "bold ")
        for after in ("", " italic")
    }
)


class _PipeConsole(Console):
    """Leaves a closed pipe to the command line, which knows the exit code; rich would end the process itself."""

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError


class _Paged(Pager):
    """Rich's idea of a pager: an object."""

    def __init__(self, show_pages: Callable[[str], None]) -> None:
        self._show_pages = show_pages

    def show(self, content: str) -> None:
        """Hands the text over and waits until it was read."""
        self._show_pages(content)


def make_console(no_color: bool = False, stderr: bool = False) -> Console:
    """A console without markup, highlighting and emoji codes; plain when asked for or when NO_COLOR is set.

    NO_COLOR is taken at its word: no bold and no links either, so that what is left is text alone.
    """
    stream = sys.stderr if stderr else sys.stdout
    _never_fail_on_encoding(stream)
    console = _PipeConsole(file=stream, markup=False, highlight=False, emoji=False, soft_wrap=False, theme=_THEME)
    if no_color or os.environ.get("NO_COLOR"):
        console = _PipeConsole(file=stream, markup=False, highlight=False, emoji=False, color_system=None)
    return console


def show(console: Console, view: RenderableType, pages: Callable[[str], None] | None = None) -> None:
    """Prints a view, or hands its text to `pages` if somebody is there to turn them.

    Links stay out of a pager: old ones print their escapes.
    """
    if pages is None or not console.is_terminal:
        console.print(view)
        return
    with console.pager(_Paged(pages), styles=console.color_system is not None):
        console.print(view)


def _never_fail_on_encoding(stream: object) -> None:
    """An arrow that a terminal's encoding lacks becomes a question mark, not a traceback."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")
