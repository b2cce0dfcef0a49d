"""The rungs of an audit: was the switch in force for this graph, and which stages of the compile changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from analyzer.ablations import Ablation, Setting
from analyzer.audit.postconditions.record import Arm, Postcondition, Stage
from analyzer.compare.effective import SWITCH_POINTS, EffectiveConfig, Source, full_key, short_key
from analyzer.compare.sameness import other_kernel, reordered_only, same_code, same_dump, same_groups, same_program
from analyzer.model import CompiledGraph, IrDump
from analyzer.verdict import Citation, Rung, RungName, cite
from analyzer.version import release


@dataclass(frozen=True, slots=True)
class Changes:
    """Whether each stage's artifact differs between the arms; None where one of the two is not readable.

    `code_moved`: the code differs, but only in names and in the order of equal lines and steps.
    """

    fx: bool | None
    pre: bool | None
    post: bool | None
    code: bool | None
    code_moved: bool = False
    post_moved: bool = False

    @property
    def everything_equal(self) -> bool:
        """Whether all four artifacts are there and equal."""
        return (self.fx, self.pre, self.post, self.code) == (False, False, False, False)

    @property
    def material(self) -> bool | None:
        """Whether anything changed that a user would call a change; None when nothing tells.

        The code decides where it is there: a renumbered dump that gives equal code is no change.
        """
        if self.code is not None:
            return self.code and not self.code_moved
        if self.post is not None:
            return self.post and not self.post_moved
        return self.pre


def changes_between(old: CompiledGraph, new: CompiledGraph) -> Changes:
    """Compares the two arms stage by stage."""
    code = not same_code(old.code, new.code) if old.code and new.code and _complete(old, new) else None
    post = _dumps_differ(old.post, new.post)
    return Changes(
        fx=not same_program(old.fx, new.fx) if old.fx and new.fx and old.fx.nodes and new.fx.nodes else None,
        pre=_dumps_differ(old.pre, new.pre),
        post=post,
        code=code,
        code_moved=bool(code and old.code and new.code and reordered_only(old.code, new.code)),
        post_moved=bool(post and old.post and new.post and same_groups(old.post, new.post)),
    )


def _complete(old: CompiledGraph, new: CompiledGraph) -> bool:
    codes = (old.code, new.code)
    return all(code is not None and (code.kernels or code.steps or code.returns) for code in codes)


def _dumps_differ(old: IrDump | None, new: IrDump | None) -> bool | None:
    return None if old is None or new is None else not same_dump(old, new)


# ------------------------------------------------------------------------------------------------------------- applied


def requested(ablation: Ablation, asked: tuple[Citation, ...]) -> Rung:
    """What was claimed: by the capture's manifest, else by whoever asked for this audit."""
    return Rung(RungName.REQUESTED, True, asked or (Citation("", None, f"audited as `{ablation.name}`"),))


def own_settings(ablation: Ablation, post: Postcondition) -> frozenset[str]:
    """The full keys of all settings that govern the ablated optimisation."""
    return frozenset(setting.key for setting in ablation.settings) | frozenset(map(full_key, post.knobs))


def applied(base: Arm, ablated: Arm, ablation: Ablation, own: frozenset[str]) -> Rung:
    """Whether the switch was in force when this graph was compiled; None where the artifacts do not record it."""
    old, new = base.config, ablated.config
    patched = _patched(old, new, ablation)
    if patched:
        return Rung(RungName.APPLIED, True, patched)
    if Source.NONE in (old.source, new.source):
        return _not_recorded("the configuration of this compile is not recorded: no fx_graph_runnable.py", new)
    changed = tuple(key for key in sorted(own) if old.value(key) != new.value(key))
    if changed:
        shown = (*(_setting(key, old, new) for key in changed), *_lost(changed, new, ablation))
        return Rung(RungName.APPLIED, True, shown)
    if Source.LOG in (old.source, new.source):
        return _not_recorded("the trace log lacks what torch.compile(options=...) set, and there is no script", new)
    asked = next((name for key in own if (name := new.requested_by_environment(key))), None)
    if asked and not new.logged and not any(old.requested_by_environment(key) for key in own):
        return _not_recorded(f"{asked} is set, but counts only if it was set before torch was imported", new)
    if ablation.switches and new.patched is None:
        return _not_recorded("a run-time switch leaves no trace in plain debug artifacts", new)
    return Rung(RungName.APPLIED, False, (*_too_late(own, old), *_too_late(own, new), *_unchanged(own, new, ablation)))


def switch_points(ablation: Ablation) -> tuple[str, ...]:
    """The starts of the names of all functions that the ablation's switches replace."""
    return tuple(point for switch in ablation.switches for point in SWITCH_POINTS[switch])


def _patched(old: EffectiveConfig, new: EffectiveConfig, ablation: Ablation) -> tuple[Citation, ...]:
    """Functions that a switch of this ablation replaces, and that were replaced in the ablated arm alone."""
    points = switch_points(ablation)
    before = {(patch.function, patch.code) for patch in old.patched or ()}
    found = (patch for patch in new.patched or () if points and patch.function.startswith(points))
    return tuple(
        Citation(patch.file, patch.line, f"{patch.function} was replaced by this function")
        for patch in found
        if (patch.function, patch.code) not in before
    )


def _not_recorded(text: str, config: EffectiveConfig) -> Rung:
    return Rung(RungName.APPLIED, None, (Citation(config.file or "", None, f"not recorded: {text}"),))


def _setting(key: str, old: EffectiveConfig, new: EffectiveConfig) -> Citation:
    """The line that shows it: the ablated arm's, or the base's where the ablation is the default."""
    shown = new if key in new.settings else old
    text = f"{short_key(key)} = {shown.settings.get(key)}"
    if shown is old:
        text = f"base: {text}; ablated arm: default"
    return _cited(shown, key, text)


def _cited(config: EffectiveConfig, key: str, text: str) -> Citation:
    return cite(config.places.get(key), text, config.file or "")


def _lost(changed: tuple[str, ...], new: EffectiveConfig, ablation: Ablation) -> Iterator[Citation]:
    """Settings of the ablation that the ablated arm has like the base, while others are in force."""
    for setting in ablation.settings:
        value = new.settings.get(setting.key)
        if setting.key not in changed and value not in (None, setting.value):
            said = f"{short_key(setting.key)} = {value}, as in the base: not the {setting.value} of this ablation"
            yield _cited(new, setting.key, said)


def _unchanged(own: frozenset[str], config: EffectiveConfig, ablation: Ablation) -> Iterator[Citation]:
    if ablation.switches and config.patched is not None:
        yield Citation(config.file or "", None, "no function of torch that the switch replaces was replaced")
    for setting in ablation.settings:
        yield _cited(config, setting.key, _why_not(setting, config))


def _too_late(own: frozenset[str], config: EffectiveConfig) -> Iterator[Citation]:
    """Variables that ask for a setting which, as the trace log says, had its default all the same."""
    for key in sorted(own - config.settings.keys()) if config.logged else ():
        if name := config.requested_by_environment(key):
            yield Citation(config.file or "", None, f"{name} is set, but was not when torch was imported")


def _why_not(setting: Setting, config: EffectiveConfig) -> str:
    key, value = short_key(setting.key), config.settings.get(setting.key)
    if not exists(setting, config):
        since = f" (from {setting.since[0]}.{setting.since[1]} on)" if setting.since else ""
        return f"torch {config.torch_version} has no setting {key}{since}"
    return f"{key} = {value}, as in the base" if value else f"{key} is not set"


def exists(setting: Setting, config: EffectiveConfig) -> bool:
    """Whether the torch that compiled has this setting, as far as its version is known."""
    version = release(config.torch_version)
    return version is None or setting.exists_in(version)


# -------------------------------------------------------------------------------------------------------------- stages


def stage_rungs(base: Arm, ablated: Arm, post: Postcondition, changes: Changes) -> Iterator[Rung]:
    """The rungs from the ablation's first stage on."""
    old, new = base.facts.graph, ablated.facts.graph
    if post.earliest <= Stage.LOWERING:
        held = changes.pre if post.earliest is Stage.LOWERING else _either(changes.fx, changes.pre)
        yield Rung(RungName.LOWERING, held, tuple(_dump_evidence(old.pre, new.pre, "scheduler nodes before fusion")))
    if post.earliest <= Stage.SCHEDULING:
        yield Rung(RungName.SCHEDULING, changes.post, tuple(_dump_evidence(old.post, new.post, "groups after fusion")))
    yield Rung(RungName.CODE, changes.code, tuple(_code_evidence(old, new, changes)))


def _either(one: bool | None, other: bool | None) -> bool | None:
    return True if one or other else (None if None in (one, other) else False)


def _dump_evidence(old: IrDump | None, new: IrDump | None, counted: str) -> Iterator[Citation]:
    if old is None or new is None:
        return
    yield Citation(new.artifact.file, 1 if new.nodes else None, f"{counted}: {len(old.nodes)} -> {len(new.nodes)}")
    known = {node.name for node in old.nodes}
    first = next((node for node in new.nodes if node.name not in known), None)
    if first is not None:
        yield cite(first.location, f"{first.name}: {first.node_class}", new.artifact.file)


def _code_evidence(old: CompiledGraph, new: CompiledGraph, changes: Changes) -> Iterator[Citation]:
    if old.code is None or new.code is None:
        return
    other, call = other_kernel(old.code, new.code), next(new.code.calls(), None)
    text = f"kernel calls: {sum(1 for _ in old.code.calls())} -> {sum(1 for _ in new.code.calls())}"
    if changes.code is False:
        text += "; equal but for comments and names"
    elif changes.code_moved:
        text += "; equal lines and steps in another order"
    elif changes.code and other is not None:
        text += f"; other code in {other.name}"
    place = other or call
    yield cite(place.location if place is not None else None, text, new.code.artifact.file)
