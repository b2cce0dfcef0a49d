"""The results as files: CSV with everything for a program, Markdown and LaTeX with what a paper's table shows."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from analyzer.ablations import ABLATIONS
from analyzer.facts import Summary
from analyzer.lab.effects import NO_EFFECT, interval_text, number_text
from analyzer.lab.records import ArmResult, Interval, LabResult, Role, ScriptResult

_COUNTS = ("scheduler_nodes", "groups", "kernel_calls", "loop_nests", "allocated_bytes", "bytes_read", "bytes_written")
_ROWS = {entry.name: entry.row for entry in ABLATIONS if entry.row}
_MEGA = 1e6
Cell = Callable[[ArmResult], str]


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
        "noise_low": arm.time.noise[0] if arm.time and arm.time.noise else None,
        "noise_high": arm.time.noise[1] if arm.time and arm.time.noise else None,
        "credited": arm.time.credited if arm.time else None,
        "why_not_credited": arm.time.why_not if arm.time else arm.untimed,
        "sessions_left_out": arm.time.left_out if arm.time else None,
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


_UNKNOWN = frozenset({"", "?", "-"})


def columns(result: LabResult) -> dict[str, Cell]:
    """The columns of a paper's table, without those that nothing is known for: times of what was only written, say."""
    arms = [arm for script in result.scripts for arm in script.arms]
    known = {name: cell for name, cell in _COLUMNS.items() if {cell(arm) for arm in arms} - _UNKNOWN}
    if not any(several_baselines(script) for script in result.scripts):
        known.pop("Against", None)
    return known


def several_baselines(script: ScriptResult) -> bool:
    """Whether it must be said what an arm is compared with."""
    return sum(arm.spec.role is Role.BASELINE for arm in script.arms) > 1


def by_baseline(script: ScriptResult) -> list[ArmResult]:
    """Each baseline, followed by the arms that it is the baseline of."""
    place = {arm.spec.name: number for number, arm in enumerate(script.arms)}
    return sorted(script.arms, key=lambda arm: place.get(arm.spec.against or arm.spec.name, len(place)))


def remarks(script: ScriptResult) -> list[str]:
    """What a reader of the table must know: the device that was not there, and the noise."""
    return [*script.notes, *noise_lines(script)]


def noise_lines(script: ScriptResult) -> list[str]:
    """What ratios noise alone makes; nothing where nothing was measured."""
    if script.band is not None:
        return [f"Noise: two captures of the same ({', '.join(script.controls)}) have ratios from {_band(script.band)}"]
    if any(arm.time for arm in script.arms):
        return ["Noise: not known, the A/A control was not measured"]
    return []


def _band(band: Interval) -> str:
    return f"{number_text(band[0])} to {number_text(band[1])}; no effect is less"


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
        return interval_text(arm.time.whole.ratio, arm.time.whole.ci95)
    short = str(arm.time.why_not).partition(":")[0]
    return short if short == NO_EFFECT else f"not credited: {short}"


def _count(name: str) -> Cell:
    def cell(arm: ArmResult) -> str:
        count = getattr(arm.after, name, None)
        return "?" if count is None else str(count)

    return cell


def _megabytes(arm: ArmResult) -> str:
    moved = (arm.after or Summary()).bytes_moved
    return "?" if moved is None else f"{moved / _MEGA:.4g}"


def _label(arm: ArmResult) -> str:
    return _ROWS.get(arm.spec.name, arm.spec.name)


def _time(arm: ArmResult) -> str:
    return f"{arm.time.whole.median_s * 1e3:.4g}" if arm.time else ""


_COLUMNS: Mapping[str, Cell] = {
    "Arm": _label,
    "Verdict": verdict_text,
    "Against": lambda arm: arm.spec.against or "",
    "Nodes": _count("scheduler_nodes"),
    "Groups": _count("groups"),
    "Calls": _count("kernel_calls"),
    "Loop nests": _count("loop_nests"),
    "MB moved": _megabytes,
    "Compile (s)": lambda arm: "-" if arm.run.compile_s is None else f"{arm.run.compile_s:.1f}",
    "Time (ms)": _time,
    "Ratio [95 % CI]": ratio_text,
}
_TEXTS = frozenset({"Arm", "Verdict", "Against"})


def markdown_text(result: LabResult) -> str:
    """One table per script."""
    return "\n".join("\n".join(_markdown(result, script)) + "\n" for script in result.scripts)


def _markdown(result: LabResult, script: ScriptResult) -> Iterator[str]:
    chosen = columns(result)
    if len(result.scripts) > 1:
        yield f"### {_escaped_markdown(script.script.path)}\n"
    yield _markdown_line(list(chosen))
    yield _markdown_line(["---" if name in _TEXTS else "---:" for name in chosen], str)
    for arm in script.arms:
        yield _markdown_line([cell(arm) for cell in chosen.values()])
    for text in remarks(script):
        yield f"\n{_escaped_markdown(text)}"


def _escaped_markdown(text: str) -> str:
    return "".join(f"\\{char}" if char in "\\`*_|<>[]#" else char for char in text)


def _markdown_line(cells: Sequence[str], escape: Callable[[str], str] = _escaped_markdown) -> str:
    return f"| {' | '.join(map(escape, cells))} |"


_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}


def _escaped_latex(text: str) -> str:
    return "".join(_LATEX.get(char, f"\\{char}" if char in "&%$#_{}" else char) for char in text)


def latex_text(result: LabResult) -> str:
    """One tabular per script, rules by booktabs; remarks are comments."""
    chosen = columns(result)
    return "\n".join("\n".join(_latex(script, chosen)) + "\n" for script in result.scripts)


def _latex(script: ScriptResult, chosen: Mapping[str, Cell]) -> Iterator[str]:
    for text in (script.script.path, *remarks(script)):
        yield f"% {' '.join(text.split())}"
    yield rf"\begin{{tabular}}{{{''.join('l' if name in _TEXTS else 'r' for name in chosen)}}}"
    yield r"\toprule"
    yield _latex_line(list(chosen))
    yield r"\midrule"
    for arm in script.arms:
        yield _latex_line([cell(arm) for cell in chosen.values()])
    yield r"\bottomrule"
    yield r"\end{tabular}"


def _latex_line(cells: Sequence[str]) -> str:
    return rf"{' & '.join(map(_escaped_latex, cells))} \\"
