"""Which arms an experiment has: baselines, the A/A control, and one per ablation or per subset of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from analyzer.ablations import ABLATIONS, Ablation, find
from analyzer.errors import UsageError
from analyzer.lab.records import ArmSpec, Role

CONTROL = "control"
_BASELINE = "baseline"
_AUTOTUNE = "max_autotune"
_MOST_FACTORS = 4


def paper_rows() -> tuple[str, ...]:
    """The ablations that stand for a row of the PyTorch 2 paper's table, in its order."""
    return tuple(entry.name for entry in ABLATIONS if entry.row)


def plan_arms(names: Sequence[str], factorial: bool = False) -> tuple[ArmSpec, ...]:
    """All arms, each behind the one that it is judged by. UsageError for unknown names, or for too few or too many.

    An ablation of a feature that is off by default is judged against a baseline that has it on. A control is a baseline
    once more: the first one, for the noise, and each that autotunes, which may pick other kernels each time.
    A factorial experiment has one arm per subset, all with the features of all on.
    """
    entries = [find(name) for name in dict.fromkeys(names)]
    if not entries:
        raise UsageError("nothing to ablate", "Name ablations with --ablation, or take the paper's: --table paper.")
    return tuple(_factorial(entries) if factorial else _one_by_one(entries))


def _one_by_one(entries: Sequence[Ablation]) -> Iterator[ArmSpec]:
    baselines = {_baseline((entry,)).name: _baseline((entry,)) for entry in entries}
    ordered = sorted(baselines.values(), key=lambda spec: len(spec.baseline_of))
    yield from (ordered[0], _control(ordered[0]))
    for base in ordered[1:]:
        yield base
        if _AUTOTUNE in base.name.split("+"):
            yield _control(base, base.name.replace(_BASELINE, CONTROL, 1))
    for entry in entries:
        base = _baseline((entry,))
        yield ArmSpec(entry.name, Role.ABLATION, (entry.name,), base.baseline_of, base.name)


def _factorial(entries: Sequence[Ablation]) -> Iterator[ArmSpec]:
    if not 2 <= len(entries) <= _MOST_FACTORS:
        raise UsageError(f"a factorial experiment takes 2 to {_MOST_FACTORS} ablations, not {len(entries)}")
    base = _baseline(entries)
    yield from (base, _control(base))
    for size in range(1, len(entries) + 1):
        for chosen in combinations([entry.name for entry in entries], size):
            yield ArmSpec("+".join(chosen), Role.ABLATION, chosen, base.baseline_of, base.name)


def _baseline(entries: Sequence[Ablation]) -> ArmSpec:
    """The baseline that ablations need: named after the settings that it switches on."""
    needing = [entry for entry in entries if entry.baseline]
    keys = dict.fromkeys(setting.key.rpartition(".")[2] for entry in needing for setting in entry.baseline)
    name = "+".join((_BASELINE, *keys))
    return ArmSpec(name, Role.BASELINE, baseline_of=tuple(_distinct(needing)))


def _distinct(entries: Sequence[Ablation]) -> Iterator[str]:
    """One ablation per distinct need, so that arms with one need have one baseline."""
    seen = set()
    for entry in ABLATIONS:
        if entry.baseline and entry.baseline not in seen and any(entry.baseline == one.baseline for one in entries):
            seen.add(entry.baseline)
            yield entry.name


def _control(baseline: ArmSpec, name: str = CONTROL) -> ArmSpec:
    return ArmSpec(name, Role.CONTROL, (), baseline.baseline_of, baseline.name)
