"""What a finished command left in its run folder, as the manifest's JSON; findings say what is wrong and why."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analyzer.artifacts.manifest import SCHEMA_VERSION
from analyzer.capture import environment, folder, interpreter
from analyzer.capture.findings import Situation, findings
from analyzer.capture.request import CaptureRequest
from analyzer.capture.settings import Plan

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that has ended; `code` is subprocess's: negative for a signal. `program`: what was started."""

    request: CaptureRequest
    plan: Plan
    start: str
    duration_s: float
    code: int
    variables: Mapping[str, str]
    cwd: Path
    program: str


def survey(run: Path, ran: Ran, timed_out: bool, interrupted: bool) -> Json:
    """The manifest. Reads what the hook wrote about each process, and looks at the graph folders themselves."""
    records = list(_process_records(run))
    processes = [_process(record, run) for record in records]
    graphs = list(_graphs(run, records))
    main = next((entry for entry in processes if entry["graphs"]), processes[0] if processes else {})
    without_torch = ran.program if not records and _lacks_torch(ran) else None
    situation = Situation(ran.plan, ran.code, timed_out, interrupted, records, processes, graphs, without_torch)
    return {
        "schema_version": SCHEMA_VERSION,
        "torch": main.get("torch"),
        "python": main.get("python"),
        "device": main.get("device"),
        "command": list(ran.request.command),
        "cwd": str(ran.cwd),
        "ablations": list(ran.request.ablations),
        "settings": dict(ran.plan.settings),
        "switches": list(ran.plan.switches),
        "target": ran.request.target,
        "codegen_only": ran.request.codegen_only or ran.request.target is not None,
        "environment": environment.relevant(ran.variables),
        "start": ran.start,
        "duration_s": round(ran.duration_s, 3),
        "exit_code": ran.code if ran.code >= 0 else None,
        "signal": signal.Signals(-ran.code).name if ran.code < 0 else None,
        "timed_out": timed_out,
        "processes": processes,
        "graphs": graphs,
        "findings": [
            {"kind": found.kind, "message": found.message, "hint": found.hint} for found in findings(situation)
        ],
    }


def _lacks_torch(ran: Ran) -> bool:
    """Of a Python program, in the environment that its user gave it."""
    variables = {**os.environ, **ran.request.env}
    return Path(ran.program).name.startswith("python") and interpreter.lacks_torch(ran.program, ran.cwd, variables)


def _process_records(run: Path) -> Iterator[Json]:
    """What the hook wrote, in order of start. A record is replaced in one step, so it is whole or not there."""
    found = []
    for path in (run / folder.REQUEST_FOLDER / "processes").glob("*.json"):
        record = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(record, dict):
            found.append(record)
    yield from sorted(found, key=lambda record: int(record["started_ns"]))


def _process(record: Json, run: Path) -> Json:
    kept = ("pid", "role", "command", "torch", "python", "device", "finished", "settings_applied", "switches_installed")
    debug = next(iter(sorted(run.glob(f"torch_compile_debug/run_*-pid_{record['pid']}"))), None)
    return {
        **{key: record.get(key) for key in kept},
        "debug_folder": None if debug is None else str(debug.relative_to(run)),
        "graphs": len(record["graphs"]),
        "cache": cache_counts(record["counters"]),
    }


def cache_counts(counters: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Sums of torch's counters `fxgraph_cache_hit`, `autograd_cache_miss`, ... in whatever group they are."""
    kinds = {"hits": "_hit", "misses": "_miss", "bypasses": "_bypass"}
    totals = dict.fromkeys(kinds, 0)
    for group in counters.values():
        for name, count in group.items():
            for kind, ending in kinds.items():
                if name in (f"fxgraph_cache{ending}", f"autograd_cache{ending}"):
                    totals[kind] += count
    return totals


def _graphs(run: Path, records: list[Json]) -> Iterator[Json]:
    """One entry per graph folder, with what the hook knows of it."""
    known = {str(graph["folder"]): graph for record in records for graph in record["graphs"]}
    for path in folder.graph_folders(run):
        facts = known.get(str(path), {})
        yield {
            "folder": str(path.relative_to(run)),
            "complete": facts.get("complete"),
            "failure": facts.get("failure"),
        }
