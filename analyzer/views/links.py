"""Links from a printed place to its file, for terminals that open them (OSC 8).

Rich writes them to terminals only: a pipe, NO_COLOR and `TERM=dumb` get the text alone.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from rich.style import Style
from rich.text import Text

from analyzer.model import Location, SourceSite


def source_link(text: str, site: SourceSite | None) -> Text:
    """The text, leading to the line of the program. An artifact names that file: it must be absolute and exist."""
    return Text(text, style=_style(site.file, site.line, absolute=True)) if site is not None else Text(text)


def artifact_link(text: str, place: Location) -> Text:
    """The text, leading to the place in an artifact; one inside an archive has no file to open."""
    return Text(text, style=_style(place.file, place.line, absolute=False))


def _style(file: str, line: int, absolute: bool) -> Style:
    address = _address(file, absolute)
    return Style(link=f"{address}#{line}") if address is not None else Style.null()


@lru_cache(maxsize=4096)
def _address(file: str, absolute: bool) -> str | None:
    """`file:///home/user/model.py`; None unless it is a regular file of this machine.

    A network share is never asked for: a dump that names one must not make this machine sign in there.
    """
    if file.startswith(("//", "\\\\")):
        return None
    try:
        path = Path(file)
        if (absolute and not path.is_absolute()) or not path.is_file():
            return None
        return path.resolve(strict=True).as_uri()
    except (OSError, ValueError):
        return None
