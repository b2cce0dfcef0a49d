"""Structured trace logs: `torch_compile_debug/tlparse/*.log` and the files of a TORCH_TRACE folder.

torch/_logging/_internal.py (`trace_structured`) writes a header line with JSON per record, and its payload as lines
that start with one tab. One scan finds the header lines; a payload is kept as a pair of offsets and cut out on request,
since a 48-layer model has 8 MB of them.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from pathlib import Path

from analyzer.artifacts.trace_records import (
    POST_GRAD,
    PRE_GRAD,
    CacheEvent,
    CompileKey,
    TraceCompile,
    TraceGraph,
    TraceLog,
    TraceRecord,
)
from analyzer.model import Artifact, ArtifactState, Location, Problem

__all__ = ["POST_GRAD", "CacheEvent", "CompileKey", "TraceCompile", "TraceGraph", "TraceLog", "TraceRecord", "parse"]

_LINE = re.compile(rb"\n[^\t\n\r][^\n]*")
_HEADER = re.compile(rb"[VIWECD]\d{4} \d\d:\d\d:\d\d\.\d+ (?P<pid>\d+) [^\]]*\] (?P<json>\{.*)", re.DOTALL)
_TIME = re.compile(rb"[VIWECD](\d{4} \d\d:\d\d:\d\d\.\d{6}) ")
_KIND = re.compile(rb'\{"(\w+)"')
_UNREAD = frozenset({b"chromium_event", b"str", b"describe_storage", b"describe_tensor", b"describe_source"})
_KEY_FIELDS = ("frame_id", "frame_compile_id", "attempt", "rank", "compiled_autograd_id")
_CACHE_OFF = b'"name": "fx_graph_cache_disabled"'
_AOT_ID = re.compile(rb"# AOT ID: \['(?P<id>[^']*)'\]")

_SEQUENCE = (
    ("fx_graph_runnable",),
    ("before_post_grad_graph",),
    POST_GRAD,
    ("inductor_output_code",),
    ("inductor_aot_wrapper_code",),
    ("inductor_aot_kernel_code",),
    ("inductor_provenance_tracking_node_mappings",),
    ("inductor_provenance_tracking_kernel_stack_traces",),
)
_RANK = {name: rank for rank, names in enumerate(_SEQUENCE) for name in names}
"""The order in which Inductor writes the records of one graph (torch/_inductor/compile_fx.py, graph.py)."""


def parse(log: str | bytes | Path, source: str) -> TraceLog:
    """Read a trace log from its text, its bytes, or a file. A damaged line costs its record.

    Raises:
        OSError: the file cannot be read.
    """
    data = log.read_bytes() if isinstance(log, Path) else log.encode() if isinstance(log, str) else log
    return _Reader(data, source).log()


class _Reader:
    def __init__(self, data: bytes, source: str) -> None:
        self._data, self._source = data, source
        self._problems: list[Problem] = []
        self._line, self._counted = 1, 0

    def log(self) -> TraceLog:
        if not self._data.strip():
            return TraceLog(Artifact(self._source, ArtifactState.EMPTY, self._data.count(b"\n")))
        starts = self._line_starts()
        records = list(self._records(starts))
        compiles = _compiles(records, self._keys_without_cache(starts))
        graphs = sorted((graph for compile_ in compiles for graph in compile_.graphs), key=lambda graph: graph.index)
        pid = next((record.pid for record in records), None)
        return TraceLog(self._artifact(), pid, _torch_version(records), compiles, tuple(graphs), self._span(starts))

    def _artifact(self) -> Artifact:
        lines = self._data.count(b"\n") + (not self._data.endswith(b"\n"))
        state = ArtifactState.PARTIAL if self._problems else ArtifactState.PARSED
        return Artifact(self._source, state, lines, tuple(self._problems))

    def _span(self, starts: list[int]) -> tuple[str, str] | None:
        """The times of the first and the last record."""
        first, last = (
            next((match[1].decode() for at in order if (match := _TIME.match(self._data, at))), None)
            for order in (starts, reversed(starts))
        )
        return (first, last) if first and last else None

    def _line_starts(self) -> list[int]:
        """Offsets of the lines that are no payload."""
        first = [0] if self._data[:1] not in (b"\t", b"\n", b"\r") else []
        return first + [match.start() + 1 for match in _LINE.finditer(self._data)]

    def _records(self, starts: list[int]) -> Iterator[TraceRecord]:
        for number, start in enumerate(starts):
            next_start = starts[number + 1] if number + 1 < len(starts) else len(self._data)
            end = self._data.find(b"\n", start, next_start)
            end = next_start if end < 0 else end
            if record := self._record(start, end, next_start):
                yield record

    def _record(self, start: int, end: int, payload_end: int) -> TraceRecord | None:
        line = self._data[start:end]
        match = _HEADER.match(line)
        if match is None:
            self._problem(start, 0, "expected a record header or a payload line that starts with a tab")
            return None
        kind = _KIND.match(match["json"])
        if kind is not None and kind[1] in _UNREAD:
            return None
        try:
            header = json.loads(match["json"])
        except ValueError as error:
            offset = error.pos if isinstance(error, json.JSONDecodeError) else 0
            self._problem(
                start, match.start("json") + offset, f"expected the JSON of a record: {error}".partition(": line")[0]
            )
            return None
        except RecursionError:
            self._problem(start, match.start("json"), "expected the JSON of a record, found deep nesting")
            return None
        return self._build(header, match, start, end, payload_end)

    def _build(self, header: dict[str, object], match: re.Match[bytes], start: int, end: int, stop: int) -> TraceRecord:
        kind = next((name for name in header if name not in (*_KEY_FIELDS, "has_payload", "stack")), "")
        value = header.get(kind)
        fields: Mapping[str, object] = value if isinstance(value, dict) else {}
        name = fields.get("name") if kind in ("artifact", "graph_dump") else kind
        key = CompileKey(*(_number(header.get(part)) for part in _KEY_FIELDS))
        place = Location(self._source, self._line_of(start))
        payload = (min(end + 1, stop), max(min(end + 1, stop), stop - 1)) if "has_payload" in header else (stop, stop)
        return TraceRecord(str(name), kind, key, fields, place, int(match["pid"][:12]), self._data, *payload)

    def _keys_without_cache(self, starts: list[int]) -> frozenset[CompileKey]:
        """Compiles whose events say that the FX graph cache is off: the thousands of other events are not read."""
        keys = set()
        at = self._data.find(_CACHE_OFF)
        while at >= 0:
            number = bisect_right(starts, at) - 1
            end = self._data.find(b"\n", starts[number]) if number >= 0 else -1
            match = _HEADER.match(self._data[starts[number] : end]) if end >= 0 else None
            try:
                header = json.loads(match["json"]) if match else {}
            except (ValueError, RecursionError):
                header = {}
            keys.add(CompileKey(*(_number(header.get(part)) for part in _KEY_FIELDS)))
            at = self._data.find(_CACHE_OFF, at + 1)
        return frozenset(keys)

    def _line_of(self, offset: int) -> int:
        """Line number of an offset; offsets come in order, so each newline is counted once."""
        self._line += self._data.count(b"\n", self._counted, offset)
        self._counted = offset
        return self._line

    def _problem(self, start: int, column: int, message: str) -> None:
        line = self._line_of(start)
        last = self._problems[-1] if self._problems else None
        if last and last.message == message and last.location.line + last.lines == line:
            self._problems[-1] = Problem(last.location, message, last.excerpt, last.lines + 1)
            return
        excerpt = self._data[start : start + 160].split(b"\n", 1)[0].decode("utf-8", "replace")
        self._problems.append(Problem(Location(self._source, line, column + 1), message, excerpt))


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _torch_version(records: list[TraceRecord]) -> str | None:
    """The `torch_version` record (torch 2.13+), else the comment of the first runnable script."""
    for record in records:
        value = record.json() if record.name == "torch_version" else None
        if isinstance(value, dict) and isinstance(value.get("pytorch_version"), str):
            return str(value["pytorch_version"])
    runnable = next((record for record in records if record.name == "fx_graph_runnable"), None)
    match = re.search(r"^# torch version: (\S+)", runnable.text, re.MULTILINE) if runnable else None
    return match[1] if match else None


def _compiles(records: list[TraceRecord], cache_off: frozenset[CompileKey]) -> tuple[TraceCompile, ...]:
    by_key: dict[CompileKey, list[TraceRecord]] = {}
    for record in records:
        if record.name != "torch_version":
            by_key.setdefault(record.key, []).append(record)
    order = iter(_graph_order(records))
    indices = {id(record): index for index, record in enumerate(order)}
    return tuple(
        TraceCompile(key, tuple(found), tuple(_graphs(found, indices)), key in cache_off)
        for key, found in by_key.items()
    )


def _graph_order(records: list[TraceRecord]) -> list[TraceRecord]:
    """First records of all graphs, in order of the log."""
    last: dict[CompileKey, int] = {}
    firsts = []
    for record in records:
        if record.name in _RANK:
            if _RANK[record.name] <= last.get(record.key, len(_SEQUENCE)):
                firsts.append(record)
            last[record.key] = _RANK[record.name]
    return firsts


def _graphs(records: list[TraceRecord], indices: Mapping[int, int]) -> Iterator[TraceGraph]:
    """Cut the records of one compile into graphs: a graph ends where a record comes that does not continue it."""
    groups: list[dict[str, TraceRecord]] = []
    for record in records:
        if record.name in _RANK:
            if id(record) in indices:
                groups.append({})
            groups[-1][record.name] = record
    traced = next((record for name in PRE_GRAD for record in records if record.name == name), None)
    for place, group in enumerate(groups):
        first = next(iter(group.values()))
        aot_id = _aot_id(group)
        kind = _graph_kind(aot_id, records, place)
        yield TraceGraph(indices[id(first)], first.key, group, aot_id, kind, traced, _metrics(kind, records))


def _metrics(kind: str, records: list[TraceRecord]) -> TraceRecord | None:
    """A backward graph has a record of its own where it was compiled by itself, later than its forward."""
    names = ("bwd_compilation_metrics", "compilation_metrics") if kind == "backward" else ("compilation_metrics",)
    return next((record for name in names for record in records if record.name == name), None)


def _aot_id(group: Mapping[str, TraceRecord]) -> str | None:
    code = group.get("inductor_output_code")
    match = _AOT_ID.search(code.data, code.start, min(code.end, code.start + 4096)) if code else None
    return match["id"].decode("utf-8", "replace") if match else None


def _graph_kind(aot_id: str | None, records: list[TraceRecord], place: int) -> str:
    kind = (aot_id or "").rpartition("_")[2]
    if kind in ("inference", "forward", "backward"):
        return kind
    names = {record.name for record in records}
    if "aot_inference_graph" in names:
        return "inference"
    if "aot_backward_graph" in names and place < 2:
        return ("forward", "backward")[place]
    return "unknown"
