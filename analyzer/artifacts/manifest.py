"""`manifest.json`: what a capture did and found (written by analyzer/capture/survey.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from analyzer.artifacts import versioned_json as read

FILE_NAME = "manifest.json"
SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that makes a run less than a good one; `kind` is one of FINDINGS, `message` one line with the cause."""

    kind: str
    message: str
    hint: str | None = None


FINDINGS = (
    "compiled-nothing",
    "crashed",
    "timeout",
    "interrupted",
    "cache-hit",
    "not-reached",
    "compile-failed",
    "untraced",
    "setting-failed",
    "switch-failed",
    "recorder-note",
    "patch-failed",
    "needs-device",
    "ptx-failed",
)


@dataclass(frozen=True, slots=True)
class CacheCounts:
    """Look-ups in Inductor's graph cache and in AOTAutograd's, both together."""

    hits: int = 0
    misses: int = 0
    bypasses: int = 0


@dataclass(frozen=True, slots=True)
class GraphEntry:
    """A compiled graph: its folder relative to the run folder; `complete` is False for a compile that failed."""

    folder: str
    complete: bool | None = None
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class ProcessEntry:
    """A process that imported torch. `finished`: it got to its normal end. `role`: program or compile_worker."""

    pid: int | None
    role: str
    command: tuple[str, ...] = ()
    debug_folder: str | None = None
    torch: str | None = None
    python: str | None = None
    device: str | None = None
    finished: bool = False
    graphs: int = 0
    cache: CacheCounts = CacheCounts()
    settings_applied: tuple[tuple[str, str], ...] = ()
    switches_installed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Manifest:
    """A captured run. `exit_code` is None when a signal ended the command; `signal` then names it.

    `target`: the device that code was generated for without one, such as `cuda:h100`. `codegen_only`: kernels were
    written but not compiled.
    """

    torch: str | None
    python: str | None
    device: str | None
    command: tuple[str, ...]
    cwd: str | None
    ablations: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    switches: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    start: str | None = None
    duration_s: float | None = None
    exit_code: int | None = None
    signal: str | None = None
    timed_out: bool = False
    processes: tuple[ProcessEntry, ...] = ()
    graphs: tuple[GraphEntry, ...] = ()
    findings: tuple[Finding, ...] = ()
    target: str | None = None
    codegen_only: bool = False


def parse(text: str, source: str) -> Manifest:
    """The manifest of a run folder. ArtifactError with a position for text that is none; unknown keys are ignored."""
    found = read.document(text, source, SCHEMA_VERSION, "a capture manifest")
    duration = found.get("duration_s")
    return Manifest(
        torch=read.text(found.get("torch")),
        python=read.text(found.get("python")),
        device=read.text(found.get("device")),
        command=read.texts(found.get("command")),
        cwd=read.text(found.get("cwd")),
        ablations=read.texts(found.get("ablations")),
        settings=read.text_map(found.get("settings")),
        switches=read.texts(found.get("switches")),
        environment=read.text_map(found.get("environment")),
        start=read.text(found.get("start")),
        duration_s=float(duration) if isinstance(duration, (int, float)) else None,
        exit_code=read.number(found.get("exit_code")),
        signal=read.text(found.get("signal")),
        timed_out=bool(read.flag(found.get("timed_out"))),
        processes=tuple(_process(entry) for entry in read.mappings(found.get("processes"))),
        graphs=tuple(_graph(entry) for entry in read.mappings(found.get("graphs"))),
        findings=tuple(_finding(entry) for entry in read.mappings(found.get("findings"))),
        target=read.text(found.get("target")),
        codegen_only=bool(read.flag(found.get("codegen_only"))),
    )


def _process(entry: read.Json) -> ProcessEntry:
    cache = read.number_map(entry.get("cache"))
    applied = [(read.text(pair.get("key")), read.text(pair.get("value"))) for pair in _pairs(entry)]
    return ProcessEntry(
        pid=read.number(entry.get("pid")),
        role=read.text(entry.get("role")) or "program",
        command=read.texts(entry.get("command")),
        debug_folder=read.text(entry.get("debug_folder")),
        torch=read.text(entry.get("torch")),
        python=read.text(entry.get("python")),
        device=read.text(entry.get("device")),
        finished=bool(read.flag(entry.get("finished"))),
        graphs=read.number(entry.get("graphs")) or 0,
        cache=CacheCounts(cache.get("hits", 0), cache.get("misses", 0), cache.get("bypasses", 0)),
        settings_applied=tuple((key, value) for key, value in applied if key is not None and value is not None),
        switches_installed=read.texts(entry.get("switches_installed")),
    )


def _pairs(entry: read.Json) -> tuple[read.Json, ...]:
    return read.mappings(entry.get("settings_applied"))


def _graph(entry: read.Json) -> GraphEntry:
    folder = read.text(entry.get("folder")) or ""
    return GraphEntry(folder, read.flag(entry.get("complete")), read.text(entry.get("failure")))


def _finding(entry: read.Json) -> Finding:
    return Finding(
        kind=read.text(entry.get("kind")) or "unknown",
        message=read.text(entry.get("message")) or "",
        hint=read.text(entry.get("hint")),
    )
