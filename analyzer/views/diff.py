"""The view of a diff: settings and surroundings first, one line per graph, then the changes layer by layer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import unified_diff

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.text import Text

from analyzer.compare.effective import short_key
from analyzer.diff.records import Change, ConfigChange, EnvironmentChange, GraphDiff, Kind, Layer, Repeated, RunDiff
from analyzer.diff.repeats import collapse
from analyzer.facts import Summary
from analyzer.model import Location
from analyzer.views.text import byte_text, counted, cut, headed, indented, listed, mentioned, more, plain, shortened

SCREEN = 40
"""Lines that a person sees at once."""
SETTINGS, GRAPHS = 6, 3
"""On the first screen: settings, and graphs told change by change or by their headlines."""
CODES = 2
"""Changes whose code the first screen shows; where there are more, none tells the whole."""


@dataclass(frozen=True, slots=True)
class _Amounts:
    """How much is told: graphs change by change, changes per layer, lines of code per change."""

    graphs: int = GRAPHS
    changes: int = 5
    code: int = 8


_AMOUNTS = (
    _Amounts(),
    _Amounts(code=4),
    _Amounts(changes=3),
    _Amounts(changes=3, code=4),
    _Amounts(changes=2, code=4),
    _Amounts(changes=2, code=0),
    _Amounts(changes=1, code=0),
    _Amounts(graphs=2, changes=1, code=0),
    _Amounts(graphs=1, changes=1, code=0),
)
"""The first that fits the screen is taken; every layer that changed keeps a line for each graph told."""
_LONG = re.compile(r"\b\w{25,}\b")
_GROUP = re.compile(r", in group [\w…]+")
_MANY = re.compile(r"\b((?:\w+, ){2}\w+)((?:, \w+){2,})")
_REUSED = re.compile(r"\(reuses the memory of \w+\)$")
"""What a line of the first screen cuts: names, also of groups, lists of names, and whose memory a value takes over."""

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
_LISTED = {"graphs": "graph", "members": "group", "kernels": "kernel call", "nodes": "node"}
"""Aspects whose change is which things stand in the place of which."""
_FOLLOWING = {"shapes": "shape", "dtypes": "dtype"}
"""Aspects of many nodes at once, which only follow from others."""
_NODES = frozenset({"nodes", *_FOLLOWING})
"""Aspects whose code is the nodes' names, and no body."""
_VERBS = {Kind.SPLIT: "split", Kind.MERGED: "merged", Kind.MOVED: "regrouped"}


@dataclass(frozen=True, slots=True)
class DiffView:
    """A diff as text. `summary` leaves the single changes out, `full` leaves nothing out."""

    diff: RunDiff
    summary: bool = False
    full: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        told = [_Told.of(graph, self.full, self.summary) for graph in self.diff.graphs if not _is_dull(graph)]
        for amounts in _AMOUNTS:
            parts = list(self._parts(told, options.max_width, amounts))
            fits = self.full or self.summary or len(console.render_lines(Group(*parts), options, pad=False)) <= SCREEN
            if fits:
                break
        yield from parts

    def _parts(self, told: Sequence[_Told], width: int, amounts: _Amounts) -> Iterator[RenderableType]:
        diff = self.diff
        yield headed("Diff ", f"{plain(diff.old)} → {plain(diff.new)}")
        yield from (_warning(change) for change in diff.environment if change.warning is not None)
        yield from _surroundings(diff, width, self.full)
        if not diff.graphs:
            yield Text("Neither run has a compiled graph.", style="bold yellow")
        yield from self._different(told, width, amounts)
        yield from self._equal([graph for graph in diff.graphs if _is_dull(graph)])

    def _different(self, told: Sequence[_Told], width: int, amounts: _Amounts) -> Iterator[RenderableType]:
        """The first ones change by change, further ones by their headlines."""
        detailed, _ = cut(told, amounts.graphs, self.full or self.summary)
        coded = sum(entry.coded for entry in detailed)
        lines = _Lines(width - 4, self.full, amounts if coded <= CODES else replace(amounts, code=0))
        for entry in detailed:
            yield Text("")
            yield headline(entry.graph)
            yield from (indented(headed("Note: ", plain(note), "bold yellow")) for note in entry.graph.unknown)
            yield from lines.changes(entry)
        yield from _further([entry.graph for entry in told[len(detailed) :]])

    def _equal(self, graphs: Sequence[GraphDiff]) -> Iterator[RenderableType]:
        """After what differs: few by name, many by their number."""
        named = self.full or len(graphs) <= GRAPHS
        for line in map(headline, graphs) if named else [headed(f"{counted(len(graphs), 'graph')}: ", "equal")]:
            yield Text("")
            yield line


@dataclass(frozen=True, slots=True)
class _Told:
    """A graph with its changes layer by layer, equal ones together; what the headline says of costs is left out."""

    graph: GraphDiff
    layers: Sequence[tuple[Layer, Sequence[Repeated]]] = ()

    @classmethod
    def of(cls, graph: GraphDiff, full: bool, summary: bool) -> _Told:
        """On the first screen graphs that were broken come first, then what occurs most often."""
        layers = []
        for layer in () if summary else Layer:
            entries = collapse(change for change in graph.changes if change.layer == layer)
            if entries and (full or layer != Layer.COST):
                rank = sorted(entries, key=lambda entry: (entry.change.aspect != "graphs", -entry.count))
                layers.append((layer, entries if full else rank))
        return cls(graph, layers)

    @property
    def coded(self) -> int:
        """Changes with lines of code to read."""
        return sum(bool(change.old.code) and change.aspect not in _NODES for change in self.graph.changes)


def _is_dull(graph: GraphDiff) -> bool:
    return graph.equal and not graph.unknown


def _further(graphs: Sequence[GraphDiff]) -> Iterator[RenderableType]:
    shown, left = cut(graphs, GRAPHS, full=False)
    yield from (Text(""),) if shown else ()
    yield from map(headline, shown)
    yield from more(left, "graph")


# -------------------------------------------------------------------------------------------------------- surroundings


def _warning(change: EnvironmentChange) -> Text:
    return headed("Unlike runs: ", plain(f"{change.warning} ({change.what}: {change.old} → {change.new})"), "bold red")


def _surroundings(diff: RunDiff, width: int, full: bool) -> Iterator[RenderableType]:
    rows = [*(_surrounding(change) for change in diff.environment if full or not change.warning)]
    rows += map(setting_cells, diff.config)
    if not diff.environment and not diff.config:
        yield indented(Text("Settings and surroundings are equal, as far as the runs record them."))
    shown, left = cut(rows, SETTINGS, full or len(rows) == SETTINGS + 1)
    limits = (10_000, 10_000, 10_000) if full else (48, 110, 60)
    cells = [[shortened(plain(cell), limit) for cell, limit in zip(row, limits, strict=True)] for row in shown]
    columns = [min(max((len(row[at]) for row in cells), default=0), 32) for at in (0, 1)]
    for name, value, place in cells:
        line = f"{name:{columns[0]}}  {value:{columns[1]}}"
        fits = full or len(line) + 2 + len(place) + 2 <= width
        yield indented(Text(f"{line}  {place}".rstrip() if fits else line.rstrip(), overflow="fold"))
    yield from map(indented, more(left, "difference"))


def setting_cells(change: ConfigChange) -> tuple[str, str, str]:
    """Key, old and new value, and where that is written."""
    values = f"{change.old or 'default'} → {change.new or 'default'}"
    where = mentioned([_place(change.new_at or change.old_at), *([listed(change.graphs)] if change.graphs else [])])
    return short_key(change.key), values, where


def _place(at: Location | None) -> str:
    return f"{shortened(at.file.rsplit('/', 1)[-1], 24)}:{at.line}" if at is not None else ""


def _surrounding(change: EnvironmentChange) -> tuple[str, str, str]:
    return change.what, f"{change.old} → {change.new}", ""


# -------------------------------------------------------------------------------------------------------------- graphs


def headline(graph: GraphDiff) -> Text:
    """A graph, and how much of it differs."""
    if graph.old is None or graph.new is None:
        name, run = (graph.new, "new") if graph.old is None else (graph.old, "old")
        return headed(plain(name or ""), f": only in the {run} run{_extent(graph.before or graph.after)}", "bold")
    name = plain(graph.old if graph.old == graph.new else f"{graph.old} → {graph.new}")
    if not graph.changes:
        return headed(name, ": equal" if not graph.unknown else ": no difference found")
    layers = Counter(change.layer for change in graph.changes)
    told = ", ".join(f"{layers[layer]} {layer}" for layer in Layer if layers[layer])
    changes = f"{counted(len(graph.changes), 'change')} ({told})"
    return headed(
        name, f": {mentioned([*_break(graph), changes, *_counts(graph.before, graph.after), *_bytes(graph)])}"
    )


def _break(graph: GraphDiff) -> Iterator[str]:
    """That it is one graph in one run, and several in the other."""
    for change in graph.changes:
        if change.aspect == "graphs":
            yield f"{len(change.old.ids)} → {counted(len(change.new.ids), 'graph')}"


def _extent(summary: Summary | None) -> str:
    """How much a graph without a counterpart is."""
    if summary is None or None in (summary.fx_nodes, summary.kernel_calls):
        return ""
    return f" ({counted(summary.fx_nodes, 'FX node')}, {counted(summary.kernel_calls, 'kernel call')})"


def _counts(before: Summary | None, after: Summary | None) -> Iterator[str]:
    for label, field in _COUNTS:
        old, new = getattr(before, field, None), getattr(after, field, None)
        if None not in (old, new) and old != new:
            yield f"{old:,} → {new:,} {label}"


def _bytes(graph: GraphDiff) -> Iterator[str]:
    for change in graph.changes:
        if change.layer == Layer.COST:
            old, new = values_text(change, full=False)
            grown = int(change.new.text) - int(change.old.text)
            sizes = f"{old} → {new}" if old != new else f"{new} ({'-' if grown < 0 else '+'}{byte_text(abs(grown))})"
            yield f"{sizes} {title_text(change)}"


# ------------------------------------------------------------------------------------------------------------- changes


@dataclass(frozen=True, slots=True)
class _Lines:
    """How changes are told: in so many columns, and how many."""

    width: int
    full: bool
    amounts: _Amounts

    def changes(self, told: _Told) -> Iterator[RenderableType]:
        """Layer by layer, so many of each."""
        for layer, entries in told.layers:
            shown, left = cut(entries, self.amounts.changes, self.full)
            yield indented(Text(layer, style="bold underline"))
            lines = (line for entry in shown for line in self._entry(entry))
            yield from (indented(indented(line)) for line in (*lines, *more(left, "change")))

    def _entry(self, entry: Repeated) -> Iterator[RenderableType]:
        """On one line where it fits, else old and new on lines of their own."""
        title = _title(entry, self.full)
        values = values_text(entry.change, self.full)
        brief = values if self.full else tuple(_GROUP.sub(", fused", text) for text in values)
        for texts in (_different_ones(values), _different_ones(brief)):
            together = f": {' → '.join(texts)}" if texts else ""
            if len(title) + len(together) <= self.width:
                yield title.append(together)
                break
        else:
            yield title
            signs = "-+" if len(texts) == 2 else " "
            yield from (indented(headed(f"{sign} ", text, "")) for sign, text in zip(signs, texts, strict=True))
        yield from (indented(line) for line in self._code(entry.change))

    def _code(self, change: Change) -> Iterator[Text]:
        """The lines of a body that differ, with one line around them."""
        if self.full or (self.amounts.code and change.aspect not in _NODES):
            shown, left = cut(code_lines(change), self.amounts.code, self.full)
            for line in shown:
                text = plain(line if self.full else shortened(line, self.width - 2))
                yield Text(text, style=_CODE_STYLES.get(line[:1], "dim"), overflow="fold")
            yield from more(left, "line")


def _different_ones(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(text for text in texts if text))


def values_text(change: Change, full: bool) -> tuple[str, str]:
    """What is the case in the old run and in the new one."""
    if change.layer == Layer.COST:
        return byte_text(int(change.old.text)), byte_text(int(change.new.text))
    if change.aspect in _LISTED:
        return _members(change.old.ids, full), _members(change.new.ids, full)
    return _brief(change.old.text, full), _brief(change.new.text, full)


def _brief(text: str, full: bool) -> str:
    """Long names by their ends, and the first of many names; a person who wants all asks for all."""
    if full:
        return shortened(plain(text), 10_000)
    text = _REUSED.sub("(reuses memory)", text[:2_000])
    text = _MANY.sub(lambda match: f"{match[1]} … {match[2].count(',')} more", text)
    return shortened(plain(_LONG.sub(lambda match: shortened(match[0], 24), text)), 160)


def _members(names: Sequence[str], full: bool) -> str:
    return listed(names, most=6, full=full, limit=32)


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
    if change.aspect in _LISTED:
        return _exchange(change)
    if change.aspect in _FOLLOWING:
        return f"{counted(len(change.old.ids), 'node')} of another {_FOLLOWING[change.aspect]} in consequence"
    if change.aspect == "order":
        return f"{counted(len(change.old.ids), 'group')} moved in the order of execution"
    if change.aspect == "outputs":
        return "output"
    told = change.subject not in _PLAIN_SUBJECTS and change.aspect not in ("storage", "target", "node", "buffer")
    told = told and (full or not _named_after(change))
    subject = f" ({plain(change.subject)})" if told else ""
    aspect = "" if change.aspect in _OBVIOUS else f" {change.aspect}"
    return f"{_name(change, full)}{subject}{aspect}"


def _named_after(change: Change) -> bool:
    """Whether the node's name says its operator: `mul_3` of `aten.mul.Tensor`."""
    operator = change.subject.split(".")[1:2]
    return bool(operator and change.new.ids) and change.new.ids[-1].startswith(operator[0])


def _exchange(change: Change) -> str:
    """`1 group split into 2`, `3 nodes → 1 node`, `2 nodes`."""
    old, new = len(change.old.ids), len(change.new.ids)
    noun = _LISTED[change.aspect]
    if change.kind in _VERBS:
        return f"{counted(old, noun)} {_VERBS[change.kind]} into {new}"
    return " → ".join(counted(number, noun) for number in (old, new) if number)


def _name(change: Change, full: bool) -> str:
    """Whose change it is: the FX node's name where there is one, else Inductor's own id on each side."""
    names = [ids[-1] for ids in (change.old.ids, change.new.ids) if ids]
    return " → ".join(plain(name if full else shortened(name, 40)) for name in dict.fromkeys(names))


def code_lines(change: Change) -> list[str]:
    """Lines of the old code behind `-`, of the new behind `+`, and one line around them."""
    lines = list(unified_diff(change.old.code, change.new.code, lineterm="", n=1))[2:]
    return [line for line in lines if not line.startswith("@@")]
