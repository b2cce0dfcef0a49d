"""Promises about a run as a whole: its caches, graph breaks and recompiles."""

from __future__ import annotations

import re
from collections.abc import Iterator

from analyzer.artifacts.trace_log import TraceCompile
from analyzer.contracts.records import Clause, Judgement, Outcome
from analyzer.contracts.scope import Scope
from analyzer.model import CacheState, Location

NO_LOG = (
    "only a structured trace log tells: torch 2.13 and later write one beside the dumps, older ones for TORCH_TRACE"
)
_USER_CODE = re.compile(r"Graph break in user code at (?P<file>[^\n]+?):(?P<line>\d{1,9})\s*$", re.MULTILINE)


def cold_cache(_: Clause, scope: Scope) -> Iterator[Judgement]:
    """Every graph was compiled in this run."""
    state = scope.run.cache_state
    if state == CacheState.UNKNOWN:
        yield Judgement(Outcome.UNDECIDED, f"whether graphs came from a cache is not recorded: {NO_LOG}")
    else:
        yield Judgement(Outcome.KEPT if state == CacheState.COLD else Outcome.BROKEN, f"{state} caches")


def no_graph_breaks(_: Clause, scope: Scope) -> Iterator[Judgement]:
    """Dynamo cut no function in two."""
    breaks = [text for log in scope.run.traces for compile_ in log.compiles for text in compile_.graph_breaks]
    for text in breaks:
        yield Judgement(Outcome.BROKEN, break_reason(text), place=break_place(text))
    if not breaks:
        yield _none_found(scope, "no graph break in the trace log")


def no_recompiles(_: Clause, scope: Scope) -> Iterator[Judgement]:
    """No function was compiled a second time because its guards failed."""
    again = [compile_ for log in scope.run.traces for compile_ in log.compiles if compile_.recompile_reasons]
    for compile_ in again:
        yield Judgement(Outcome.BROKEN, f"compile {compile_.key}: {recompile_reason(compile_)}")
    if not again:
        yield _none_found(scope, "no recompile in the trace log")


def _none_found(scope: Scope, good: str) -> Judgement:
    return Judgement(Outcome.KEPT, good) if scope.run.traces else Judgement(Outcome.UNDECIDED, NO_LOG)


def recompile_reason(compile_: TraceCompile) -> str:
    """Which guards failed, without the source and stack that torch sets beside each."""
    return "; ".join(reason.partition("\n")[0].partition("  #")[0].strip() for reason in compile_.recompile_reasons)


def break_place(text: str) -> Location | None:
    """The line of the program that a `dynamo_graph_break_reason` record names."""
    match = _USER_CODE.search(text)
    return Location(match["file"], int(match["line"])) if match else None


def break_reason(text: str) -> str:
    """The reason itself, without torch's first words, hints and traceback."""
    _, _, reason = text.partition("Graph Break Reason: ")
    parts = [line.strip() for line in (reason or text).partition("Explanation:")[0].splitlines()]
    return " ".join(part for part in parts if part)
