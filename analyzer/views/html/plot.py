"""The ratios of an ablation table as a plot: a dot and its interval per arm, on a logarithmic scale."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor, log

from analyzer.lab.records import ArmResult, Interval, Role, ScriptResult
from analyzer.views.text import plain, shortened

LABELS, PLOT, VALUES = 190, 420, 180
ROW, TOP, BOTTOM = 30, 14, 40
TICKS = (0.1, 0.2, 0.33, 0.5, 0.67, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0)
MOST_TICKS = 7


@dataclass(frozen=True, slots=True)
class Dot:
    """One arm, in pixels; `credited` dots are filled, the others hollow: their ratio is no effect of the ablation."""

    label: str
    value: str
    x: float
    low: float
    high: float
    y: float
    credited: bool
    told: str


@dataclass(frozen=True, slots=True)
class Plot:
    """The whole plot, in pixels: the noise band from `band[0]` to `band[1]`, the baseline at `one`."""

    width: int
    height: int
    bottom: int
    one: float
    band: tuple[float, float] | None
    ticks: tuple[tuple[float, str], ...]
    dots: tuple[Dot, ...]
    label_x: int = LABELS - 10
    value_x: int = LABELS + PLOT + 16


def plot(script: ScriptResult) -> Plot | None:
    """The plot of a script's measured arms; None when none was measured."""
    arms = [arm for arm in script.arms if arm.time is not None and arm.spec.against is not None]
    if not arms:
        return None
    scale = _scale(arms, script.band)
    dots = tuple(_dot(arm, scale, TOP + ROW * (row + 0.5)) for row, arm in enumerate(arms))
    bottom = TOP + ROW * len(arms)
    band = (scale.x(script.band[0]), scale.x(script.band[1])) if script.band is not None else None
    ticks = tuple((scale.x(tick), f"{tick:g}×") for tick in scale.ticks())
    return Plot(LABELS + PLOT + VALUES, bottom + BOTTOM, bottom, scale.x(1.0), band, ticks, dots)


@dataclass(frozen=True, slots=True)
class _Scale:
    low: float
    high: float

    def x(self, ratio: float) -> float:
        return round(LABELS + PLOT * (log(ratio) - self.low) / (self.high - self.low), 1)

    def ticks(self) -> Sequence[float]:
        inside = [tick for tick in TICKS if self.low <= log(tick) <= self.high]
        step = ceil(len(inside) / MOST_TICKS)
        one = inside.index(1.0)
        return inside[one % step :: step]


def _scale(arms: Sequence[ArmResult], band: Interval | None) -> _Scale:
    """Room for every interval, the band and the baseline, in steps that keep small noise from filling the plot."""
    logs = [log(ratio) for ratio in (1.0, *(band or ()), *_ends(arms)) if ratio > 0]
    step = log(1.1)
    return _Scale(floor(min(logs) / step - 0.2) * step, ceil(max(logs) / step + 0.2) * step)


def _ends(arms: Sequence[ArmResult]) -> Iterator[float]:
    for arm in arms:
        if arm.time is not None:
            yield from (*arm.time.whole.ci95, arm.time.whole.ratio)


def _dot(arm: ArmResult, scale: _Scale, y: float) -> Dot:
    time = arm.time
    assert time is not None
    whole = time.whole
    low, high = whole.ci95
    value = f"{whole.ratio:.3f} [{low:.3f}, {high:.3f}]"
    verdict = f", {arm.verdict}" if arm.verdict is not None else ""
    no_effect = f"; no effect: {time.why_not}" if time.why_not else ""
    told = f"{arm.spec.name}{verdict}: {value}{no_effect}"
    shown = value if time.credited or arm.spec.role is Role.CONTROL else "not credited"
    label = plain(shortened(arm.spec.name, 24))
    return Dot(label, shown, scale.x(whole.ratio), scale.x(low), scale.x(high), y, time.credited, told)
