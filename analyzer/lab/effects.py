"""From samples to ratios with intervals, and whether a ratio may be called an effect of an ablation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import median

from analyzer.errors import UsageError
from analyzer.lab.records import ArmSamples, ArmTime, Interval, Ratio, Sessions
from analyzer.verdict import Verdict

RESAMPLES = 2000
NO_EFFECT = "no measurable effect"
UNKNOWN_NOISE = "the noise is not known: the A/A control was not measured"
FEWEST_SESSIONS = 2
ONE_SESSION = "the noise is not known: a single session does not show how much two processes differ"


def require_scipy() -> None:
    """UsageError with the way out where scipy is missing, before anything is captured."""
    try:
        import scipy  # noqa: F401, PLC0415
    except ImportError as error:
        raise UsageError("times need scipy", "pip install 'inductor-audit[lab]'") from error


def whole_script(samples: ArmSamples) -> Sessions:
    """Seconds of all calls that the script makes, per round: calls times seconds per call, over the graphs."""
    calls = [samples.calls[name] for name in samples.rounds]
    return tuple(_summed(calls, session) for session in zip(*samples.rounds.values(), strict=True))


def _summed(calls: Sequence[int], session: Sequence[tuple[float, ...]]) -> tuple[float, ...]:
    """Nothing where a graph was not measured in the session."""
    if not all(session):
        return ()
    rounds = zip(*session, strict=True)
    return tuple(sum(number * value for number, value in zip(calls, row, strict=True)) for row in rounds)


def measured_in_all(rows: Sequence[Sessions]) -> list[tuple[tuple[float, ...], ...]]:
    """The sessions in which all of these arms were measured."""
    return [part for part in zip(*rows, strict=True) if all(part)]


@dataclass(frozen=True, slots=True)
class Contrast:
    """A weighted sum of arms with its 95 % interval, and what each session alone gives for it."""

    value: float
    ci95: Interval
    sessions: tuple[float, ...]


def contrast(rows: Sequence[Sessions], weights: Sequence[float]) -> Contrast:
    """The mean over sessions of the median over rounds; there must be sessions in which all arms were measured.

    Rounds are paired, which takes out the drift that arms share. Two processes of one program differ for as long as
    they live, and no number of rounds within them shows that: so the interval covers both what other sessions may give
    (Student's t) and what other rounds may (a bootstrap).
    """
    import numpy as np  # noqa: PLC0415 - comes with scipy, both slow to import

    parts = measured_in_all(rows)
    sessions = [sum(w * np.asarray(row) for w, row in zip(weights, part, strict=True)) for part in parts]
    medians = tuple(float(np.median(session)) for session in sessions)
    ends = [_of_rounds([value for session in sessions for value in session]), _of_sessions(medians)]
    return Contrast(float(np.mean(medians)), (min(low for low, _ in ends), max(high for _, high in ends)), medians)


def _of_sessions(medians: Sequence[float]) -> Interval:
    """Of their mean; of a single one nothing is known but itself."""
    import numpy as np  # noqa: PLC0415
    from scipy import stats  # noqa: PLC0415

    mean, error = float(np.mean(medians)), float(stats.sem(medians)) if len(medians) > 1 else 0.0
    half = float(stats.t.ppf(0.975, len(medians) - 1)) * error if error else 0.0
    return mean - half, mean + half


def _of_rounds(values: Sequence[float]) -> Interval:
    """A percentile bootstrap of the median."""
    import numpy as np  # noqa: PLC0415
    from scipy import stats  # noqa: PLC0415

    drawn = stats.bootstrap(
        (np.asarray(values),),
        np.median,
        n_resamples=RESAMPLES,
        method="percentile",
        random_state=np.random.default_rng(0),
    )
    return float(drawn.confidence_interval.low), float(drawn.confidence_interval.high)


def ratio(arm: Sessions, base: Sessions) -> Ratio:
    """The median of the rounds' ratios, each taken between two neighbours in time; geometric mean over sessions."""
    found = contrast([logs(arm), logs(base)], [1.0, -1.0])
    low, high = found.ci95
    time = median(time for session in arm for time in session)
    return Ratio(time, exp(found.value), (exp(low), exp(high)), tuple(map(exp, found.sessions)))


def logs(sessions: Sessions) -> Sessions:
    """The logarithm of each time."""
    return tuple(tuple(log(time) for time in session) for session in sessions)


def noise_band(controls: Sequence[Ratio]) -> Interval:
    """What ratios two captures of the same have: the widest of any session of the controls, made symmetric about 1.

    Of a single session, the widest that its rounds may give.
    """
    seen = (control.sessions if len(control.sessions) > 1 else control.ci95 for control in controls)
    width = max(abs(log(ratio)) for some in seen for ratio in some)
    return exp(-width), exp(width)


def arm_time(
    arm: ArmSamples, base: ArmSamples, verdict: Verdict | None, close: bool | None, band: Interval | None
) -> ArmTime:
    """The arm's ratios. Credited to the ablation only if it was EFFECTIVE and the whole's is told from noise."""
    whole = ratio(whole_script(arm), whole_script(base))
    pairs = {name: (values, base.rounds[name]) for name, values in arm.rounds.items() if name in base.rounds}
    graphs = {name: ratio(*pair) for name, pair in pairs.items() if measured_in_all(pair)}
    why_not = _why_not_credited(whole, verdict, close, band)
    return ArmTime(whole, graphs, why_not is None, why_not, band, arm.left_out or _of_baseline(base.left_out))


def _of_baseline(left_out: str | None) -> str | None:
    return f"of its baseline, {left_out}" if left_out else None


def interval_text(ratio: float, ci95: Interval) -> str:
    """`1.240 [1.210, 1.270]`."""
    return f"{number_text(ratio)} [{number_text(ci95[0])}, {number_text(ci95[1])}]"


def number_text(ratio: float) -> str:
    """Three decimals; three digits of what is so small or so large that those would hide it or be idle."""
    return f"{ratio:.3f}" if 0.1 <= ratio < 100 else f"{ratio:.3g}"


def _why_not_credited(whole: Ratio, verdict: Verdict | None, close: bool | None, band: Interval | None) -> str | None:
    if verdict is None:
        return "no ablation"
    if verdict is not Verdict.EFFECTIVE:
        return f"{verdict}: only an EFFECTIVE arm shows what its ablation is worth"
    if close is False:
        return "the results differ from the baseline's"
    if band is None:
        return UNKNOWN_NOISE
    if len(whole.sessions) < FEWEST_SESSIONS:
        return ONE_SESSION
    if within_noise(whole.ratio, whole.ci95, band):
        return f"{NO_EFFECT}: {interval_text(whole.ratio, whole.ci95)}, where {noise_text(band)}"
    return None


def within_noise(ratio: float, ci95: Interval, band: Interval) -> bool:
    """Whether a ratio is no larger than what noise alone makes, or its interval holds 1: then it proves nothing.

    Of two equal arms in five sessions, with one control, this calls one in two hundred different.
    """
    return band[0] <= ratio <= band[1] or ci95[0] <= 1 <= ci95[1]


def noise_text(band: Interval) -> str:
    """What a ratio must leave to be an effect."""
    return f"noise alone gives {number_text(band[0])} to {number_text(band[1])}"
