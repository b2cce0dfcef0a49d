"""What a capture says, on standard error: that it goes on, what it left, what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console, ConsoleOptions, RenderableType
from rich.text import Text

from analyzer.capture import CaptureResult, Progress
from analyzer.views.text import counted, headed, mentioned, plain

EVERY_S = 10.0
"""Seconds between two lines of progress, unless a graph was finished."""


@dataclass(slots=True)
class ProgressLines:
    """Prints a line now and then, on terminals only.

    Whole lines, no spinner: the captured script writes to the same terminal.
    """

    console: Console
    _told_s: float = field(default=0.0, init=False)
    _graphs: int = field(default=0, init=False)

    def __call__(self, progress: Progress) -> None:
        """Takes note of how far the capture is."""
        if progress.graphs == self._graphs and progress.elapsed_s - self._told_s < EVERY_S:
            return
        self._told_s, self._graphs = progress.elapsed_s, progress.graphs
        if self.console.is_terminal:
            done = f"{progress.elapsed_s:.0f} s, {counted(progress.graphs, 'graph')} so far"
            self.console.print(headed("capturing: ", done, "dim"))


@dataclass(frozen=True, slots=True)
class CaptureView:
    """What a capture left, and what to do next."""

    result: CaptureResult

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        manifest, folder = self.result.manifest, plain(_near(self.result.folder))
        about = mentioned(
            [
                f"torch {manifest.torch}" if manifest.torch else "",
                manifest.device or "",
                f"{manifest.duration_s:.1f} s" if manifest.duration_s is not None else "",
                ", ".join(manifest.ablations),
            ]
        )
        yield headed(f"captured {counted(len(manifest.graphs), 'graph')} ", f"in {folder}  ({plain(about)})")
        for finding in self.result.findings:
            yield headed(f"  {plain(finding.kind)}: ", plain(finding.message), "bold yellow")
            if finding.hint:
                yield Text(f"    {plain(finding.hint)}")
        if manifest.graphs and not self.result.findings:
            yield headed("next: ", f"inductor-audit report {folder}", "bold cyan")


def _near(folder: Path) -> str:
    """The folder as seen from here, when it lies below."""
    here = Path.cwd()
    return str(folder.relative_to(here)) if folder.is_relative_to(here) else str(folder)
