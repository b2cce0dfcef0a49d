"""What differs around the compiles: settings first, then versions, devices, caches, and the program itself."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from analyzer.compare.effective import (
    ENVIRONMENT,
    INDUCTOR,
    ConfigDifference,
    EffectiveConfig,
    config_differences,
    effective_config,
)
from analyzer.compare.pairing import inputs_of
from analyzer.diff.records import ConfigChange, EnvironmentChange
from analyzer.facts import GraphFacts
from analyzer.model import CacheState, CompiledGraph, Run

_TENSORS = 3
"""Kinds of inputs that a warning names."""

Pairs = Sequence[tuple[GraphFacts, GraphFacts]]


def config_changes(pairs: Pairs) -> Iterator[ConfigChange]:
    """Settings with different effective values, Inductor's first, once each with the graphs that they concern."""
    found: defaultdict[ConfigDifference, list[tuple[GraphFacts, GraphFacts]]] = defaultdict(list)
    for old, new in pairs:
        for difference in _settings(old.graph, new.graph):
            found[difference].append((old, new))
    for difference, concerned in sorted(found.items(), key=lambda item: (*_rank(item[0].key), str(item[0]))):
        some = concerned if len(concerned) < len(pairs) else []
        labels = tuple(old.graph.label for old, _ in some), tuple(new.graph.label for _, new in some)
        key, (one, other) = difference.key, (effective_config(facts.graph) for facts in concerned[0])
        places = one.places.get(key), other.places.get(key)
        yield ConfigChange(key, difference.base, difference.ablated, *places, *labels)


def _rank(key: str) -> tuple[bool, str]:
    return not key.startswith(INDUCTOR), key


def _settings(old: CompiledGraph, new: CompiledGraph) -> Iterator[ConfigDifference]:
    """What differs; not that another torch has other settings, where both sides list all that they have."""
    one, other = effective_config(old), effective_config(new)
    another_torch = one.lists_everything and other.lists_everything and one.torch_version != other.torch_version
    for difference in config_differences(one, other):
        if not another_torch or None not in (difference.base, difference.ablated):
            yield difference


def environment_changes(old: Run, new: Run, pairs: Pairs) -> Iterator[EnvironmentChange]:
    """Everything else that is the same when two runs differ in decisions alone."""
    if old.torch_version and new.torch_version and old.torch_version != new.torch_version:
        yield EnvironmentChange("torch", old.torch_version, new.torch_version)
    yield from _cache_change(old, new)
    yield from _once(_device_changes(pairs))
    yield from _once(_switch_changes(pairs))
    yield from _once(_program_changes(pairs))


def _once(found: Iterator[EnvironmentChange]) -> Iterator[EnvironmentChange]:
    """Each difference once, however many graphs show it."""
    yield from dict.fromkeys(found)


def _cache_change(old: Run, new: Run) -> Iterator[EnvironmentChange]:
    states = old.cache_state, new.cache_state
    if states[0] != states[1] and CacheState.UNKNOWN not in states:
        warning = "a graph that came from a cache leaves fewer artifacts or none: what is missing is no decision"
        yield EnvironmentChange("caches", str(states[0]), str(states[1]), warning)


def _device_changes(pairs: Pairs) -> Iterator[EnvironmentChange]:
    for old, new in pairs:
        one, other = _devices(old), _devices(new)
        if one and other and one != other:
            warning = "code for another device is another comparison"
            yield EnvironmentChange("device", ", ".join(one), ", ".join(other), warning)


def _devices(facts: GraphFacts) -> tuple[str, ...]:
    layouts = (buffer.layout for buffer in facts.buffers)
    return tuple(sorted({layout.device for layout in layouts if layout is not None and layout.device}))


def _switch_changes(pairs: Pairs) -> Iterator[EnvironmentChange]:
    """Replaced functions of torch, where both runs recorded them, and variables that stand for settings."""
    for old, new in pairs:
        one, other = effective_config(old.graph), effective_config(new.graph)
        yield from _patch_change(one, other)
        for variable in sorted(ENVIRONMENT.keys() & (one.environment.keys() | other.environment.keys())):
            values = (config.environment.get(variable, "not set") for config in (one, other))
            before, after = values
            if before != after:
                yield EnvironmentChange(variable, before, after)


def _patch_change(one: EffectiveConfig, other: EffectiveConfig) -> Iterator[EnvironmentChange]:
    if one.patched is None or other.patched is None:
        return
    names = [", ".join(sorted({patch.function for patch in config.patched or ()})) for config in (one, other)]
    if names[0] != names[1]:
        yield EnvironmentChange("replaced functions of torch", names[0] or "none", names[1] or "none")


def _program_changes(pairs: Pairs) -> Iterator[EnvironmentChange]:
    """Inputs or source lines that show that another program was compiled."""
    for old, new in pairs:
        one, other = (sorted(map(_tensor_text, inputs_of(facts.graph).values())) for facts in (old, new))
        if one != other and len(one) == len(other) and old.graph.kind != "backward":
            left, right = [item for item in one if item not in other], [item for item in other if item not in one]
            if left and right:
                warning = "the inputs differ: another program, or the same on other data"
                yield EnvironmentChange("inputs", _several(left), _several(right), warning)
        yield from _source_change(old.graph, new.graph)


def _several(tensors: Sequence[str]) -> str:
    """The first of them, equal ones once."""
    counts = Counter(tensors)
    told = [f"{tensor} ×{count}" if count > 1 else tensor for tensor, count in counts.items()][:_TENSORS]
    return ", ".join([*told, *([f"{len(counts) - _TENSORS} more"] if len(counts) > _TENSORS else [])])


def _tensor_text(tensor: tuple[str | None, tuple[int | str, ...] | None]) -> str:
    dtype, shape = tensor
    if shape is None:
        return "no tensor"
    sizes = (str(size) if isinstance(size, int) else "?" for size in shape)
    return f"{(dtype or '?').removeprefix('torch.')}[{', '.join(sizes)}]"


def _source_change(old: CompiledGraph, new: CompiledGraph) -> Iterator[EnvironmentChange]:
    """Source lines of each run that the other has not. A pass may lose lines, but invents none.

    Where most lines are common, somebody edited the program, and that is what the diff is about.
    """
    one, other = _sources(old), _sources(new)
    first, second = sorted(one - other), sorted(other - one)
    if first and second:
        edited = 2 * len(one & other) >= min(len(one), len(other))
        warning = None if edited else "the graphs come from different source lines: another program"
        yield EnvironmentChange("source", _shown(first), _shown(second), warning)


def _shown(lines: Sequence[str]) -> str:
    return lines[0] if len(lines) == 1 else f"{lines[0]} (and {len(lines) - 1} more)"


def _sources(graph: CompiledGraph) -> frozenset[str]:
    """The lines of the user's own files; those of torch change with its version."""
    sites = (node.source for node in (graph.fx.nodes if graph.fx else ()) if node.live)
    own = (site for site in sites if site is not None and not _INSTALLED.search(site.file))
    return frozenset(site.code.strip() for site in own if site.code)


_INSTALLED = re.compile(r"[/\\](?:site|dist)-packages[/\\]|[/\\]torch[/\\]")
