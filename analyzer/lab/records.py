"""What the laboratory plans, does and concludes, as frozen facts. Times are seconds, ratios are to the baseline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from analyzer.capture import Progress
from analyzer.facts import Summary
from analyzer.model import StrEnum
from analyzer.verdict import AuditResult, Verdict

Interval = tuple[float, float]
"""Both ends of a 95 % interval."""

Sessions = tuple[tuple[float, ...], ...]
"""One value per round, by session: all arms' processes are started anew for each."""


@dataclass(frozen=True, slots=True)
class Script:
    """A script with its arguments; `label` names it and is unique among the scripts of one call."""

    path: str
    arguments: tuple[str, ...] = ()
    label: str = "script"


class Role(StrEnum):
    """What an arm is there for."""

    BASELINE = "baseline"
    CONTROL = "control"
    ABLATION = "ablation"


@dataclass(frozen=True, slots=True)
class ArmSpec:
    """One capture: `name` is its folder, `against` the arm that it is judged by (None for a baseline).

    `ablations` are switched off in it; `baseline_of` are ablations whose features must be on, as in its baseline.
    """

    name: str
    role: Role
    ablations: tuple[str, ...] = ()
    baseline_of: tuple[str, ...] = ()
    against: str | None = None


class Status(StrEnum):
    """How the capture of an arm ended."""

    FINE = "fine"
    CRASHED = "crashed"
    TIMEOUT = "timeout"
    INTERRUPTED = "interrupted"
    NO_GRAPHS = "no graphs"
    IMPOSSIBLE = "impossible"


@dataclass(frozen=True, slots=True)
class ArmRun:
    """A captured arm. `compile_s` is Inductor's time for all its graphs, the compilers' of their kernels included.

    It is None where kernels were written and not compiled.

    `kept`: an earlier call captured it. `why`: what went wrong, None for a fine one; `log`: what the script then said.
    """

    spec: ArmSpec
    status: Status
    folder: Path
    why: str | None = None
    duration_s: float | None = None
    compile_s: float | None = None
    kept: bool = False
    log: Path | None = None


@dataclass(frozen=True, slots=True)
class Agreement:
    """An arm's outputs beside its baseline's on the same inputs, over all graphs.

    `close` within torch.testing's tolerances; None: they could not be compared. `max_rel` is relative to the largest
    magnitude of each tensor. `same_inputs`: False where a graph ran on its own inputs, since the others do not fit.
    """

    close: bool | None
    max_abs: float | None = None
    max_rel: float | None = None
    same_inputs: bool = True
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ArmSamples:
    """Seconds per call of every graph: for each session, one value a round; none where the session is left out.

    `calls` is how often the script called each graph; `left_out` says why sessions are.
    """

    rounds: Mapping[str, Sessions] = field(default_factory=dict)
    calls: Mapping[str, int] = field(default_factory=dict)
    agreement: Agreement | None = None
    failure: str | None = None
    left_out: str | None = None


@dataclass(frozen=True, slots=True)
class SessionSamples:
    """What one session of measuring gave: each arm's graphs with one value a round, and which arms failed, and why.

    `calls` is how often the script called each graph. `other_code` tells of arms that did not run the code that was
    audited, as when autotuning picks another kernel: no rounds of them are kept.
    """

    rounds: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)
    calls: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    agreements: Mapping[str, Agreement] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)
    other_code: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Measuring:
    """How far a measurement is: the session's number of how many, from 1, and what it does in a few words."""

    session: int
    sessions: int
    doing: str


Step = Progress | Measuring
OnStep = Callable[[Step], None]
"""Called while a task goes on. It may raise KeyboardInterrupt to stop it."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """A time, and its ratio to the baseline's: above 1 is slower. `sessions`: the ratio in each of them."""

    median_s: float
    ratio: float
    ci95: Interval
    sessions: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class ArmTime:
    """An arm's time per script run and per graph. `credited`: whether the ratio is an effect of the ablation.

    `why_not` says why it is none: the verdict, or a ratio that is no larger than the noise. `noise`: the ratios that
    noise alone makes beside the arm's baseline; None where no control was measured. `left_out`: why some sessions are.
    """

    whole: Ratio
    graphs: Mapping[str, Ratio]
    credited: bool
    why_not: str | None = None
    noise: Interval | None = None
    left_out: str | None = None


@dataclass(frozen=True, slots=True)
class ArmResult:
    """One row of the table. `before` and `after` are summed over the graphs of the baseline and of the arm."""

    run: ArmRun
    verdict: Verdict | None = None
    masked_by: str | None = None
    why: str = ""
    audits: tuple[AuditResult, ...] = ()
    before: Summary | None = None
    after: Summary | None = None
    time: ArmTime | None = None
    agreement: Agreement | None = None
    untimed: str | None = None

    @property
    def spec(self) -> ArmSpec:
        """What the arm is."""
        return self.run.spec


@dataclass(frozen=True, slots=True)
class Effect:
    """A log-ratio and its interval: `kind` is total, main, interaction or shapley.

    `measurable`: it is told from the noise. `share`: of a measurable total, for shapley.
    """

    kind: str
    of: tuple[str, ...]
    log_ratio: float
    ci95: Interval
    share: float | None = None
    measurable: bool = True


@dataclass(frozen=True, slots=True)
class Factorial:
    """Effects of a full factorial experiment; `why_not` when its arms do not allow any. `text`: in two sentences."""

    ablations: tuple[str, ...]
    total: Effect | None = None
    effects: tuple[Effect, ...] = ()
    text: str = ""
    why_not: str | None = None


@dataclass(frozen=True, slots=True)
class ScriptResult:
    """The table of one script. `band`: ratios that noise alone makes, by `controls`: arms with the baseline's code."""

    script: Script
    arms: tuple[ArmResult, ...]
    band: Interval | None = None
    controls: tuple[str, ...] = ()
    factorial: Factorial | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LabResult:
    """All tables of one call."""

    scripts: tuple[ScriptResult, ...]


Watcher = Callable[[Script, str, str], None]
"""Called with a script, an arm's name and a few words on where it stands."""
