"""What is wrong with a run, each with its cause in one line and the next step."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from analyzer.artifacts.manifest import Finding
from analyzer.capture.settings import Plan
from analyzer.words import counted

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything the findings are read from: the hook's process records, and the manifest's processes and graphs.

    `without_torch`: the command's interpreter, when no process of it imported torch and it has none.
    """

    plan: Plan
    code: int
    timed_out: bool
    interrupted: bool
    records: list[Json]
    processes: list[Json]
    graphs: list[Json]
    without_torch: str | None = None

    @property
    def cut_short(self) -> bool:
        """It did not get to its end, which already explains why something is missing."""
        return self.timed_out or self.interrupted or self.code != 0

    @property
    def programs(self) -> list[Json]:
        """The hook's records without Inductor's own compile workers."""
        return [record for record in self.records if record.get("role") != "compile_worker"]


def findings(situation: Situation) -> Iterator[Finding]:
    """All of them, the ones that ended the run first."""
    yield from _ended(situation)
    yield from _compiled(situation)
    yield from _cache(situation)
    yield from _plan(situation)
    yield from _deviceless(situation)
    yield from _notes(situation)


def _ended(it: Situation) -> Iterator[Finding]:
    after = f"after {counted(len(it.graphs), 'graph')}" if it.graphs else "before any graph was compiled"
    kept = "What was written until then is kept."
    if it.timed_out:
        yield Finding("timeout", f"the time limit ended the command {after}", f"{kept} Allow more with --timeout.")
    elif it.interrupted:
        yield Finding("interrupted", f"the command was interrupted {after}", kept)
    elif it.code < 0:
        yield Finding("crashed", f"the command was ended by {signal.Signals(-it.code).name} {after}", kept)
    elif it.code > 0:
        yield _crashed(it, f"the command ended with exit code {it.code} {after}", kept)


def _crashed(it: Situation, message: str, kept: str) -> Finding:
    return Finding("crashed", message, kept if it.without_torch is None else _other_python(it.without_torch))


def _other_python(python: str) -> str:
    return f"{python} has no torch: choose the interpreter that has yours with --python."


def _compiled(it: Situation) -> Iterator[Finding]:
    for graph in it.graphs:
        if graph["failure"]:
            first = graph["failure"].splitlines()[0]
            yield Finding("compile-failed", f"{graph['folder']}: Inductor failed: {first}")
    untraced = sum(1 for record in it.records for graph in record["graphs"] if graph["folder"] is None)
    if untraced:
        hint = "The program switches trace.enabled off; remove that."
        yield Finding("untraced", f"{counted(untraced, 'graph')} compiled without a debug folder", hint)
    elif not it.graphs and not it.cut_short:
        yield _nothing(it)


def _nothing(it: Situation) -> Finding:
    """Why there is no graph, as far as the counters tell."""
    if not it.records:
        outside = "Is it a Python program? `python -I`, `-E` and `-S` keep the hook out."
        hint = outside if it.without_torch is None else _other_python(it.without_torch)
        return Finding("not-reached", "no process of the command imported torch under the hook", hint)
    if any(process["cache"]["hits"] for process in it.processes):
        return Finding("compiled-nothing", "compiled nothing: every graph came from a cache", _COLD)
    frames = sum(record["counters"].get("frames", {}).get("total", 0) for record in it.programs)
    if frames:
        hint = "Graph breaks at every op, graphs without ops and backends other than inductor leave nothing to compile."
        return Finding("compiled-nothing", "compiled nothing: Dynamo traced, but no graph reached Inductor", hint)
    hint = "Compilation is lazy: the compiled function must be called."
    return Finding("compiled-nothing", "compiled nothing: torch was imported, but nothing compiled was called", hint)


_COLD = "Do not set cache folders or load cache artifacts in the program: a capture brings a cold cache of its own."


def _cache(it: Situation) -> Iterator[Finding]:
    hits = sum(process["cache"]["hits"] for process in it.processes)
    if hits:
        message = f"{counted(hits, 'cache hit')}: graphs that were not compiled have no artifacts"
        yield Finding("cache-hit", message, _COLD)


def _plan(it: Situation) -> Iterator[Finding]:
    """A switch or setting that did not take hold in a process that compiled."""
    for record in it.records:
        if not record["graphs"]:
            continue
        missing = set(it.plan.switches) - set(record["switches_installed"])
        for switch in sorted(missing):
            yield Finding("switch-failed", f"process {record['pid']} compiled without the switch {switch}")
        applied = {entry["key"] for entry in record["settings_applied"]}
        for key, value in it.plan.settings:
            if key not in applied and not key.startswith("torch._dynamo"):
                yield Finding("setting-failed", f"process {record['pid']} compiled without {key} = {value}")


def _deviceless(it: Situation) -> Iterator[Finding]:
    """What could not be replaced in torch, and what cannot run without a device."""
    broken = {patch["name"]: patch["error"] for record in it.records for patch in record.get("patches_failed", ())}
    for name, error in broken.items():
        hint = "This torch version is unlike those that were tried; what it wrote may be wrong."
        yield Finding("patch-failed", f"could not replace `{name}` in torch: {error}", hint)
    for record in it.records:
        for refusal in record.get("refusals", ()):
            message = f"{refusal['operator']} cannot run without a device ({refusal['place']})"
            yield Finding("needs-device", message, refusal["advice"])


def _notes(it: Situation) -> Iterator[Finding]:
    """What the recorders could not do; each once."""
    seen = dict.fromkeys(
        f"{note['where']}: {note['error']}: {note['message']}" for record in it.records for note in record["notes"]
    )
    for text in seen:
        yield Finding("recorder-note", text)
