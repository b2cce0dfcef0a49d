"""The verdict on an arm: audits of its ablations, and the counts of its graphs summed up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path

from analyzer.ablations import ABLATIONS
from analyzer.analyze import analyze
from analyzer.audit import audit
from analyzer.errors import AnalyzerError
from analyzer.facts import Summary, known_sum
from analyzer.lab.records import ArmResult, ArmRun, ArmSpec, Role, Status
from analyzer.lab.same_code import SCALAR, other_code
from analyzer.load import load_run
from analyzer.model import Run
from analyzer.verdict import AuditResult, GraphAudit, Verdict, summarize

FOR_THE_NOISE = "the baseline once more, for the noise"


class Judge:
    """Judges the arms of one script, each run read once."""

    def __init__(self, runs: Mapping[str, ArmRun]) -> None:
        self._runs = runs
        self._load = cache(_loaded)
        self._sum = cache(_summed)

    def result(self, spec: ArmSpec) -> ArmResult:
        """The row of an arm, without times. An arm that failed, or whose baseline did, is UNDECIDED."""
        run = self._runs[spec.name]
        if run.status is not Status.FINE:
            return ArmResult(run, None if spec.role is Role.BASELINE else Verdict.UNDECIDED, None, _failed(run))
        after = self._sum(run.folder)
        base = self._runs.get(spec.against or "")
        if base is None:
            return ArmResult(run, after=after)
        if base.status is not Status.FINE:
            return ArmResult(run, Verdict.UNDECIDED, None, f"its baseline failed: {_failed(base)}", after=after)
        before = self._sum(base.folder)
        if spec.role is Role.CONTROL:
            why = self._irreproducible(spec) or FOR_THE_NOISE
            return ArmResult(run, None, None, why, before=before, after=after)
        return self._judged(run, before, after)

    def _judged(self, run: ArmRun, before: Summary, after: Summary) -> ArmResult:
        try:
            audits = tuple(self._audits(run.spec))
        except AnalyzerError as error:
            return ArmResult(run, Verdict.UNDECIDED, None, str(error), before=before, after=after)
        verdict = summarize(one.verdict for one in audits)
        if (other := self._by_chance(run.spec, verdict)) is not None:
            return ArmResult(run, Verdict.UNDECIDED, None, other, audits, before, after)
        masked = next((one.masked_by for one in audits if one.masked_by), None)
        return ArmResult(run, verdict, masked, _why(audits, verdict), audits, before, after)

    def _by_chance(self, spec: ArmSpec, verdict: Verdict) -> str | None:
        """Where two captures of the baseline have different code: why the verdict is that of one of them alone."""
        controls = (run for run in self._runs.values() if run.spec.role is Role.CONTROL)
        control = next((run for run in controls if run.spec.against == spec.against), None)
        name = _joined(spec.ablations)
        if control is None or name is None or control.status is not Status.FINE:
            return None
        if (why := self._irreproducible(control.spec)) is None:
            return None
        other = audit(self._run(control.spec.name), self._run(spec.name), name).verdict
        if other is verdict:
            return None
        return f"{verdict} beside {spec.against}, {other} beside {control.spec.name}: {why}."

    def _irreproducible(self, control: ArmSpec) -> str | None:
        """How a baseline and its control, captured alike, differ in their code; None when they do not."""
        other = other_code(self._runs[control.against or ""].folder, self._runs[control.name].folder)
        if other is None or SCALAR in other:
            return other and f"captured alike, the two differ: {other}"
        return f"captured alike, the two differ, as when autotuning picks another kernel each time: {other}"

    def _audits(self, spec: ArmSpec) -> Iterator[AuditResult]:
        """One audit per ablation. Of several, each is judged against the arm that lacks it alone."""
        joined = _joined(spec.ablations)
        if joined is not None:
            yield audit(self._run(spec.against), self._run(spec.name), joined)
            return
        for name in spec.ablations:
            without = set(spec.ablations) - {name}
            arm = next(run for run in self._runs.values() if _is_subset_arm(run.spec, without))
            if arm.status is not Status.FINE:
                raise AnalyzerError(f"the arm to compare with failed: {arm.spec.name}: {_failed(arm)}")
            yield audit(self._run(arm.spec.name), self._run(spec.name), name)

    def _run(self, name: str | None) -> Run:
        return self._load(self._runs[name or ""].folder)


def _is_subset_arm(spec: ArmSpec, ablations: set[str]) -> bool:
    return spec.role is not Role.CONTROL and set(spec.ablations) == ablations


def _loaded(folder: Path) -> Run:
    return load_run(folder)


def _summed(folder: Path) -> Summary:
    """The counts of a run; None for a count that some graph does not know."""
    return total([analyze(graph).summary for graph in load_run(folder).graphs])


def total(summaries: Sequence[Summary]) -> Summary:
    """The sum of each count."""
    names = [field.name for field in fields(Summary)]
    return Summary(**{name: _sum(getattr(summary, name) for summary in summaries) for name in names})


def _sum(values: Iterable[int | None]) -> int | None:
    counts = list(values)
    return known_sum(counts) if counts else None


def _joined(names: tuple[str, ...]) -> str | None:
    """The registry's name for these ablations together: its own for a single one."""
    known = {frozenset(entry.name.split("+")): entry.name for entry in ABLATIONS}
    return names[0] if len(names) == 1 else known.get(frozenset(names))


def _failed(run: ArmRun) -> str:
    return f"{run.status}: {run.why}" if run.why else str(run.status)


def _why(audits: Sequence[AuditResult], verdict: Verdict) -> str:
    """The reason of the graph that decides the verdict, with its name when there are several."""
    graphs = [graph for one in audits for graph in one.graphs]
    deciding = next((graph for graph in graphs if graph.verdict is verdict), graphs[0] if graphs else None)
    if deciding is None:
        return "neither run holds a compiled graph"
    return deciding.why if len(graphs) == 1 else f"{deciding.name}: {deciding.why}{_others(graphs, deciding)}"


def _others(graphs: Sequence[GraphAudit], told: GraphAudit) -> str:
    rest = [f"{graph.name} {graph.verdict}" for graph in graphs if graph is not told and graph.verdict != told.verdict]
    return f" ({'; '.join(rest)})" if rest else ""
