"""TORCH_LOGS output in a console log or a paste: cut into sections that the parsers of the single artifacts can read.

torch/_logging/_internal.py (`TorchLogsFormatter`) puts a prefix before every line of a message:
`[rank0]:V1130 02:24:17.870000 17118 torch/_inductor/debug.py:796] [0/0] [__ir_pre_fusion] text`. Only the tag at its
end is relied on, so prefixes may be cut off on the left or stand behind someone else's. Every line keeps its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from analyzer.model import Location

_ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
_TAG = re.compile(r"(?:\[(?P<id>[^\[\]\s]+)\] )?\[__(?P<kind>[a-z][a-z0-9_]*)\](?: |$)")
_RANK = re.compile(r"\[rank(\d{1,9})\]:")
_PID = re.compile(r"[VIWEC]\d{4} \d\d:\d\d:\d\d\.\d+ (\d{1,12}) ")
_RULE = "====="
_SHORTEST_CUT = 3

_TRACED = "TRACED GRAPH"
_BANNERS = {
    "ir_pre_fusion": "BEFORE FUSION",
    "ir_post_fusion": "AFTER FUSION",
    "output_code": "Output code:",
    "fusion": "===== attempting fusion (1/",
    "post_grad_graphs": _TRACED,
    "pre_grad_graphs": _TRACED,
    "inductor_joint_graphs": _TRACED,
    "aot_graphs": _TRACED,
    "aot_joint_graph": _TRACED,
    "graph_code": _TRACED,
    "graph_code_verbose": _TRACED,
}
"""The line that begins a message of each kind. Where it is missing, a change of kind begins a section."""

_KEPT_BANNERS = frozenset({"fusion"})
_WRITTEN_TO = "Output code written to: "
GRAPH_ORDER = ("post_grad_graphs", "ir_pre_fusion", "fusion", "ir_post_fusion", "output_code")
"""The order in which Inductor logs the sections of one graph; `fusion` runs on past `ir_post_fusion`."""


@dataclass(frozen=True, slots=True)
class LogSource:
    """Who wrote a section: the compile id (`0/0`, `1/0_1`) and, where the prefix says so, rank and process."""

    compile_id: str | None = None
    rank: int | None = None
    pid: int | None = None


@dataclass(frozen=True, slots=True)
class LogSection:
    """One message. `kind` is the tag without underscores (`ir_pre_fusion`), `text` is free of prefixes and banner.

    `lines` and `columns` give, for each line of `text`, its line in the log and the column where it begins there.
    """

    kind: str
    origin: LogSource
    text: str
    source: str
    lines: tuple[int, ...]
    columns: tuple[int, ...]
    title: str = ""
    written_to: str | None = None

    def place(self, line: int, column: int = 1) -> Location:
        """Where a position in `text` lies in the log. A line past the end is taken for the last one."""
        if not self.lines:
            return Location(self.source, 1)
        at = min(max(line, 1), len(self.lines)) - 1
        return Location(self.source, self.lines[at], self.columns[at] + column - 1)


@dataclass(frozen=True, slots=True)
class LogGraph:
    """The sections of one Inductor graph; `index` counts graphs in the log."""

    index: int
    origin: LogSource
    sections: Mapping[str, LogSection]


def split(text: str, source: str) -> list[LogSection]:
    """The tagged messages of a log in order of their first lines. Lines without a tag belong to other programs."""
    collector = _Collector(source)
    for line in _tagged_lines(text):
        collector.add(line)
    return collector.sections()


def graphs(sections: Iterable[LogSection]) -> list[LogGraph]:
    """Group the sections that belong to Inductor graphs. Forward and backward share a compile id and come in order."""
    found: list[tuple[LogSource, dict[str, LogSection]]] = []
    current: dict[LogSource, dict[str, LogSection]] = {}
    for section in sections:
        if section.kind not in GRAPH_ORDER:
            continue
        group = current.get(section.origin)
        if group is None or _rank(section.kind) <= max(map(_rank, group)):
            group = current[section.origin] = {}
            found.append((section.origin, group))
        group[section.kind] = section
    return [LogGraph(index, origin, group) for index, (origin, group) in enumerate(found)]


def _rank(kind: str) -> int:
    return GRAPH_ORDER.index(kind)


@dataclass(frozen=True, slots=True)
class _Line:
    kind: str
    origin: LogSource
    text: str
    line: int
    column: int


def _tagged_lines(text: str) -> Iterator[_Line]:
    """Lines with a tag, and lines whose tag was cut in half by a paste, with the places where their text begins."""
    before = ""
    last: _Line | None = None
    for number, raw in enumerate(text.split("\n"), 1):
        plain = _ANSI.sub("", raw).rstrip("\r") if "\x1b" in raw else raw.rstrip("\r")
        match = _TAG.search(plain) if "[__" in plain else None
        if match is not None:
            before = match[0]
            origin = _origin(plain[: match.start()], match["id"], last)
            last = _Line(match["kind"], origin, plain[match.end() :], number, _raw_column(raw, match.end()))
            yield last
        elif last is not None and (cut := _cut_prefix(plain, before)):
            yield _Line(last.kind, last.origin, plain[cut:], number, _raw_column(raw, cut))


def _origin(prefix: str, compile_id: str | None, last: _Line | None) -> LogSource:
    """Rank and process from the prefix; a prefix that was cut off takes those of the line before it."""
    pid, rank = _PID.search(prefix), _RANK.search(prefix)
    if pid is None and rank is None and last is not None and last.origin.compile_id == compile_id:
        return last.origin
    return LogSource(compile_id, int(rank[1]) if rank else None, int(pid[1]) if pid else None)


def _cut_prefix(line: str, tag: str) -> int:
    """Length of the rest of a tag that a line begins with (`fusion] op0..`), 0 where it begins with none."""
    rests = (tag[start:] for start in range(1, len(tag) - _SHORTEST_CUT + 1))
    return next((len(rest) for rest in rests if line.startswith(rest)), 0)


def _raw_column(raw: str, plain: int) -> int:
    """Column (from 1) in the raw line of an offset in the line without ANSI codes."""
    removed = 0
    for match in _ANSI.finditer(raw) if "\x1b" in raw else ():
        if match.start() - removed > plain:
            break
        removed += len(match[0])
    return plain + removed + 1


@dataclass
class _Open:
    """A section under construction."""

    kind: str
    origin: LogSource
    title: str = ""
    written_to: str | None = None
    lines: list[_Line] = field(default_factory=list)

    def close(self, source: str) -> LogSection:
        return LogSection(
            self.kind,
            self.origin,
            "\n".join(line.text for line in self.lines) + ("\n" if self.lines else ""),
            source,
            tuple(line.line for line in self.lines),
            tuple(line.column for line in self.lines),
            self._title(),
            self.written_to,
        )

    def _title(self) -> str:
        """`Forward graph 0` from the rule above a graph, else the banner."""
        first = self.lines[0].text.strip() if self.lines else ""
        ruled = first.startswith(_RULE) and first.endswith(_RULE)
        return first.strip("= ") if ruled else self.title


class _Collector:
    """Puts lines into sections. Messages of one process and compile do not interleave, but for those of `fusion`."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._all: list[_Open] = []
        self._last: dict[LogSource, _Open] = {}
        self._by_kind: dict[tuple[LogSource, str], _Open] = {}

    def add(self, line: _Line) -> None:
        banner = _BANNERS.get(line.kind)
        if line.kind == "output_code" and line.text.startswith(_WRITTEN_TO):
            self._written(line)
        elif banner is not None and line.text.startswith(banner):
            self._begin(line, banner)
        else:
            self._section(line).lines.append(line)

    def sections(self) -> list[LogSection]:
        return [section.close(self._source) for section in self._all]

    def _begin(self, line: _Line, banner: str) -> None:
        section = self._open(line)
        if line.kind in _KEPT_BANNERS:
            section.lines.append(line)
            return
        rest = line.text[len(banner) :]
        section.title = banner
        if rest.strip():
            column = line.column + len(line.text) - len(rest.lstrip())
            section.lines.append(_Line(line.kind, line.origin, rest.lstrip(), line.line, column))

    def _section(self, line: _Line) -> _Open:
        last = self._last.get(line.origin)
        if last is not None and last.kind == line.kind:
            return last
        if line.kind == "fusion" and (fusion := self._by_kind.get((line.origin, "fusion"))):
            return fusion
        return self._open(line)

    def _open(self, line: _Line) -> _Open:
        section = _Open(line.kind, line.origin)
        self._all.append(section)
        self._last[line.origin] = self._by_kind[line.origin, line.kind] = section
        return section

    def _written(self, line: _Line) -> None:
        """The path of the module; it is printed twice, the second time without the code."""
        section = self._by_kind.get((line.origin, "output_code"))
        if section is not None:
            section.written_to = line.text[len(_WRITTEN_TO) :].strip()
