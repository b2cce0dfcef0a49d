"""The results as files: CSV with everything for a program, Markdown and LaTeX with what a paper's table shows."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from analyzer.ablations import ABLATIONS
from analyzer.facts import Summary
from analyzer.lab.effects import NO_EFFECT, interval_text
from analyzer.lab.records import ArmResult, LabResult, Role, ScriptResult

_COUNTS = ("scheduler_nodes", "groups", "kernel_calls", "loop_nests", "allocated_bytes", "bytes_read", "bytes_written")
_ROWS = {entry.name: entry.row for entry in ABLATIONS if entry.row}
_MEGA = 1e6


def csv_text(result: LabResult) -> str:
    """One line per arm, and one per graph of an arm that was measured; the column `graph` is empty for the whole."""
    lines = [line for script in result.scripts for arm in script.arms for line in _csv_lines(script, arm)]
    out = io.StringIO()
    writer = csv.DictWriter(out, fieldnames=list(lines[0]) if lines else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return out.getvalue()


def _csv_lines(script: ScriptResult, arm: ArmResult) -> Iterator[dict[str, Any]]:
    counts = {name: getattr(arm.after, name) if arm.after else None for name in _COUNTS}
    agreement = arm.agreement
    line = {
        "script": script.script.label,
        "arm": arm.spec.name,
        "graph": "",
        "role": str(arm.spec.role),
        "against": arm.spec.against,
        "status": str(arm.run.status),
        "verdict": arm.verdict,
        "masked_by": arm.masked_by,
        "why": arm.why,
        **counts,
        "compile_s": arm.run.compile_s,
        "median_s": None,
        "ratio": None,
        "ci95_low": None,
        "ci95_high": None,
        "credited": arm.time.credited if arm.time else None,
        "why_not_credited": arm.time.why_not if arm.time else arm.untimed,
        "results_agree": agreement.close if agreement else None,
        "max_abs": agreement.max_abs if agreement else None,
        "max_rel": agreement.max_rel if agreement else None,
    }
    times = {"": arm.time.whole, **arm.time.graphs} if arm.time else {}
    for graph, time in times.items():
        measured = {"median_s": time.median_s, "ratio": time.ratio}
        yield {**line, "graph": graph, **measured, "ci95_low": time.ci95[0], "ci95_high": time.ci95[1]}
    if not times:
        yield line


# ------------------------------------------------------------------------------------------------- tables for a paper


def header(result: LabResult) -> list[str]:
    """The columns of a paper's table; times only where there are any."""
    timed = any(arm.time for script in result.scripts for arm in script.arms)
    counts = ["Arm", "Verdict", "Nodes", "Groups", "Calls", "Loop nests", "MB moved", "Compile (s)"]
    return counts + (["Time (ms)", "Ratio [95 % CI]"] if timed else [])


def rows(script: ScriptResult, timed: bool) -> list[list[str]]:
    """The cells; a ratio that is no effect of the ablation is replaced by the reason."""
    return [_cells(arm) + ([_time(arm), ratio_text(arm)] if timed else []) for arm in script.arms]


def _cells(arm: ArmResult) -> list[str]:
    summary = arm.after or Summary()
    counts = [summary.scheduler_nodes, summary.groups, summary.kernel_calls, summary.loop_nests]
    moved = moved_bytes(summary)
    return [
        _label(arm),
        verdict_text(arm),
        *("?" if count is None else str(count) for count in counts),
        "?" if moved is None else f"{moved / _MEGA:.4g}",
        "-" if arm.run.compile_s is None else f"{arm.run.compile_s:.1f}",
    ]


def moved_bytes(summary: Summary) -> int | None:
    """What kernels read and write together."""
    if summary.bytes_read is None or summary.bytes_written is None:
        return None
    return summary.bytes_read + summary.bytes_written


def verdict_text(arm: ArmResult) -> str:
    """The verdict with what masks it; for an arm without one, what it is or how it failed."""
    if arm.run.why is not None:
        return f"{arm.run.status}"
    if arm.verdict is None:
        return "A/A control" if arm.spec.role is Role.CONTROL else str(arm.spec.role)
    return f"{arm.verdict}, masked by {arm.masked_by}" if arm.masked_by else str(arm.verdict)


def ratio_text(arm: ArmResult) -> str:
    """`1.24 [1.21, 1.27]`, or why there is no such effect; a control's ratio is the noise."""
    if arm.time is None:
        return "not measured" if arm.untimed else ""
    if arm.spec.role is Role.BASELINE:
        return "1"
    if arm.time.credited or arm.spec.role is Role.CONTROL:
        return interval_text(arm.time.whole)
    short = str(arm.time.why_not).partition(":")[0]
    return short if short == NO_EFFECT else f"not credited: {short}"


def _label(arm: ArmResult) -> str:
    return _ROWS.get(arm.spec.name, arm.spec.name)


def _time(arm: ArmResult) -> str:
    return f"{arm.time.whole.median_s * 1e3:.4g}" if arm.time else ""


def markdown_text(result: LabResult) -> str:
    """One table per script."""
    return "\n".join("\n".join(_markdown(result, script)) + "\n" for script in result.scripts)


def _markdown(result: LabResult, script: ScriptResult) -> Iterator[str]:
    columns = header(result)
    if len(result.scripts) > 1:
        yield f"### {_escaped_markdown(script.script.path)}\n"
    yield _markdown_line(columns)
    yield _markdown_line(["---", "---", *("---:" for _ in columns[2:])], str)
    for row in rows(script, len(columns) > 8):
        yield _markdown_line(row)


def _escaped_markdown(text: str) -> str:
    return "".join(f"\\{char}" if char in "\\`*_|<>[]#" else char for char in text)


def _markdown_line(cells: Sequence[str], escape: Callable[[str], str] = _escaped_markdown) -> str:
    return f"| {' | '.join(map(escape, cells))} |"


_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}


def _escaped_latex(text: str) -> str:
    return "".join(_LATEX.get(char, f"\\{char}" if char in "&%$#_{}" else char) for char in text)


def latex_text(result: LabResult) -> str:
    """One tabular per script, rules by booktabs."""
    columns = header(result)
    return "\n".join("\n".join(_latex(script, columns)) + "\n" for script in result.scripts)


def _latex(script: ScriptResult, columns: Sequence[str]) -> Iterator[str]:
    yield f"% {' '.join(script.script.path.split())}"
    yield rf"\begin{{tabular}}{{ll{'r' * (len(columns) - 2)}}}"
    yield r"\toprule"
    yield _latex_line(columns)
    yield r"\midrule"
    for row in rows(script, len(columns) > 8):
        yield _latex_line(row)
    yield r"\bottomrule"
    yield r"\end{tabular}"


def _latex_line(cells: Sequence[str]) -> str:
    return rf"{' & '.join(map(_escaped_latex, cells))} \\"
