"""The list of ablations, and the page of a single one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

from analyzer.ablations import Ablation, Layer, Setting
from analyzer.compare.effective import short_key
from analyzer.views.text import headed, indented

_LAYERS = {
    Layer.FX: "the post-grad FX graph",
    Layer.LOWERING: "lowering",
    Layer.SCHEDULING: "scheduling",
    Layer.CODE: "the generated code",
}


@dataclass(frozen=True, slots=True)
class AblationsView:
    """Every ablation on a line, those of the PyTorch 2 paper's table marked."""

    ablations: Sequence[Ablation]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold underline")
        table.add_column("ablation", no_wrap=True)
        table.add_column("what it does")
        table.add_column("in the paper", no_wrap=True)
        for entry in self.ablations:
            table.add_row(Text(entry.name, style="bold"), Text(entry.summary), Text("yes" if entry.row else ""))
        yield table
        yield Text("")
        yield Text("In the paper: a row of Table 4 of the PyTorch 2 paper (ASPLOS 2024).")
        yield headed("next: ", "inductor-audit ablations NAME tells more about one", "bold cyan")


@dataclass(frozen=True, slots=True)
class AblationView:
    """One ablation: what it stands for, how it is switched, what it needs, and when torch drops it silently."""

    entry: Ablation

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        entry = self.entry
        yield headed(entry.name, f": {entry.summary}")
        for head, told in (
            ("Means", entry.reading),
            ("Paper's row", entry.row),
            ("Shows first in", _LAYERS[entry.layer]),
            ("Needs", entry.needs),
        ):
            if told:
                yield indented(headed(f"{head}: ", told))
        yield from _list("Settings of the ablated arm", [_setting_text(setting) for setting in entry.settings])
        yield from _list("Switches of the capture hook", entry.switches)
        yield from _list("Settings of both arms", [_setting_text(setting) for setting in entry.baseline])
        yield from _list("Does nothing when", entry.ignored_when)
        if entry.baseline:
            both = f"capture the other arm with --baseline-of {entry.name}: the feature is off by default"
            yield headed("next: ", both, "bold cyan")


def _list(head: str, items: Sequence[str]) -> Iterator[RenderableType]:
    if items:
        yield indented(Text(f"{head}:", style="bold"))
    for item in items:
        yield indented(indented(Text(item)))


def _setting_text(setting: Setting) -> str:
    since = f"from torch {setting.since[0]}.{setting.since[1]} on" if setting.since else ""
    until = f"before torch {setting.until[0]}.{setting.until[1]}" if setting.until else ""
    versions = " ".join(part for part in (since, until) if part)
    return f"{short_key(setting.key)} = {setting.value}{f' ({versions})' if versions else ''}"
