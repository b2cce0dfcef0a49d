"""Whether an experiment came out well, for the exit code."""

from __future__ import annotations

from analyzer.lab.records import ArmResult, Role, ScriptResult, Status
from analyzer.verdict import Verdict


def any_baseline(script: ScriptResult) -> bool:
    """Whether there is anything that arms could be judged by."""
    return any(arm.spec.role is Role.BASELINE and arm.run.status is Status.FINE for arm in script.arms)


def all_fine(script: ScriptResult) -> bool:
    """Every arm ran, was EFFECTIVE, was measured if that was asked for, and computed what its baseline computes."""
    return all(_fine(arm) for arm in script.arms)


def _fine(arm: ArmResult) -> bool:
    judged = arm.spec.role is not Role.ABLATION or arm.verdict is Verdict.EFFECTIVE
    differs = arm.agreement is not None and arm.agreement.close is False
    return arm.run.status is Status.FINE and judged and arm.untimed is None and not differs
