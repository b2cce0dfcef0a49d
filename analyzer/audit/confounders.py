"""What else differs between two arms than the ablation: each finding is one sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from analyzer.audit.postconditions.record import Arm, Postcondition, Stage
from analyzer.compare.effective import EffectiveConfig, config_differences
from analyzer.compare.pairing import Tensor, inputs_of
from analyzer.compare.sameness import same_dump, same_program
from analyzer.model import CompiledGraph, FxGraph, IrDump


@dataclass(frozen=True, slots=True)
class Own:
    """What belongs to the ablation: its settings, in full, and the starts of the names of functions it may replace."""

    settings: frozenset[str]
    functions: tuple[str, ...]


def confounders(base: Arm, ablated: Arm, post: Postcondition, own: Own) -> Iterator[str]:
    """Everything that makes a comparison of these two graphs unfair."""
    old, new = base.facts.graph, ablated.facts.graph
    yield from _versions(old, new)
    if old.kind != new.kind and "unknown" not in (old.kind, new.kind):
        yield f"the graphs are of different kinds: {old.kind} and {new.kind}"
    yield from _devices(old, new)
    yield from _inputs(old, new, post)
    yield from _earlier_stages(old, new, post)
    for difference in config_differences(base.config, ablated.config):
        if difference.key not in own.settings:
            yield f"another setting differs: {difference}"
    yield from _patches(base.config, ablated.config, own)


def _patches(base: EffectiveConfig, ablated: EffectiveConfig, own: Own) -> Iterator[str]:
    """Functions of torch that only one arm had replaced, beside those that the ablation replaces."""
    if base.patched is None or ablated.patched is None:
        return
    old, new = ({(patch.function, patch.code): patch for patch in arm.patched or ()} for arm in (base, ablated))
    for key in sorted(old.keys() ^ new.keys(), key=str):
        patch = new.get(key) or old[key]
        if not (own.functions and patch.function.startswith(own.functions)):
            yield f"another function of torch was replaced in one arm: {patch.function} ({patch.file})"


def _versions(old: CompiledGraph, new: CompiledGraph) -> Iterator[str]:
    one = old.runnable.torch_version if old.runnable else None
    other = new.runnable.torch_version if new.runnable else None
    if one and other and one != other:
        yield f"torch {one} and torch {other}"


def _devices(old: CompiledGraph, new: CompiledGraph) -> Iterator[str]:
    names = [graph.deviceless.device if graph.deviceless else None for graph in (old, new)]
    if names[0] != names[1]:
        said = " and ".join(f"{name}, which was not there" if name else "a device that was there" for name in names)
        yield f"devices differ: {said}"
    one, other = (_devices_of(graph.pre) or _devices_of(graph.post) for graph in (old, new))
    if one and other and one != other:
        yield f"devices differ: {', '.join(sorted(one))} and {', '.join(sorted(other))}"


def _devices_of(dump: IrDump | None) -> frozenset[str]:
    layouts = (buffer.layout for leaf in (dump.leaves() if dump else ()) for buffer in leaf.buffers)
    return frozenset(layout.device for layout in layouts if layout and layout.device)


def _inputs(old: CompiledGraph, new: CompiledGraph, post: Postcondition) -> Iterator[str]:
    """Types of inputs. Passes over the FX graph may change which inputs there are, and so their names."""
    one, other = inputs_of(old), inputs_of(new)
    if not one or not other:
        return
    if post.earliest == Stage.FX:
        yield from _unmatched_inputs(one, other, old.kind)
        return
    for name in (name for name in one if name in other and one[name] != other[name]):
        yield f"input {name} differs: {_typed(one[name])} and {_typed(other[name])}"
        return
    if set(one) != set(other):
        yield f"the graphs have different inputs: {len(one)} and {len(other)}"


def _unmatched_inputs(one: Mapping[str, Tensor], other: Mapping[str, Tensor], kind: str) -> Iterator[str]:
    """Frozen weights are inputs in one arm only; a backward graph gets whatever values its forward saved."""
    old, new = (Counter(_comparable(inputs, kind)) for inputs in (one, other))
    if old - new and new - old:
        first, second = next(iter(old - new)), next(iter(new - old))
        yield f"inputs differ: {_typed(first)} only in the base, {_typed(second)} only in the ablated arm"


def _comparable(inputs: Mapping[str, Tensor], kind: str) -> Iterator[Tensor]:
    return (tensor for name, tensor in inputs.items() if kind != "backward" or name.startswith("tangents"))


def _typed(tensor: Tensor) -> str:
    dtype, shape = tensor
    return f"{(dtype or '?').removeprefix('torch.')}[{', '.join(map(str, shape or ()))}]"


def _earlier_stages(old: CompiledGraph, new: CompiledGraph, post: Postcondition) -> Iterator[str]:
    """A stage before the ablation's own that differs: another program, or another switch beside this one."""
    if post.earliest > Stage.FX and _programs_differ(old.fx, new.fx):
        yield "the post-grad graphs differ, which this ablation cannot change: another program, or another switch"
    elif post.earliest == Stage.FX and (strange := _strange_sources(old.fx, new.fx)):
        yield f"the graphs come from different source lines: {strange[0]} and {strange[1]}"
    elif post.earliest > Stage.LOWERING and _dumps_differ(old.pre, new.pre):
        amounts = " and ".join(str(len(dump.nodes)) for dump in (old.pre, new.pre) if dump)
        yield (
            "lowering differs, which this ablation cannot change: another switch was on as well "
            f"(scheduler nodes before fusion: {amounts})"
        )


def _strange_sources(old: FxGraph | None, new: FxGraph | None) -> tuple[str, str] | None:
    """A source line of each arm that the other has not. A pass may lose lines, but invents none."""
    one, other = (_source_lines(graph) for graph in (old, new))
    first, second = sorted(one - other), sorted(other - one)
    return (f"`{first[0][1]}`", f"`{second[0][1]}`") if first and second else None


def _source_lines(graph: FxGraph | None) -> frozenset[tuple[int, str]]:
    sites = (node.source for node in (graph.nodes if graph else ()) if node.live)
    return frozenset((site.line, site.code) for site in sites if site and site.code)


def _programs_differ(old: FxGraph | None, new: FxGraph | None) -> bool:
    return bool(old and new and old.nodes and new.nodes) and not (old and new and same_program(old, new))


def _dumps_differ(old: IrDump | None, new: IrDump | None) -> bool:
    return bool(old and new and _whole(old) and _whole(new)) and not (old and new and same_dump(old, new))


def _whole(dump: IrDump) -> bool:
    return bool(dump.nodes) and not dump.artifact.problems
