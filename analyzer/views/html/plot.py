"""The ratios of an ablation table as a plot: a dot and its interval per proven effect, on a logarithmic scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log

from analyzer.lab.records import ArmResult, Interval, Ratio, Role, ScriptResult
from analyzer.lab.tables import by_baseline, ratio_text
from analyzer.views.text import plain, shortened

LABELS, PLOT, VALUES = 190, 420, 210
ROW, TOP, BOTTOM = 30, 14, 40
TICKS = (0.1, 0.2, 0.33, 0.5, 0.67, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0)
TICK_WIDTH = 44


@dataclass(frozen=True, slots=True)
class Row:
    """One arm, in pixels. Without a proven effect there is no `span` (low, ratio, high), and `value` says so.

    `band`: the ratios that noise alone makes beside its baseline. A control's dot is hollow: its ratio is noise.
    """

    label: str
    value: str
    y: float
    span: tuple[float, float, float] | None
    band: tuple[float, float] | None
    hollow: bool


@dataclass(frozen=True, slots=True)
class Plot:
    """The whole plot, in pixels, with the baseline at `one`."""

    width: int
    height: int
    bottom: int
    one: float
    ticks: tuple[tuple[float, str], ...]
    rows: tuple[Row, ...]
    label_x: int = LABELS - 10
    value_x: int = LABELS + PLOT + 16


def plot(script: ScriptResult) -> Plot | None:
    """The plot of a script's measured arms; None when none was measured."""
    arms = [arm for arm in by_baseline(script) if arm.time is not None and arm.spec.against is not None]
    if not arms:
        return None
    bands = [arm.time.noise for arm in arms if arm.time and arm.time.noise]
    scale = _scale([ratio for arm in arms if (ratio := _shown(arm)) is not None], bands)
    rows = tuple(_row(arm, scale, TOP + ROW * (at + 0.5)) for at, arm in enumerate(arms))
    bottom = TOP + ROW * len(arms)
    ticks = tuple((scale.x(tick), f"{tick:g}×") for tick in scale.ticks())
    return Plot(LABELS + PLOT + VALUES, bottom + BOTTOM, bottom, scale.x(1.0), ticks, rows)


def _shown(arm: ArmResult) -> Ratio | None:
    """The ratio of a credited arm or of a control; no other is an effect of anything."""
    if arm.time is None or not (arm.time.credited or arm.spec.role is Role.CONTROL):
        return None
    return arm.time.whole


@dataclass(frozen=True, slots=True)
class _Scale:
    low: float
    high: float

    def x(self, ratio: float) -> float:
        return round(LABELS + PLOT * (log(ratio) - self.low) / (self.high - self.low), 1)

    def ticks(self) -> Sequence[float]:
        """Those that have room, the baseline's own first."""
        kept = [1.0]
        for tick in sorted(TICKS, key=lambda tick: abs(log(tick))):
            inside = self.low <= log(tick) <= self.high
            if inside and all(abs(self.x(tick) - self.x(other)) >= TICK_WIDTH for other in kept):
                kept.append(tick)
        return sorted(kept)


def _scale(ratios: Sequence[Ratio], bands: Sequence[Interval]) -> _Scale:
    """Room for every interval, the noise and the baseline, in steps that keep small noise from filling the plot."""
    ends = [end for ratio in ratios for end in (*ratio.ci95, ratio.ratio)]
    logs = [log(end) for end in (1.0, *(end for band in bands for end in band), *ends) if end > 0]
    step = log(1.1)
    return _Scale(floor(min(logs) / step - 0.2) * step, ceil(max(logs) / step + 0.2) * step)


def _row(arm: ArmResult, scale: _Scale, y: float) -> Row:
    ratio = _shown(arm)
    low, high = ratio.ci95 if ratio is not None else (0.0, 0.0)
    span = (scale.x(low), scale.x(ratio.ratio), scale.x(high)) if ratio is not None else None
    noise = arm.time.noise if arm.time else None
    band = (scale.x(noise[0]), scale.x(noise[1])) if noise is not None else None
    return Row(plain(shortened(arm.spec.name, 24)), ratio_text(arm), y, span, band, arm.spec.role is Role.CONTROL)
