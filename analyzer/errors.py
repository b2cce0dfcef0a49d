"""Every error that a user can see descends from `AnalyzerError`; the command line turns each into exit code 2."""

from __future__ import annotations

from analyzer.model import Location


class AnalyzerError(Exception):
    """The tool could not do what was asked. `hint` is the next step to take."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class ArtifactError(AnalyzerError):
    """An artifact that cannot be read: says where (`location`), what was expected, and shows the line."""

    def __init__(self, location: Location, message: str, excerpt: str = "", hint: str | None = None) -> None:
        super().__init__(message, hint)
        self.location = location
        self.excerpt = excerpt

    def __str__(self) -> str:
        head = f"{self.location}: {self.message}"
        if not self.excerpt:
            return head
        return f"{head}\n    {self.excerpt}\n    {' ' * (self.location.column - 1)}^"


class CaptureError(AnalyzerError):
    """A run that could not be started or left nothing to analyze."""


class UsageError(AnalyzerError):
    """A request that makes no sense: an unknown ablation, graph or configuration key."""
