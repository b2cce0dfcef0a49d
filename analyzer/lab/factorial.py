"""Full factorial experiments: what each of several overlapping optimizations is worth (natural logs of time ratios)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import exp, factorial

from analyzer.lab.effects import contrast, logs, whole_script
from analyzer.lab.records import ArmResult, ArmSamples, Effect, Factorial, Interval, Role, Sessions
from analyzer.verdict import Verdict

Subset = frozenset[str]
_SOUND = (Verdict.EFFECTIVE, Verdict.NO_OPPORTUNITY)


def analyze_factorial(
    names: Sequence[str],
    arms: Sequence[ArmResult],
    samples: Mapping[str, ArmSamples],
    base: str,
    band: Interval = (1.0, 1.0),
) -> Factorial:
    """Effects of all ablations and pairs. Without all arms measured, or with one that is not sound, there are none.

    An arm is sound when it is EFFECTIVE, or NO_OPPORTUNITY: then its code is the baseline's by right.
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
    times = {subset: logs(whole_script(samples[name])) for subset, name in subsets.items()}
    return factorial_effects(names, times, band)


def factorial_effects(names: Sequence[str], times: Mapping[Subset, Sessions], band: Interval = (1.0, 1.0)) -> Factorial:
    """`times`: for each set of ablated optimizations, logarithms of the arm's times; `band`: ratios that are noise."""
    everything = frozenset(names)
    total = _effect("total", tuple(names), {everything: 1.0, frozenset(): -1.0}, times)
    shapley = [_shapley(name, names, times, total) for name in names]
    main = [_effect("main", (name,), main_effect(name, names), times) for name in names]
    pairs = [_effect("interaction", pair, interaction(pair, names), times) for pair in combinations(names, 2)]
    return Factorial(tuple(names), total, (*main, *pairs, *shapley), _explained(total, shapley, pairs, band))


def _effect(
    kind: str, of: tuple[str, ...], weights: Mapping[Subset, float], times: Mapping[Subset, Sessions]
) -> Effect:
    used = [subset for subset, weight in weights.items() if weight]
    value, interval = contrast([times[subset] for subset in used], [weights[subset] for subset in used])
    return Effect(kind, of, value, interval)


def _shapley(name: str, names: Sequence[str], times: Mapping[Subset, Sessions], total: Effect) -> Effect:
    effect = _effect("shapley", (name,), shapley_weights(name, names), times)
    share = effect.log_ratio / total.log_ratio if total.log_ratio else None
    return Effect(effect.kind, effect.of, effect.log_ratio, effect.ci95, share)


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
    if band[0] <= exp(total.log_ratio) <= band[1] or total.ci95[0] <= 0.0 <= total.ci95[1]:
        return (
            f"Switching {together} off together makes no measurable difference (×{exp(total.log_ratio):.2f}). "
            "So there is nothing to share out among them."
        )
    shares = ", ".join(f"{one.of[0]} {100 * (one.share or 0):.0f} %" for one in shapley)
    first = (
        f"Switching {together} off together multiplies the time by {exp(total.log_ratio):.2f}; of that (as logarithms, "
        f"averaged over the orders in which they can be switched off) {shares}."
    )
    return f"{first} {_interaction_sentence(max(pairs, key=lambda pair: abs(pair.log_ratio)))}"


def _interaction_sentence(pair: Effect) -> str:
    one, other = pair.of
    factor = f"×{exp(pair.log_ratio):.2f}"
    if pair.ci95[0] <= 0.0 <= pair.ci95[1]:
        return f"{one} and {other} do not interact measurably ({factor}): their single effects multiply."
    if pair.log_ratio > 0:
        return (
            f"{one} and {other} overlap: off together they take {factor} of what their single effects multiply to, "
            "since each does part of the other's work while it is on."
        )
    return f"{one} and {other} interact: off together they take only {factor} of what their single effects multiply to."
