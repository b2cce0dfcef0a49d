"""The view of a diff: settings and surroundings first, one line per graph, then the changes layer by layer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff

from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

from analyzer.compare.effective import short_key
from analyzer.diff.records import Change, ConfigChange, EnvironmentChange, GraphDiff, Kind, Layer, Repeated, RunDiff
from analyzer.diff.repeats import collapse
from analyzer.facts import Summary
from analyzer.model import Location
from analyzer.views.text import byte_text, counted, cut, headed, indented, listed, mentioned, more, plain, shortened

WIDE = 120
"""Columns from which on old and new stand side by side."""
CHANGES, CODE_LINES = 8, 12
"""Changes per layer and lines of code per change on the first screens; `--full` shows all."""

MARKS = {
    Kind.ADDED: ("+", "green"),
    Kind.REMOVED: ("-", "red"),
    Kind.CHANGED: ("~", "yellow"),
    Kind.SPLIT: ("<", "magenta"),
    Kind.MERGED: (">", "magenta"),
    Kind.MOVED: ("↕", "magenta"),
}
_CODE_STYLES = {"-": "red", "+": "green"}
_COUNTS = (
    ("realized", "realized"),
    ("inlined", "inlined"),
    ("scheduler nodes", "scheduler_nodes"),
    ("groups", "groups"),
    ("kernel calls", "kernel_calls"),
    ("loop nests", "loop_nests"),
)
_PLAIN_SUBJECTS = frozenset({"kernel", "kernel call", "group", "graph", "wrapper"})
_OBVIOUS = frozenset({"fate", "inlined", "storage", "node", "buffer", "target"})
"""Aspects that the values themselves tell."""
_COSTS = {"allocated_bytes": "allocated", "bytes_read": "read by kernels", "bytes_written": "written by kernels"}


@dataclass(frozen=True, slots=True)
class DiffView:
    """A diff as text. `summary` leaves the single changes out, `full` leaves nothing out."""

    diff: RunDiff
    summary: bool = False
    full: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        diff = self.diff
        yield headed("Diff ", f"{plain(diff.old)} → {plain(diff.new)}")
        yield from (_warning(change) for change in diff.environment if change.warning is not None)
        yield from _surroundings(diff)
        if not diff.graphs:
            yield Text("Neither run has a compiled graph.", style="bold yellow")
        for graph in diff.graphs:
            yield Text("")
            yield headline(graph)
            yield from (indented(headed("Note: ", plain(note), "bold yellow")) for note in graph.unknown)
            if not self.summary:
                yield from self._changes(graph, options.max_width)

    def _changes(self, graph: GraphDiff, width: int) -> Iterator[RenderableType]:
        for layer in Layer:
            repeated = collapse(change for change in graph.changes if change.layer == layer)
            shown, left = cut(repeated, CHANGES, self.full)
            if shown:
                yield indented(Text(layer, style="bold underline"))
                lines = (_side_by_side if width >= WIDE else _stacked)(shown, width - 4, self.full)
                yield from (indented(indented(line)) for line in (*lines, *more(left, "change")))


# -------------------------------------------------------------------------------------------------------- surroundings


def _warning(change: EnvironmentChange) -> Text:
    return headed("Unlike runs: ", plain(f"{change.warning} ({change.what}: {change.old} → {change.new})"), "bold red")


def _surroundings(diff: RunDiff) -> Iterator[RenderableType]:
    rows = [*(setting_cells(change) for change in diff.config), *(_surrounding(change) for change in diff.environment)]
    if not rows:
        yield indented(Text("Settings and surroundings are equal, as far as the runs record them."))
        return
    table = Table.grid(padding=(0, 2, 0, 0))
    for cells in rows:
        table.add_row(*(Text(plain(cell), overflow="fold") for cell in cells))
    yield indented(table)


def setting_cells(change: ConfigChange) -> tuple[str, str, str]:
    """Key, old and new value, and where that is written."""
    values = f"{change.old or 'default'} → {change.new or 'default'}"
    where = mentioned([_place(change.new_at or change.old_at), *([listed(change.graphs)] if change.graphs else [])])
    return short_key(change.key), values, where


def _place(at: Location | None) -> str:
    return f"{at.file.rsplit('/', 1)[-1]}:{at.line}" if at is not None else ""


def _surrounding(change: EnvironmentChange) -> tuple[str, str, str]:
    return change.what, f"{change.old} → {change.new}", ""


# -------------------------------------------------------------------------------------------------------------- graphs


def headline(graph: GraphDiff) -> Text:
    """A graph, and how much of it differs."""
    if graph.old is None or graph.new is None:
        name, run = (graph.new, "new") if graph.old is None else (graph.old, "old")
        return headed(plain(name or ""), f": only in the {run} run", "bold")
    name = plain(graph.old if graph.old == graph.new else f"{graph.old} → {graph.new}")
    if not graph.changes:
        return headed(name, ": equal" if not graph.unknown else ": no difference found")
    layers = Counter(change.layer for change in graph.changes)
    told = ", ".join(f"{layers[layer]} {layer}" for layer in Layer if layers[layer])
    changes = f"{counted(len(graph.changes), 'change')} ({told})"
    return headed(name, f": {mentioned([changes, *_counts(graph.before, graph.after)])}")


def _counts(before: Summary | None, after: Summary | None) -> Iterator[str]:
    for label, field in _COUNTS:
        old, new = getattr(before, field, None), getattr(after, field, None)
        if None not in (old, new) and old != new:
            yield f"{old:,} → {new:,} {label}"


# ------------------------------------------------------------------------------------------------------------- changes


def _side_by_side(repeated: Sequence[Repeated], width: int, full: bool) -> Iterator[RenderableType]:
    """Columns of equal widths in all layers, so that the eye can run down them."""
    title = width // 3
    table = Table.grid(padding=(0, 2, 0, 0))
    for part in (title, (width - title) // 2 - 2, (width - title) // 2 - 2):
        table.add_column(width=part, overflow="fold")
    for entry in repeated:
        old, new = values_text(entry.change, full)
        table.add_row(_title(entry, full), Text(old), Text(new))
        for line in _code(entry.change, full):
            table.add_row(Text(""), line)
    yield table


def _stacked(repeated: Sequence[Repeated], width: int, full: bool) -> Iterator[RenderableType]:
    """On one line where it fits, else old and new on lines of their own."""
    for entry in repeated:
        title = _title(entry, full)
        texts = [text for text in values_text(entry.change, full) if text]
        together = " → ".join(texts)
        if len(title) + len(together) + 2 <= width:
            yield title.append(f": {together}")
        else:
            yield title
            signs = "-+" if len(texts) == 2 else " "
            yield from (indented(headed(f"{sign} ", text, "")) for sign, text in zip(signs, texts, strict=True))
        yield from (indented(line) for line in _code(entry.change, full))


def values_text(change: Change, full: bool) -> tuple[str, str]:
    """What is the case in the old run and in the new one."""
    if change.layer == Layer.COST:
        return byte_text(int(change.old.text)), byte_text(int(change.new.text))
    limit = 10_000 if full else 100
    if change.aspect in ("members", "kernels"):
        return _members(change.old.ids, full), _members(change.new.ids, full)
    return shortened(plain(change.old.text), limit), shortened(plain(change.new.text), limit)


def _members(names: Sequence[str], full: bool) -> str:
    return listed(names, most=6, full=full, limit=40)


def _title(entry: Repeated, full: bool) -> Text:
    change = entry.change
    mark, style = MARKS[change.kind]
    title = Text.assemble((f"{mark} ", style), title_text(change, full), overflow="fold")
    if entry.count > 1:
        title.append(f"  ×{entry.count}", style="bold")
    if full and entry.others:
        title.append(f"  also {', '.join(_name(other, full) for other in entry.others)}", style="dim")
    return title


def title_text(change: Change, full: bool = True) -> str:
    """`cos (aten.cos.default) fate`, `op0_op1 split`, `allocated`."""
    if change.layer == Layer.COST:
        return _COSTS.get(change.aspect, change.aspect)
    if change.aspect == "members":
        verb = {Kind.SPLIT: "split", Kind.MERGED: "merged"}.get(change.kind, "regrouped")
        return f"{counted(len(change.old.ids), 'group')} {verb} into {len(change.new.ids)}"
    if change.aspect == "kernels":
        verb = {Kind.SPLIT: "split", Kind.MERGED: "merged"}.get(change.kind, "regrouped")
        return f"{counted(len(change.old.ids), 'kernel call')} {verb} into {len(change.new.ids)}"
    if change.aspect == "order":
        return f"{counted(len(change.old.ids), 'group')} moved in the order of execution"
    told = change.subject not in _PLAIN_SUBJECTS and change.aspect not in ("storage", "target", "node", "buffer")
    subject = f" ({plain(change.subject)})" if told else ""
    aspect = "" if change.aspect in _OBVIOUS else f" {change.aspect}"
    return f"{_name(change, full)}{subject}{aspect}"


def _name(change: Change, full: bool) -> str:
    """Whose change it is: the FX node's name where there is one, else Inductor's own id on each side."""
    names = [ids[-1] for ids in (change.old.ids, change.new.ids) if ids]
    return " → ".join(plain(name if full else shortened(name, 40)) for name in dict.fromkeys(names))


def _code(change: Change, full: bool) -> Iterator[Text]:
    """The lines of a body that differ, with one line around them."""
    shown, left = cut(code_lines(change), CODE_LINES, full)
    for line in shown:
        yield Text(plain(line), style=_CODE_STYLES.get(line[:1], "dim"), overflow="fold")
    yield from more(left, "line")


def code_lines(change: Change) -> list[str]:
    """Lines of the old code behind `-`, of the new behind `+`, and one line around them."""
    lines = list(unified_diff(change.old.code, change.new.code, lineterm="", n=1))[2:]
    return [line for line in lines if not line.startswith("@@")]
