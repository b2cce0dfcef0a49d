"""The tables of an experiment, and what is shown while it works."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.live import Live
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from analyzer.facts import Summary
from analyzer.lab.effects import NO_EFFECT, interval_text
from analyzer.lab.judging import FOR_THE_NOISE
from analyzer.lab.records import (
    Agreement,
    ArmResult,
    Effect,
    Factorial,
    LabResult,
    Measuring,
    Role,
    Script,
    ScriptResult,
    Step,
)
from analyzer.lab.tables import by_baseline, noise_lines, ratio_text, verdict_text
from analyzer.verdict import Verdict
from analyzer.views.text import byte_text, counted, headed, indented, plain

_INDENT = "  "
_GOOD = "bold green"
_STYLES = {Verdict.EFFECTIVE: _GOOD, Verdict.PARTIAL: "bold yellow", Verdict.NO_OPPORTUNITY: "bold yellow"}


@dataclass(frozen=True, slots=True)
class LabView:
    """All tables; `full` leaves no reason short."""

    result: LabResult
    full: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        for number, script in enumerate(self.result.scripts):
            if number:
                yield Text("")
            yield from _script(script, self.full)


def _script(script: ScriptResult, full: bool) -> Iterator[RenderableType]:
    yield headed("Ablations of ", plain(" ".join((script.script.path, *script.script.arguments))))
    for note in script.notes:
        yield indented(Text(plain(note), style="yellow"))
    yield Text("")
    yield _counts(script)
    if any(arm.time or arm.untimed for arm in script.arms):
        yield Text("")
        yield _times(script)
        yield from _per_graph(script)
        yield from _noise(script)
    yield Text("")
    yield from _reasons(script, full)
    yield from _factorial(script)


@dataclass(frozen=True, slots=True)
class _Name:
    """The name of an arm, below its baseline's; it breaks behind its signs and never within a word."""

    text: str
    indent: str = ""

    @classmethod
    def of(cls, arm: ArmResult) -> _Name:
        return cls(plain(arm.spec.name), _INDENT if arm.spec.against is not None else "")

    def _pieces(self) -> list[str]:
        return re.split(r"(?<=[+-])", self.text)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        beside = len(self.indent)
        return Measurement(beside + max(map(len, self._pieces())), beside + len(self.text))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        lines = [""]
        for piece in self._pieces():
            if len(self.indent + lines[-1] + piece) > options.max_width:
                lines.append("")
            lines[-1] += piece
        yield Text("\n".join(self.indent + line for line in lines if line), overflow="fold")


def _table(texts: Sequence[str], numbers: Sequence[str] = ()) -> Table:
    """Columns of texts, which wrap, and of numbers, which do not; all text is what it looks like."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold underline")
    for name in texts:
        table.add_column(name, overflow="fold")
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _counts(script: ScriptResult) -> Table:
    """Without columns that nothing is known for: loop nests of Triton kernels, times of what was only written."""
    arms = by_baseline(script)
    columns = {name: [cell(arm) for arm in arms] for name, cell in _COUNTS.items()}
    known = {name: cells for name, cells in columns.items() if set(cells) - {"?", "-"}}
    table = _table(["arm", "verdict"], list(known))
    for arm, *cells in zip(arms, *known.values(), strict=True):
        table.add_row(_Name.of(arm), Text(plain(verdict_text(arm)), style=_style(arm)), *cells)
    return table


def _count(name: str) -> Callable[[ArmResult], str]:
    def cell(arm: ArmResult) -> str:
        count = getattr(arm.after, name, None)
        return "?" if count is None else f"{count:,}"

    return cell


_COUNTS: Mapping[str, Callable[[ArmResult], str]] = {
    "nodes": _count("scheduler_nodes"),
    "groups": _count("groups"),
    "calls": _count("kernel_calls"),
    "nests": _count("loop_nests"),
    "moved": lambda arm: byte_text((arm.after or Summary()).bytes_moved),
    "compile": lambda arm: "-" if arm.run.compile_s is None else f"{arm.run.compile_s:.1f} s",
}


def _style(arm: ArmResult) -> str:
    if arm.verdict is None:
        return "bold red" if arm.run.why else "dim"
    return _STYLES.get(arm.verdict, "bold red")


def _times(script: ScriptResult) -> Table:
    """Times are those of all calls of compiled graphs in a run of the script."""
    table = _table(["arm", "ratio to its baseline [95 %]", "results"], ["time per run"])
    for arm in by_baseline(script):
        if arm.run.why is None:
            time = seconds_text(arm.time.whole.median_s) if arm.time else "-"
            table.add_row(_Name.of(arm), Text(plain(ratio_text(arm))), _agrees(arm.agreement), time)
    return table


def seconds_text(value: float) -> str:
    """Milliseconds, or microseconds where those are few."""
    return f"{value * 1e3:.3g} ms" if value >= 1e-3 else f"{value * 1e6:.3g} µs"


def _agrees(agreement: Agreement | None) -> Text:
    styles = {None: "yellow", True: "", False: "bold red"}
    return Text(agreement_text(agreement), style=styles[agreement.close] if agreement is not None else "")


def agreement_text(agreement: Agreement | None) -> str:
    """Whether an arm's results are the baseline's; nothing where nobody compared them."""
    if agreement is None:
        return ""
    if agreement.close is None:
        return "not comparable"
    rel = f" (by {agreement.max_rel:.1g})" if agreement.max_rel else ""
    return f"agree{rel}" if agreement.close else f"DIFFER{rel}"


def _per_graph(script: ScriptResult) -> Iterator[RenderableType]:
    """Each graph of the arms whose ratio is shown, where there are several graphs."""
    shown = [arm for arm in script.arms if arm.time and arm.time.credited and len(arm.time.graphs) > 1]
    if shown:
        table = _table(["graph", "arm"], ["ratio [95 %]", "time"])
        for arm in shown:
            for name, graph in arm.time.graphs.items() if arm.time else ():
                table.add_row(
                    Text(plain(name)),
                    Text(plain(arm.spec.name)),
                    interval_text(graph.ratio, graph.ci95),
                    seconds_text(graph.median_s),
                )
        yield Text("")
        yield table


def _noise(script: ScriptResult) -> Iterator[RenderableType]:
    style = "yellow" if script.band is None else "bold cyan"
    for text in noise_lines(script):
        label, _, told = text.partition(": ")
        yield headed(f"{label.lower()}: ", plain(told), style)


def _reasons(script: ScriptResult, full: bool) -> Iterator[RenderableType]:
    """Why each arm is what it is, its failure or its numbers."""
    for arm in script.arms:
        told = list(told_of(arm, full))
        if told:
            yield headed(f"{plain(arm.spec.name)}: ", Text(plain(verdict_text(arm)), style=_style(arm)))
            for text in told:
                yield indented(Text(plain(text), overflow="fold"))


def told_of(arm: ArmResult, full: bool = True) -> Iterator[str]:
    """An arm's failure, its verdict's reason, and why it has no effect or other results."""
    if arm.run.why is not None:
        yield arm.run.why
        if arm.run.log is not None:
            yield f"What the script said: {arm.run.log}"
    elif arm.why and (arm.spec.role is Role.ABLATION or arm.why != FOR_THE_NOISE):
        yield arm.why if full else _first(arm.why)
    if arm.untimed:
        yield f"Not measured: {arm.untimed}"
    if arm.time and arm.time.left_out and arm.spec.role is not Role.BASELINE:
        yield f"Left out: {arm.time.left_out}"
    if arm.verdict is Verdict.EFFECTIVE and arm.time and not arm.time.credited:
        yield f"No effect is shown: {str(arm.time.why_not).removeprefix(f'{NO_EFFECT}: ')}."
    if arm.agreement is not None and arm.agreement.close is not True and arm.agreement.reason:
        yield f"Results: {arm.agreement.reason}"


def _first(why: str) -> str:
    """The first two sentences."""
    sentences = why.split(". ")
    return why if len(sentences) <= 2 else ". ".join(sentences[:2]) + ". …"


def _factorial(script: ScriptResult) -> Iterator[RenderableType]:
    found = script.factorial
    if found is None:
        return
    yield Text("")
    if found.why_not is not None:
        yield headed("effects: ", f"none, {plain(found.why_not)}", "bold yellow")
        return
    yield headed("effects: ", plain(found.text))
    table = _table(["effect", "of"], ["log ratio [95 %]", "share"])
    for cells in effect_rows(found):
        table.add_row(*cells)
    yield table


def effect_rows(found: Factorial) -> list[tuple[str, str, str, str]]:
    """Kind, ablations, log ratio with its interval, and share of every effect, or that it is none."""
    return [
        (effect.kind, " × ".join(effect.of), f"{effect.log_ratio:+.3f} [{low:+.3f}, {high:+.3f}]", _share(effect))
        for effect in (found.total, *found.effects)
        if effect is not None
        for low, high in [effect.ci95]
    ]


def _share(effect: Effect) -> str:
    share = [] if effect.share is None else [f"{100 * effect.share:.0f} %"]
    return ", ".join([*share, *([] if effect.measurable else [NO_EFFECT])])


# ------------------------------------------------------------------------------------------------------ while it works


_CAPTURING, _MEASURING = _AT_WORK = ("capturing", "measuring")


@dataclass(slots=True)
class LiveArms:
    """Where each arm stands: one table that changes on a terminal, a line per change elsewhere."""

    console: Console
    _states: dict[tuple[str, str], str] = field(default_factory=dict, init=False)
    _live: Live | None = field(default=None, init=False)

    def __enter__(self) -> LiveArms:
        if self.console.is_terminal:
            self._live = Live(console=self.console, get_renderable=self._table, transient=True, refresh_per_second=4)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def watch(self, script: Script, arm: str, state: str) -> None:
        """An arm is at another point."""
        self._states[script.label, arm] = state
        if self._live is None and state != "waiting":
            name = f"{script.label} {arm}".strip()
            self.console.print(Text(f"{plain(name)}: {plain(state)}"))

    def tick(self, task: Any, progress: Step) -> None:
        """A capture or a measurement goes on; elsewhere than on a terminal, each session of measuring gets a line."""
        if isinstance(progress, Measuring):
            session = f"{_MEASURING}, session {progress.session} of {progress.sessions}"
            if self._live is not None:
                self._states[task.script.label, ""] = f"{session}: {progress.doing}"
            elif self._states.get((task.script.label, "")) != session:
                self.watch(task.script, "", session)
        else:
            done = f"{_CAPTURING}: {progress.elapsed_s:.0f} s, {counted(progress.graphs, 'graph')} so far"
            self._states[task.script.label, task.spec.name] = done

    def _table(self) -> Table:
        """Where not all fit on the screen, those at work come first, and the last ones are counted."""
        table, rows, room = _table(["arm", "state"]), list(self._states.items()), self.console.height - 2
        hidden = len(rows) - room + 1 if len(rows) > room else 0
        if hidden:
            rows.sort(key=lambda row: not row[1].startswith(_AT_WORK))
        for (script, arm), state in rows[: len(rows) - hidden]:
            table.add_row(Text(plain(f"{script} {arm}".strip())), Text(plain(state)))
        if hidden:
            table.add_row(Text(f"and {counted(hidden, 'other')}"), "")
        return table
