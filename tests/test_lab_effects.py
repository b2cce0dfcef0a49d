"""From samples to effects: intervals, the noise band, what is credited, and factorial contrasts by hand."""

from __future__ import annotations

import random
from itertools import chain, combinations
from math import exp, log
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.lab.factorial import analyze_factorial, factorial_effects, interaction, main_effect, shapley_weights
from analyzer.lab.records import ArmResult, ArmRun, ArmSamples, ArmSpec, ArmTime, Role, Script, Status
from analyzer.verdict import Verdict

pytest.importorskip("scipy")

from analyzer.lab.conclusions import conclude
from analyzer.lab.effects import arm_time, contrast, noise_band, ratio, whole_script, within_noise

BASE = ((1.0, 1.1, 0.9, 1.0, 1.0), (1.0, 1.0, 1.1, 0.9, 1.0))


def times(factor: float, base: tuple[tuple[float, ...], ...] = BASE) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(factor * value for value in session) for session in base)


def samples(factor: float = 1.0, **graphs: float) -> ArmSamples:
    return ArmSamples(
        {name: times(factor * scale) for name, scale in (graphs or {"g": 1.0}).items()}, dict.fromkeys(graphs or "g", 1)
    )


def test_drift_that_arms_share_does_not_widen_the_interval():
    """The machine gets four times slower; each round of the arm is exactly twice its baseline's."""
    drifting = ((1.0, 1.5, 2.0, 3.0, 4.0),)
    found = ratio(times(2.0, drifting), drifting)
    assert (found.median_s, found.ratio) == (4.0, pytest.approx(2.0))
    assert found.ci95 == (pytest.approx(2.0), pytest.approx(2.0))


def test_processes_that_differ_widen_the_interval():
    """Within each process there is no noise at all, but one is a tenth slower and one a tenth faster than its baseline.

    By hand: logs -0.0953, 0, 0.0953 have a standard error of 0.0953 / sqrt(3) = 0.0550, and Student's t of two degrees
    of freedom is 4.303 for 95 %.
    """
    base = ((1.0,) * 5,) * 3
    arm = ((1.1,) * 5, (1.0,) * 5, (1 / 1.1,) * 5)
    found = ratio(arm, base)
    assert found.ratio == pytest.approx(1.0)
    assert found.ci95 == (pytest.approx(exp(-4.303 * 0.0550), rel=1e-3), pytest.approx(exp(4.303 * 0.0550), rel=1e-3))
    assert found.sessions == pytest.approx((1.1, 1.0, 1 / 1.1))
    assert noise_band([found]) == (pytest.approx(1 / 1.1), pytest.approx(1.1))


def test_rounds_that_differ_widen_the_interval_of_sessions_that_agree():
    found = ratio(((0.8, 0.9, 1.0, 1.1, 1.2),) * 3, ((1.0,) * 5,) * 3)
    assert found.sessions == pytest.approx((1.0,) * 3)
    assert found.ci95[0] < 0.95
    assert found.ci95[1] > 1.05


def test_the_noise_of_a_single_session_is_that_of_its_rounds():
    found = ratio(((0.8, 0.9, 1.0, 1.1, 1.2),), ((1.0,) * 5,))
    low, high = noise_band([found])
    assert low == pytest.approx(min(found.ci95[0], 1 / found.ci95[1]))
    assert high == pytest.approx(1 / low)


@pytest.mark.parametrize("sessions", [3, 5])
def test_an_interval_holds_the_truth_as_often_as_it_says(sessions):
    """Processes differ by 4 % and rounds by 5 %: of 200 experiments on equal arms, about 95 % must contain 1.

    Hardly any is called an effect: it would also have to be larger than the control in any session.
    """
    draw = random.Random(1)

    def arm() -> tuple[tuple[float, ...], ...]:
        levels = [draw.gauss(0, 0.04) for _ in range(sessions)]
        return tuple(tuple(exp(level + draw.gauss(0, 0.05)) for _ in range(15)) for level in levels)

    held = credited = 0
    for _ in range(200):
        base = arm()
        found, control = ratio(arm(), base), ratio(arm(), base)
        held += found.ci95[0] <= 1.0 <= found.ci95[1]
        credited += not within_noise(found.ratio, found.ci95, noise_band([control]))
    assert held >= 184
    assert credited <= 4


def test_an_outlier_does_not_move_the_ratio():
    arm = ((1.0, 1.0, 1.0, 90.0, 1.0, 1.0, 1.0),)
    assert ratio(arm, ((1.0,) * 7,)).ratio == pytest.approx(1.0)


def test_only_sessions_that_measured_both_are_compared():
    """The arm ran other code in the first session, its baseline in the third."""
    arm = ArmSamples({"g": ((), (2.2,) * 5, (9.0,) * 5, (2.0,) * 5)}, {"g": 1}, left_out="1 of 4 sessions: why")
    base = ArmSamples({"g": ((1.0,) * 5, (1.0,) * 5, (), (1.0,) * 5)}, {"g": 1}, left_out="1 of 4 sessions: because")
    found = arm_time(arm, base, Verdict.EFFECTIVE, True, (0.9, 1.1))
    assert found.whole.sessions == pytest.approx((2.2, 2.0))
    assert found.graphs["g"].sessions == pytest.approx((2.2, 2.0))
    assert found.left_out == "1 of 4 sessions: why"
    steady = ArmSamples({"g": ((2.0,) * 5,) * 4}, {"g": 1})
    assert arm_time(steady, base, None, True, None).left_out == "of its baseline, 1 of 4 sessions: because"


def test_arms_that_no_session_measured_together_have_no_ratio():
    rows = [
        ArmResult(ArmRun(ArmSpec("tuned", Role.BASELINE), Status.FINE, Path("tuned"))),
        ArmResult(ArmRun(ArmSpec("control", Role.CONTROL, (), (), "tuned"), Status.FINE, Path("control"))),
    ]
    tuned = ArmSamples({"g": ((), (1.0,) * 5)}, {"g": 1}, left_out="1 of 2 sessions: other code")
    control = ArmSamples({"g": ((1.0,) * 5, ())}, {"g": 1}, left_out="1 of 2 sessions: more code")
    never = ArmSamples({}, {"g": 1}, left_out="2 of 2 sessions: no code")
    found = conclude(Script("s.py"), rows, {"tuned": tuned, "control": control})
    assert found.arms[1].untimed == "its baseline was not measured: 1 of 2 sessions: other code"
    assert (found.arms[0].time and found.arms[0].time.whole.sessions, found.band) == ((1.0,), None)
    assert conclude(Script("s.py"), rows, {"tuned": tuned, "control": never}).arms[1].untimed == never.left_out


def test_a_scripts_time_counts_each_graph_as_often_as_the_script_called_it():
    found = whole_script(ArmSamples({"a": ((1.0, 2.0),), "b": ((10.0, 20.0),)}, {"a": 3, "b": 1}))
    assert found == ((13.0, 26.0),)


def test_the_noise_band_is_symmetric_and_takes_the_worst_control():
    small = ratio(times(1.01), BASE)
    large = ratio(times(0.9), BASE)
    low, high = noise_band([small, large])
    assert low == pytest.approx(0.9)
    assert high == pytest.approx(1 / 0.9)


@pytest.mark.parametrize(
    ("verdict", "close", "factor", "band", "why_not"),
    [
        (Verdict.EFFECTIVE, True, 1.5, (0.9, 1.1), None),
        (Verdict.EFFECTIVE, None, 1.5, (0.9, 1.1), None),
        (Verdict.EFFECTIVE, True, 1.05, (0.9, 1.1), "no measurable effect"),
        (Verdict.EFFECTIVE, True, 1.5, None, "the noise is not known"),
        (Verdict.EFFECTIVE, False, 1.5, (0.9, 1.1), "the results differ"),
        (Verdict.INERT, True, 1.5, (0.9, 1.1), "INERT"),
        (Verdict.PARTIAL, True, 1.5, (0.9, 1.1), "PARTIAL"),
        (None, True, 1.5, (0.9, 1.1), "no ablation"),
    ],
)
def test_only_an_effective_ablation_beyond_the_noise_is_credited(verdict, close, factor, band, why_not):
    found = arm_time(samples(factor), samples(), verdict, close, band)
    assert found.whole.ratio == pytest.approx(factor)
    assert found.credited == (why_not is None)
    assert why_not is None or why_not in (found.why_not or "")


def beside_ones(*sessions: float, band: tuple[float, float]) -> ArmTime:
    """An EFFECTIVE arm with these ratios to its baseline, one a session."""
    arm = ArmSamples({"g": tuple((ratio,) * 5 for ratio in sessions)}, {"g": 1})
    return arm_time(arm, ArmSamples({"g": ((1.0,) * 5,) * len(sessions)}, {"g": 1}), Verdict.EFFECTIVE, True, band)


def test_an_interval_that_holds_one_is_no_effect():
    """One process of three shows a large ratio, the others hardly any: their mean is out of the band all the same."""
    found = beside_ones(1.45, 1.21, 1.02, band=(0.87, 1.15))
    assert found.whole.ratio == pytest.approx((1.45 * 1.21 * 1.02) ** (1 / 3))
    assert found.why_not == "no measurable effect: 1.214 [0.784, 1.879], where noise alone gives 0.870 to 1.150"


def test_a_small_effect_that_every_session_shows_is_one():
    """The interval reaches into the band of the control's widest session, and excludes 1."""
    found = beside_ones(1.026, 1.057, 1.056, 1.088, 1.036, band=(0.96, 1.04))
    assert (found.credited, found.whole.ratio) == (True, pytest.approx(1.052, abs=1e-3))
    assert found.whole.ci95[0] < 1.04
    assert not beside_ones(1.026, 1.057, 1.056, 1.088, 1.036, band=(0.94, 1.06)).credited


def test_one_session_shows_no_effect():
    assert beside_ones(3.0, band=(0.9, 1.1)).why_not == (
        "the noise is not known: a single session does not show how much two processes differ"
    )


def test_arms_of_another_baseline_do_not_widen_the_noise(monkeypatch):
    """A baseline whose process is disturbed (autotuning, say) hides effects among its own arms only."""
    monkeypatch.setattr("analyzer.lab.conclusions.other_code", lambda *_: None)

    def row(name: str, role: Role, against: str | None, verdict: Verdict | None = None) -> ArmResult:
        return ArmResult(ArmRun(ArmSpec(name, role, (), (), against), Status.FINE, Path(name)), verdict)

    rows = [
        row("plain", Role.BASELINE, None),
        row("control", Role.CONTROL, "plain"),
        row("tuned", Role.BASELINE, None),
        row("fusion", Role.ABLATION, "plain", Verdict.EFFECTIVE),
        row("freezing", Role.ABLATION, "tuned", Verdict.EFFECTIVE),
        row("templates", Role.ABLATION, "tuned", Verdict.NO_OPPORTUNITY),
    ]
    factors = {"plain": 1.0, "control": 1.01, "tuned": 1.0, "fusion": 1.2, "freezing": 1.2, "templates": 0.7}
    found = conclude(Script("s.py"), rows, {name: samples(factor) for name, factor in factors.items()})
    assert found.controls == ("control",)
    assert found.band == (pytest.approx(1 / 1.01), pytest.approx(1.01))
    credited = {one.spec.name: one.time.why_not for one in found.arms if one.time and one.spec.role is Role.ABLATION}
    assert credited["fusion"] is None
    assert str(credited["freezing"]).startswith("no measurable effect: 1.200")


def test_what_autotuning_picks_each_time_is_noise():
    """A control with other code than its baseline is a fifth slower: an arm that is as slow shows no effect."""

    def row(name: str, role: Role, against: str | None, verdict: Verdict | None = None) -> ArmResult:
        return ArmResult(ArmRun(ArmSpec(name, role, (), (), against), Status.FINE, Path("nowhere") / name), verdict)

    rows = [
        row("tuned", Role.BASELINE, None),
        row("control", Role.CONTROL, "tuned"),
        row("templates", Role.ABLATION, "tuned", Verdict.EFFECTIVE),
    ]
    found = conclude(Script("s.py"), rows, {"tuned": samples(), "control": samples(1.2), "templates": samples(1.2)})
    assert found.controls == ("control",)
    assert str(found.arms[2].time and found.arms[2].time.why_not).startswith("no measurable effect")


def test_an_arm_that_was_not_measured_says_why():
    rows = [
        ArmResult(ArmRun(ArmSpec("plain", Role.BASELINE), Status.FINE, Path("plain"))),
        ArmResult(ArmRun(ArmSpec("control", Role.CONTROL, (), (), "plain"), Status.FINE, Path("control"))),
    ]
    found = conclude(Script("s.py"), rows, {"plain": samples(), "control": ArmSamples(failure="the process is gone")})
    assert (found.arms[1].time, found.arms[1].untimed, found.band) == (None, "the process is gone", None)
    assert conclude(Script("s.py"), rows, None).arms == tuple(rows)


def test_ratios_per_graph():
    found = arm_time(samples(1.0, a=2.0, b=1.0), samples(1.0, a=1.0, b=1.0), Verdict.EFFECTIVE, True, (0.9, 1.1))
    assert {name: round(graph.ratio, 6) for name, graph in found.graphs.items()} == {"a": 2.0, "b": 1.0}
    assert found.whole.ratio == pytest.approx(1.5)


# ------------------------------------------------------------------------------------------------------------ factorial


def subsets(names: tuple[str, ...]) -> list[frozenset[str]]:
    return [frozenset(some) for some in chain.from_iterable(combinations(names, n) for n in range(len(names) + 1))]


def experiment(**arms: float) -> dict[frozenset[str], tuple[tuple[float, ...], ...]]:
    """Logs of times by ablated letters; `none` is the baseline."""
    return {
        frozenset(() if name == "none" else name): tuple(tuple(log(v) for v in s) for s in times(value))
        for name, value in arms.items()
    }


QUIET = (0.999, 1.001)
ONE_ALONE = experiment(none=1.0, a=1.04**30, b=1.04, ab=1.04**31)


def test_two_overlapping_optimizations():
    """The paper's shape: each alone costs little, both together a lot. log(4) is shared log(2) and log(2)."""
    found = factorial_effects(("a", "b"), experiment(none=1.0, a=1.0, b=1.0, ab=4.0), QUIET)
    effects = {(one.kind, one.of): one for one in found.effects}
    assert found.total is not None
    assert found.total.log_ratio == pytest.approx(log(4))
    assert effects["shapley", ("a",)].log_ratio == pytest.approx(log(2))
    assert effects["shapley", ("b",)].share == pytest.approx(0.5)
    assert effects["interaction", ("a", "b")].log_ratio == pytest.approx(log(4))
    assert "a 50 %, b 50 %" in found.text
    assert "a and b overlap: off together they take ×4.000 of what" in found.text
    assert found.text.count(". ") == 1


def test_independent_optimizations_do_not_interact():
    found = factorial_effects(("a", "b"), experiment(none=1.0, a=2.0, b=3.0, ab=6.0), QUIET)
    effects = {(one.kind, one.of): one.log_ratio for one in found.effects}
    assert effects["main", ("a",)] == pytest.approx(log(2))
    assert effects["shapley", ("b",)] == pytest.approx(log(3))
    assert effects["interaction", ("a", "b")] == pytest.approx(0.0, abs=1e-12)
    assert "do not interact" in found.text


@pytest.mark.parametrize("ab", [1.0, 1.04, 0.995])
def test_a_difference_within_the_noise_is_not_shared_out(ab):
    found = factorial_effects(("a", "b"), experiment(none=1.0, a=1.02, b=1.02, ab=ab), (0.95, 1.05))
    assert "off together has no measurable effect: " in found.text
    assert "where noise alone gives 0.950 to 1.050" in found.text
    assert not any(effect.measurable or effect.share is not None for effect in (found.total, *found.effects))


def test_a_small_difference_on_a_quiet_machine_is_one():
    assert "off together multiplies" in factorial_effects(("a", "b"), ONE_ALONE, QUIET).text


def test_an_effect_within_the_noise_is_told_beside_one_that_is_not():
    found = factorial_effects(("a", "b"), ONE_ALONE, (0.9, 1.1))
    assert "a 97 %, b 3 % (within the noise)" in found.text
    assert {one.of: one.measurable for one in found.effects if one.kind == "main"} == {("a",): True, ("b",): False}


def test_a_tiny_ratio_is_not_rounded_to_nothing():
    arms = experiment(none=1.0, a=0.5, b=0.004, ab=0.002)
    assert "multiplies the time by 0.002" in factorial_effects(("a", "b"), arms, QUIET).text


NAMES = ("a", "b", "c")


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-5, 5), min_size=8, max_size=8))
def test_shares_add_up_to_the_whole(values):
    """The defining property of Shapley values, for any three-factor experiment."""
    logs = dict(zip(subsets(NAMES), values, strict=True))
    shares = sum(sum(weight * logs[arm] for arm, weight in shapley_weights(name, NAMES).items()) for name in NAMES)
    assert shares == pytest.approx(logs[frozenset(NAMES)] - logs[frozenset()], abs=1e-9)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-5, 5), min_size=3, max_size=3))
def test_effects_that_add_are_found_exactly(values):
    """Without interaction a main effect and a share are the factor's own value, and pairs are nothing."""
    own = dict(zip(NAMES, values, strict=True))
    logs = {some: sum(own[name] for name in some) for some in subsets(NAMES)}
    for weights, expected in [
        *((main_effect(name, NAMES), own[name]) for name in NAMES),
        *((shapley_weights(name, NAMES), own[name]) for name in NAMES),
        *((interaction(pair, NAMES), 0.0) for pair in combinations(NAMES, 2)),
    ]:
        assert sum(weight * logs[arm] for arm, weight in weights.items()) == pytest.approx(expected, abs=1e-9)


def arm(name: str, verdict: Verdict | None, *ablations: str) -> ArmResult:
    role = Role.ABLATION if ablations else Role.BASELINE
    return ArmResult(ArmRun(ArmSpec(name, role, ablations), Status.FINE, Path(name)), verdict)


@pytest.mark.parametrize(
    ("verdict", "measured", "band", "why_not"),
    [
        (Verdict.NO_OPPORTUNITY, True, QUIET, None),
        (Verdict.EFFECTIVE, False, QUIET, "the arm a was not measured"),
        (Verdict.EFFECTIVE, True, None, "the noise is not known"),
        (Verdict.INERT, True, QUIET, "the arm a is INERT"),
        (Verdict.UNDECIDED, True, QUIET, "the arm a is UNDECIDED"),
    ],
)
def test_an_arm_that_is_not_sound_leaves_no_effects(verdict, measured, band, why_not):
    arms = [
        arm("base", None),
        arm("a", verdict, "a"),
        arm("b", Verdict.EFFECTIVE, "b"),
        arm("ab", Verdict.EFFECTIVE, "a", "b"),
    ]
    found = {one.spec.name: samples() for one in arms}
    if not measured:
        found["a"] = ArmSamples(failure="gone")
    result = analyze_factorial(("a", "b"), arms, found, "base", band)
    assert (result.why_not or "").startswith(why_not or "")
    assert bool(result.effects) == (why_not is None)


def test_a_contrast_of_equal_arms_is_zero():
    found = contrast([BASE, BASE], [1.0, -1.0])
    assert (found.value, found.ci95, found.sessions) == (0.0, (0.0, 0.0), (0.0, 0.0))
