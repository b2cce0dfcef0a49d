"""For each pair of scheduler nodes that Inductor considered: whether it fused them, and its own reason if not.

torch/_inductor/scheduler.py: `Scheduler.can_fuse` decides, `WhyNoFuse` objects say why not.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from inductor_audit_inside import switches
from inductor_audit_inside.describe import buffer_names, extern_name, group_facts, leaf_names, origins_of
from inductor_audit_inside.notes import guarded
from inductor_audit_inside.store import current
from inductor_audit_inside.wrap import after, around, before

LIMIT = 20_000
"""Pairs kept per graph; what exceeds it is counted."""

_last_reason: dict[frozenset[str], str] = {}
_asked: dict[frozenset[str], dict[str, Any]] = {}


def watch_scheduler(module: ModuleType) -> None:
    """Install the switches of scheduling first, so that the recorder sees their decisions too."""
    switches.on_scheduler(module)
    scheduler = module.Scheduler
    around(scheduler, "can_fuse", _recording_can_fuse)
    before(module.WhyNoFuse, "__call__", _on_reason)
    before(scheduler, "__init__", _start)
    after(scheduler, "__init__", _finish)
    before(scheduler, "codegen_extern_call", _on_extern_call)


def _start(*_: Any, **__: Any) -> None:
    _last_reason.clear()
    _asked.clear()


def _on_reason(why: Any, reason: str, *arguments: Any) -> None:
    _last_reason[_names_of(why)] = (reason % arguments) if arguments else reason


def watch_backend(kind: type) -> None:
    """A scheduling class may decline without a word; then its method is the reason."""
    for name in ("can_fuse_vertical", "can_fuse_horizontal"):
        if name in vars(kind):
            around(kind, name, _noting_refusal(f"{kind.__name__}.{name} declines"))


def _noting_refusal(reason: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def recorded(self: Any, first: Any, second: Any, *rest: Any, **named: Any) -> Any:
            allowed = original(self, first, second, *rest, **named)
            if not allowed:
                with guarded("backend refusal"):
                    _last_reason.setdefault(frozenset((first.get_name(), second.get_name())), reason)
            return allowed

        return recorded

    return make


def _names_of(why: Any) -> frozenset[str]:
    """Up to torch 2.5 the object keeps the nodes, later their names."""
    if hasattr(why, "name1"):
        return frozenset((why.name1, why.name2))
    return frozenset((why.node1.get_name(), why.node2.get_name()))


def _recording_can_fuse(original: Callable[..., Any]) -> Callable[..., Any]:
    def recorded(self: Any, first: Any, second: Any, *rest: Any, **named: Any) -> Any:
        key = frozenset((first.get_name(), second.get_name()))
        _last_reason.pop(key, None)
        allowed = original(self, first, second, *rest, **named)
        with guarded("fusion pair"):
            _keep(key, first, second, bool(allowed))
        return allowed

    return recorded


def _keep(key: frozenset[str], first: Any, second: Any, allowed: bool) -> None:
    """One entry per unordered pair; the last answer counts, except that a reason outlives an answer without one."""
    known = _asked.get(key)
    if known is None and len(_asked) >= LIMIT:
        current()["pairs_dropped"] += 1
        return
    reason = None if allowed else _last_reason.get(key)
    if known is None:
        known = {"first": leaf_names(first), "second": leaf_names(second), "reason": None}
        _asked[key] = known
    known["allowed"] = allowed
    known["reason"] = reason or (None if allowed else known["reason"])


def _finish(_result: Any, scheduler: Any, *_: Any, **__: Any) -> None:
    """Now the groups are final (all fusion passes run in the constructor)."""
    record = current()
    record["groups"] = [group_facts(node) for node in scheduler.nodes]
    group_of = {member: group["name"] for group in record["groups"] for member in group["members"]}
    for key, pair in _asked.items():
        homes = {group_of.get(name) for name in (*pair["first"], *pair["second"])}
        pair["fused"] = len(homes) == 1 and None not in homes
        if pair["allowed"] and not pair["fused"] and pair["reason"] is None:
            pair["reason"] = _last_reason.get(key)  # refused after can_fuse: "will create cycle"
    record["fusion_pairs"] = list(_asked.values())
    _start()


def _on_extern_call(_scheduler: Any, node: Any, *_: Any, **__: Any) -> None:
    """An extern kernel or fallback op of the wrapper."""
    call = {
        "name": extern_name(node.node),
        "ir_class": type(node.node).__name__,
        "member": node.get_name(),
        "buffers": buffer_names(node),
        "origins": origins_of([node]),
    }
    current()["extern_calls"].append(call)
