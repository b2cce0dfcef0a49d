"""What follows from verdicts and samples: the noise of each comparison, ratios, and which of them are effects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from analyzer.lab.effects import arm_time, measured_in_all, noise_band, ratio, whole_script
from analyzer.lab.factorial import analyze_factorial
from analyzer.lab.records import ArmResult, ArmSamples, Factorial, Interval, Ratio, Role, Script, ScriptResult
from analyzer.lab.same_code import other_code
from analyzer.verdict import Verdict

Samples = Mapping[str, ArmSamples]


def conclude(
    script: Script, rows: Sequence[ArmResult], samples: Samples | None, factors: Sequence[str] = ()
) -> ScriptResult:
    """The rows with their times. `factors`: the ablations of a factorial experiment, none for a plain one.

    `band` and `controls` of the result are those of the first baseline; arms of another one have their own noise.
    """
    if samples is None:
        return ScriptResult(script, tuple(rows))
    controls = _controls(rows, samples)
    first = next(row for row in rows if row.spec.role is Role.CONTROL)
    beside = {row.spec.name: _beside(row, controls, first) for row in rows}
    bands = {name: _band(some) for name, some in beside.items()}
    timed = tuple(_timed(row, samples, bands[row.spec.name]) for row in rows)
    band, names = bands[first.spec.name], tuple(row.spec.name for row, _ in beside[first.spec.name])
    return ScriptResult(script, timed, band, names, _effects(factors, timed, samples, band))


Controls = list[tuple[ArmResult, Ratio]]


def _controls(rows: Sequence[ArmResult], samples: Samples) -> Controls:
    """The A/A controls, and every other arm that has exactly its baseline's code: their ratios are noise.

    A control with other code is one all the same: what autotuning happens to pick is part of the noise.
    """
    controls = []
    for row in rows:
        arm, base = samples.get(row.spec.name), samples.get(row.spec.against or "")
        if arm and base and _measured_together(arm, base) and _is_control(row, rows):
            controls.append((row, ratio(whole_script(arm), whole_script(base))))
    return controls


def _measured_together(arm: ArmSamples, base: ArmSamples) -> bool:
    """Whether any session measured both."""
    return bool(arm.rounds and base.rounds and measured_in_all([whole_script(arm), whole_script(base)]))


def _is_control(row: ArmResult, rows: Sequence[ArmResult]) -> bool:
    unchanged = row.verdict in (Verdict.INERT, Verdict.NO_OPPORTUNITY)
    return row.spec.role is Role.CONTROL or (unchanged and _same_code(row, rows))


def _same_code(row: ArmResult, rows: Sequence[ArmResult]) -> bool:
    base = next((other for other in rows if other.spec.name == row.spec.against), None)
    return base is not None and other_code(base.run.folder, row.run.folder) is None


def _beside(row: ArmResult, controls: Controls, first: ArmResult) -> Controls:
    """The controls that tell the noise of a row: the first A/A control, and those judged by the row's baseline."""
    return [pair for pair in controls if pair[0] is first or pair[0].spec.against == row.spec.against]


def _band(controls: Controls) -> Interval | None:
    return noise_band([found for _, found in controls]) if controls else None


def _timed(row: ArmResult, samples: Samples, band: Interval | None) -> ArmResult:
    arm, base = samples.get(row.spec.name), samples.get(row.spec.against or row.spec.name)
    if arm is None or base is None:
        return row
    if not _measured_together(arm, base):
        return replace(row, untimed=_why_untimed(arm, base), agreement=arm.agreement)
    close = arm.agreement.close if arm.agreement else None
    return replace(row, time=arm_time(arm, base, row.verdict, close, band), agreement=arm.agreement)


def _why_untimed(arm: ArmSamples, base: ArmSamples) -> str:
    if why := arm.failure or (arm.left_out if not arm.rounds else None):
        return why
    return f"its baseline was not measured: {base.failure or base.left_out or arm.left_out}"


def _effects(
    factors: Sequence[str], rows: Sequence[ArmResult], samples: Samples, band: Interval | None
) -> Factorial | None:
    base = next(row.spec.name for row in rows if row.spec.role is Role.BASELINE)
    return analyze_factorial(factors, rows, samples, base, band) if factors else None
