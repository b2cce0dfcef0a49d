"""What a structured trace log says: records with lazy payloads, grouped into compiles and Inductor graphs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from analyzer.model import Artifact, Location, StrEnum

_FOLDER = re.compile(r".*?__(?P<aot_id>\d+_(?P<kind>inference|forward|backward))_\d+\.(?P<number>\d{1,9})")

POST_GRAD = ("inductor_post_grad_graph", "after_post_grad_graph")
"""Names of the graph after post-grad passes; the second is that of torch 2.9."""

PRE_GRAD = ("before_pre_grad_graph", "dynamo_output_graph")
"""Names of the graph that Dynamo traced: its nodes have source lines, and provenance speaks of them."""


class CacheEvent(StrEnum):
    """What the FX graph cache did in a compile, by its artifacts; `UNKNOWN` where it left none."""

    HIT = "hit"
    MISS = "miss"
    BYPASS = "bypass"
    DISABLED = "disabled"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class CompileKey:
    """Which compile a record belongs to; all None outside of Dynamo (AOTInductor). `0/1` is its usual spelling."""

    frame_id: int | None = None
    frame_compile_id: int | None = None
    attempt: int | None = None
    rank: int | None = None
    compiled_autograd_id: int | None = None

    def __str__(self) -> str:
        name = "-" if self.frame_id is None else f"{self.frame_id}/{self.frame_compile_id}"
        return f"{name}_{self.attempt}" if self.attempt else name


@dataclass(frozen=True, slots=True)
class TraceRecord:
    """One record. `name` is the artifact's or graph dump's name, else the kind; `fields` is the kind's own JSON.

    The payload begins on the line after `location`, one tab to the right.
    """

    name: str
    kind: str
    key: CompileKey
    fields: Mapping[str, object]
    location: Location
    pid: int
    data: bytes = field(repr=False, compare=False)
    start: int
    end: int

    @property
    def text(self) -> str:
        """The payload, without the tabs; undecodable bytes become U+FFFD. Empty without a payload."""
        payload = self.data[self.start : self.end].removeprefix(b"\t").replace(b"\n\t", b"\n")
        return payload.replace(b"\r\n", b"\n").decode("utf-8", "replace")

    def json(self) -> object | None:
        """The payload as JSON, None where it is none."""
        try:
            return json.loads(self.text)  # type: ignore[no-any-return]
        except (ValueError, RecursionError):
            return None


@dataclass(frozen=True, slots=True)
class TraceGraph:
    """The records of one Inductor graph. Forward and backward share a compile key; each is a graph of its own.

    `index` counts graphs in the log; `aot_id` is `0_forward`, from the output code; `kind` is inference, forward,
    backward or unknown; `pre_grad` is the traced graph of its compile, `metrics` what torch counted in that compile.
    """

    index: int
    key: CompileKey
    records: Mapping[str, TraceRecord]
    aot_id: str | None = None
    kind: str = "unknown"
    pre_grad: TraceRecord | None = None
    metrics: TraceRecord | None = None

    def text(self, *names: str) -> str | None:
        """The payload of the first of `names` that the graph has."""
        record = self.record(*names)
        return None if record is None else record.text

    def record(self, *names: str) -> TraceRecord | None:
        """The first of `names` that the graph has."""
        return next((self.records[name] for name in names if name in self.records), None)

    @property
    def post_grad(self) -> str | None:
        """The graph as lowered; its annotations carry strides and devices."""
        return self.text(*POST_GRAD)

    @property
    def output_code(self) -> str | None:
        """The generated module (AOTInductor: its wrapper)."""
        return self.text("inductor_output_code", "inductor_aot_wrapper_code")

    @property
    def output_filename(self) -> str | None:
        """Where the generated module was written."""
        record = self.record("inductor_output_code", "inductor_aot_wrapper_code")
        name = record.fields.get("filename") if record else None
        return name if isinstance(name, str) else None

    @property
    def runnable(self) -> str | None:
        """`fx_graph_runnable.py`."""
        return self.text("fx_graph_runnable")

    @property
    def provenance(self) -> str | None:
        """The provenance maps as JSON text."""
        return self.text("inductor_provenance_tracking_node_mappings")

    @property
    def kernel_stacks(self) -> str | None:
        """The stack traces of each kernel as JSON text."""
        return self.text("inductor_provenance_tracking_kernel_stack_traces")


@dataclass(frozen=True, slots=True)
class TraceCompile:
    """The records of one compile in order, and its Inductor graphs."""

    key: CompileKey
    records: tuple[TraceRecord, ...]
    graphs: tuple[TraceGraph, ...]
    cache_disabled: bool = False

    def named(self, *names: str) -> tuple[TraceRecord, ...]:
        """The records of any of these names, in order."""
        return tuple(record for record in self.records if record.name in names)

    @property
    def cache(self) -> CacheEvent:
        """By `fx_graph_cache_*` artifacts; events of the same names do not count."""
        for state in (CacheEvent.HIT, CacheEvent.MISS, CacheEvent.BYPASS):
            if any(record.kind == "artifact" for record in self.named(f"fx_graph_cache_{state.value}")):
                return state
        return CacheEvent.DISABLED if self.cache_disabled else CacheEvent.UNKNOWN

    @property
    def recompile_reasons(self) -> tuple[str, ...]:
        """Why earlier compiles of the frame did not fit, as torch words it."""
        return tuple(reason for record in self.named("recompile_reasons") for reason in _texts(record))

    @property
    def graph_breaks(self) -> tuple[str, ...]:
        """The reason of each graph break."""
        return tuple(record.text for record in self.named("dynamo_graph_break_reason"))

    @property
    def errors(self) -> tuple[str, ...]:
        """What Dynamo says of a failed compile."""
        return tuple(record.text for record in self.named("dynamo_error"))

    @property
    def metrics(self) -> tuple[Mapping[str, object], ...]:
        """`compilation_metrics` and `bwd_compilation_metrics`."""
        return tuple(record.fields for record in self.named("compilation_metrics", "bwd_compilation_metrics"))


@dataclass(frozen=True, slots=True)
class TraceLog:
    """A trace log; compiles and graphs in order of their first record.

    `span`: the local times of its first and last record, `1130 02:33:15.432000`; logs do not tell the year.
    """

    artifact: Artifact
    pid: int | None = None
    torch_version: str | None = None
    compiles: tuple[TraceCompile, ...] = ()
    graphs: tuple[TraceGraph, ...] = ()
    span: tuple[str, str] | None = None

    def graph_of_folder(self, name: str) -> TraceGraph | None:
        """The graph of a debug folder (`model__0_forward_1.0`); None where it is unclear.

        The folder's name holds the AOT ID of the output code. A graph that was compiled more than once (a retry after a
        failure) is matched by its last attempt, the one that left the folder. Folders without an ID (`model___0.0`,
        AOTInductor and compiles in a subprocess) match only the single graph of a log.
        """
        match = _FOLDER.fullmatch(name)
        if match is None:
            return self.graphs[0] if len(self.graphs) == 1 and "___" in name else None
        found = [graph for graph in self.graphs if graph.aot_id == match["aot_id"]]
        return found[-1] if found else self._graph_without_id(match["kind"], int(match["number"]))

    def _graph_without_id(self, kind: str, number: int) -> TraceGraph | None:
        """For code without ID (C++ wrapper) or without code: the only graph of the kind, else the one so numbered."""
        found = [graph for graph in self.graphs if graph.aot_id is None and graph.kind == kind]
        if len(found) == 1:
            return found[0]
        return next((graph for graph in found if graph.index == number), None)


def _texts(record: TraceRecord) -> list[str]:
    """A list of strings, which torch writes as JSON, or as the bare text where it is one string."""
    value = record.json()
    if isinstance(value, list):
        return [str(item) for item in value]
    return [value if isinstance(value, str) else record.text.strip()]
