"""Where things stand in a contract file: the TOML reader gives values without places, so the text is searched.

A look-up that fails gives the contract's header, or line 1: less exact, never wrong about the contract.
"""

from __future__ import annotations

import re

from analyzer.errors import ArtifactError
from analyzer.model import Location

_HEADER = re.compile(r"[ \t]*\[\[[ \t]*(?:contract|\"contract\"|'contract')[ \t]*\]\]")
_LONGEST = 160


class Places:
    """The text of a contract file, cut into contracts once."""

    def __init__(self, text: str, source: str) -> None:
        self.source = source
        self._lines = text.split("\n")
        self._starts = [number for number, line in enumerate(self._lines) if _HEADER.match(line)]

    @property
    def last_line(self) -> int:
        """The number of the last line with text."""
        return max((number for number, line in enumerate(self._lines, 1) if line.strip()), default=1)

    def _span(self, contract: int | None) -> tuple[int, int]:
        """The lines of the contract of this number, counted from 0: first, and the one after its last."""
        if contract is None or contract >= len(self._starts):
            return 0, len(self._lines)
        ends = (*self._starts[1:], len(self._lines))
        return self._starts[contract], ends[contract]

    def header(self, contract: int) -> Location:
        """The line of `[[contract]]`."""
        return Location(self.source, self._span(contract)[0] + 1)

    def key(self, contract: int | None, key: str) -> Location:
        """The place of a key in a contract, or anywhere."""
        first, end = self._span(contract)
        pattern = re.compile(rf"[ \t\[]*[\"']?(?P<key>{re.escape(key)})[\"']?[ \t]*(?:=|\.|\])")
        for number, line in enumerate(self._lines[first:end], first + 1):
            if match := pattern.match(line):
                return Location(self.source, number, match.start("key") + 1)
        return Location(self.source, first + 1)

    def item(self, contract: int, key: str, text: str) -> Location:
        """The place of a text in a key's value."""
        start, (_, end) = self.key(contract, key), self._span(contract)
        for number, line in enumerate(self._lines[start.line - 1 : end], start.line):
            columns = (line.find(quote + text + quote) for quote in ('"', "'"))
            column = next((column for column in columns if column >= 0), None)
            if column is not None:
                return Location(self.source, number, column + 2)
        return start

    def error(self, place: Location, message: str, hint: str | None = None) -> ArtifactError:
        """The error that shows this place."""
        lines = self._lines
        line = lines[place.line - 1] if place.line <= len(lines) else ""
        shown = line.rstrip("\r") if len(line) < _LONGEST and place.column <= len(line) + 1 else ""
        return ArtifactError(place, message, shown, hint)
