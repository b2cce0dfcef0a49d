"""Full factorial experiments: what each of several overlapping optimizations is worth (natural logs of time ratios)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import exp, factorial

from analyzer.lab.effects import (
    FEWEST_SESSIONS,
    NO_EFFECT,
    ONE_SESSION,
    UNKNOWN_NOISE,
    contrast,
    interval_text,
    logs,
    measured_in_all,
    noise_text,
    number_text,
    whole_script,
    within_noise,
)
from analyzer.lab.records import ArmResult, ArmSamples, Effect, Factorial, Interval, Role, Sessions
from analyzer.verdict import Verdict

Subset = frozenset[str]
_SOUND = (Verdict.EFFECTIVE, Verdict.NO_OPPORTUNITY)


def analyze_factorial(
    names: Sequence[str],
    arms: Sequence[ArmResult],
    samples: Mapping[str, ArmSamples],
    base: str,
    band: Interval | None,
) -> Factorial:
    """Effects of all ablations and pairs. Without all arms measured, or with one that is not sound, there are none.

    An arm is sound when it is EFFECTIVE, or NO_OPPORTUNITY: then its code is the baseline's by right. `band`: None when
    the noise is not known.
    """
    unsound = [arm for arm in arms if arm.spec.role is Role.ABLATION and arm.verdict not in _SOUND]
    if unsound:
        why = f"the arm {unsound[0].spec.name} is {unsound[0].verdict or unsound[0].run.status}"
        return Factorial(tuple(names), why_not=f"{why}: its time is not that of these ablations")
    subsets = {frozenset(arm.spec.ablations): arm.spec.name for arm in arms if arm.spec.role is Role.ABLATION}
    subsets[frozenset()] = base
    missing = [name for name in subsets.values() if name not in samples or not samples[name].rounds]
    if missing:
        return Factorial(tuple(names), why_not=f"the arm {missing[0]} was not measured")
    if band is None:
        return Factorial(tuple(names), why_not=UNKNOWN_NOISE)
    times = {subset: logs(whole_script(samples[name])) for subset, name in subsets.items()}
    if len(measured_in_all(list(times.values()))) < FEWEST_SESSIONS:
        return Factorial(tuple(names), why_not=ONE_SESSION)
    return factorial_effects(names, times, band)


def factorial_effects(names: Sequence[str], times: Mapping[Subset, Sessions], band: Interval) -> Factorial:
    """`times`: for each set of ablated optimizations, logarithms of the arm's times; `band`: ratios that are noise."""

    def effect(kind: str, of: tuple[str, ...], weights: Mapping[Subset, float]) -> Effect:
        used = [subset for subset, weight in weights.items() if weight]
        found = contrast([times[subset] for subset in used], [weights[subset] for subset in used])
        low, high = found.ci95
        noise = within_noise(exp(found.value), (exp(low), exp(high)), band)
        return Effect(kind, of, found.value, found.ci95, measurable=not noise)

    total = effect("total", tuple(names), {frozenset(names): 1.0, frozenset(): -1.0})
    main = [effect("main", (name,), main_effect(name, names)) for name in names]
    pairs = [effect("interaction", pair, interaction(pair, names)) for pair in combinations(names, 2)]
    shapley = [_shared(effect("shapley", (name,), shapley_weights(name, names)), total) for name in names]
    return Factorial(tuple(names), total, (*main, *pairs, *shapley), _explained(total, shapley, pairs, band))


def _shared(effect: Effect, total: Effect) -> Effect:
    """With its share of the total: of one that is noise there are no shares."""
    return replace(effect, share=effect.log_ratio / total.log_ratio) if total.measurable else effect


# ------------------------------------------------------------------------------------------- contrasts: arm -> weight


def main_effect(name: str, names: Sequence[str]) -> dict[Subset, float]:
    """What switching one off does, averaged over all settings of the others."""
    rest = [other for other in names if other != name]
    return _differences(name, {subset: 1 / 2 ** len(rest) for subset in _subsets(rest)})


def shapley_weights(name: str, names: Sequence[str]) -> dict[Subset, float]:
    """What switching one off does, averaged over all orders in which they can be switched off one by one."""
    rest, count = [other for other in names if other != name], len(names)
    orders = {
        subset: factorial(len(subset)) * factorial(count - len(subset) - 1) / factorial(count)
        for subset in _subsets(rest)
    }
    return _differences(name, orders)


def interaction(pair: tuple[str, str], names: Sequence[str]) -> dict[Subset, float]:
    """By how much two together exceed the sum of each alone, averaged over all settings of the others."""
    one, other = pair
    rest = [name for name in names if name not in pair]
    weights: dict[Subset, float] = {}
    for subset in _subsets(rest):
        weight = 1 / 2 ** len(rest)
        for extra, sign in (({one, other}, 1), ({one}, -1), ({other}, -1), (set(), 1)):
            weights[subset | extra] = weights.get(subset | extra, 0.0) + sign * weight
    return weights


def _differences(name: str, weights: Mapping[Subset, float]) -> dict[Subset, float]:
    with_it = {subset | {name}: weight for subset, weight in weights.items()}
    return {**with_it, **{subset: -weight for subset, weight in weights.items()}}


def _subsets(names: Sequence[str]) -> Iterator[Subset]:
    for size in range(len(names) + 1):
        yield from map(frozenset, combinations(names, size))


# --------------------------------------------------------------------------------------------------------- explanation


def _explained(total: Effect, shapley: Sequence[Effect], pairs: Sequence[Effect], band: Interval) -> str:
    """Two sentences for a reader who knows neither Shapley values nor interactions."""
    together = " and ".join(total.of)
    if not total.measurable:
        found = interval_text(exp(total.log_ratio), (exp(total.ci95[0]), exp(total.ci95[1])))
        return (
            f"Switching {together} off together has {NO_EFFECT}: {found}, where {noise_text(band)}. "
            "So there is nothing to share out among them."
        )
    shares = ", ".join(f"{one.of[0]} {100 * (one.share or 0):.0f} %{_doubt(one)}" for one in shapley)
    first = (
        f"Switching {together} off together multiplies the time by {_factor(total)}; of that (as logarithms, "
        f"averaged over the orders in which they can be switched off) {shares}."
    )
    return f"{first} {_interaction_sentence(max(pairs, key=lambda pair: abs(pair.log_ratio)))}"


def _doubt(effect: Effect) -> str:
    return "" if effect.measurable else " (within the noise)"


def _factor(effect: Effect) -> str:
    return number_text(exp(effect.log_ratio))


def _interaction_sentence(pair: Effect) -> str:
    (one, other), factor = pair.of, f"×{_factor(pair)}"
    if not pair.measurable:
        return f"{one} and {other} do not interact measurably ({factor}): their single effects multiply."
    if pair.log_ratio > 0:
        return (
            f"{one} and {other} overlap: off together they take {factor} of what their single effects multiply to, "
            "since each does part of the other's work while it is on."
        )
    return f"{one} and {other} interact: off together they take only {factor} of what their single effects multiply to."
