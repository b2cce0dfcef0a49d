"""How an error looks: where, what was expected, the line with a caret, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType
from rich.text import Text

from analyzer.errors import AnalyzerError, ArtifactError
from analyzer.views.text import headed, plain

BEFORE = 50
AFTER = 20
"""Characters of a long line that are shown before and after the caret."""


@dataclass(frozen=True, slots=True)
class ErrorView:
    """An error for standard error."""

    error: AnalyzerError

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        where = f"{self.error.location}: " if isinstance(self.error, ArtifactError) else ""
        message = "\n".join(plain(line) for line in (where + self.error.message).splitlines())
        yield headed("error: ", message, "bold red")
        if isinstance(self.error, ArtifactError) and self.error.excerpt:
            yield from _excerpt(self.error.excerpt, self.error.location.column)
        if self.error.hint:
            yield headed("next: ", plain(self.error.hint), "bold cyan")


def _excerpt(line: str, column: int) -> Iterator[Text]:
    """The line, cut round the column when long; the caret counts what the eye sees, not what the file holds."""
    start = max(0, column - 1 - BEFORE)
    left, right = plain(line[start : column - 1]), plain(line[column - 1 : column - 1 + AFTER])
    lead = "…" if start else ""
    tail = "…" if len(line) > column - 1 + AFTER else ""
    shown = Text(f"    {lead}{left}", no_wrap=True)
    caret = Text(" " * shown.cell_len, no_wrap=True).append("^", style="bold red")
    yield shown.append(right + tail)
    yield caret
