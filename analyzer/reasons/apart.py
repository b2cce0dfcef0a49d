"""Why two groups are not one kernel: Inductor's own reason if our capture recorded it, else what the dumps would fit.

torch/_inductor/scheduler.py decides: `Scheduler.get_possible_fusions` picks pairs that share a buffer, `can_fuse` and
the backend's `can_fuse_vertical` or `can_fuse_horizontal` accept or refuse them, `will_fusion_create_cycle` has the
last word.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from analyzer.analyze.targets import packet
from analyzer.facts import GraphFacts, GroupFact
from analyzer.model import DumpNode
from analyzer.reasons.why import Reasons, Why, leaves_of

if TYPE_CHECKING:
    from analyzer.artifacts.sidecar import FusionPair

_TERSE = re.compile(
    r"\w+\.can_fuse_(vertical|horizontal) declines|intermediate nodes .*|will create cycle|no shared data"
)
"""Reasons that say less than the dumps can."""

_SAYS = "Inductor says: "
_LONE = {"NopKernelSchedulerNode": "runs no kernel", "ExternKernelSchedulerNode": "is a library call"}


@dataclass(frozen=True, slots=True)
class Apart:
    """Two groups of the post-fusion dump that could have been one.

    `shared` are the buffers that both touch. `likely` is what the dumps show besides the recorded reason.
    """

    first: str
    second: str
    why: Why
    shared: tuple[str, ...] = ()
    likely: Why | None = None


@dataclass(frozen=True)
class Boundaries:
    """What keeps the groups of one graph apart."""

    facts: GraphFacts

    @cached_property
    def _leaves(self) -> Mapping[str, DumpNode]:
        return {leaf.name: leaf for leaf in leaves_of(self.facts)}

    @cached_property
    def _group_of(self) -> Mapping[str, str]:
        """Group by buffer."""
        return {buffer: group.name for group in self.facts.groups for buffer in group.buffers}

    @cached_property
    def _groups(self) -> Mapping[str, GroupFact]:
        return {group.name: group for group in self.facts.groups}

    @cached_property
    def _order(self) -> Mapping[str, int]:
        return {name: position for position, name in enumerate(self._groups)}

    @cached_property
    def _pairs(self) -> Mapping[frozenset[str], FusionPair]:
        """The last refused pair between two groups, the one with most members."""
        group_of = {member: group.name for group in self.facts.groups for member in group.members}
        found: dict[frozenset[str], FusionPair] = {}
        for pair in (pair for graph in Reasons(self.facts).record for pair in graph.pairs if not pair.fused):
            first, second = ({group_of.get(op, "") for op in side} for side in (pair.first, pair.second))
            key = frozenset(first | second)
            if len(first) == len(second) == 1 and len(key) == 2 and _size(pair) >= _size(found.get(key)):
                found[key] = pair
        return found

    @cached_property
    def _needs(self) -> Mapping[str, frozenset[str]]:
        """For each group those whose buffers it reads."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        for group in self.facts.groups:
            found[group.name] |= {self._group_of[name] for name in self.read(group) if name in self._group_of}
        return {name: frozenset(sources - {name}) for name, sources in found.items()}

    def read(self, group: GroupFact) -> frozenset[str]:
        """Buffers and graph inputs that a group's members read, its own left out."""
        reads = {
            dep.buffer
            for op in group.members
            if op in self._leaves
            for dep in self._leaves[op].reads
            if dep.kind != "WeakDep"
        }
        return frozenset(reads - set(group.buffers))

    def neighbours(self, *names: str) -> tuple[Apart, ...]:
        """Every group and each one whose buffers it reads, unless neither has a loop; pairs of two loops come first.

        With names, only the pairs that one of these groups belongs to.
        """
        pairs = [
            (self._groups[source], group)
            for group in self.facts.groups
            for source in sorted(self._needs.get(group.name, ()), key=self._order.__getitem__)
            if not names or source in names or group.name in names
        ]
        loops = [(sum(group.node_class not in _LONE for group in pair), pair) for pair in pairs]
        return tuple(self.between(*pair) for wanted in (2, 1) for count, pair in loops if count == wanted)

    def between(self, first: GroupFact, second: GroupFact) -> Apart:
        """Why these two are not one group."""
        touched = [self.read(group) | set(group.buffers) for group in (first, second)]
        shared = tuple(sorted(touched[0] & touched[1]))
        likely = Why(self._inferred(first, second, shared))
        recorded = self._recorded(first, second)
        if recorded is None:
            return Apart(first.name, second.name, likely, shared)
        vague = _TERSE.fullmatch(recorded.text.removeprefix(_SAYS)) or not self._was_asked(first, second)
        return Apart(first.name, second.name, recorded, shared, likely if vague else None)

    # ------------------------------------------------------------------------------------------------------- recorded

    def _was_asked(self, first: GroupFact, second: GroupFact) -> bool:
        return frozenset((first.name, second.name)) in self._pairs

    def _recorded(self, first: GroupFact, second: GroupFact) -> Why | None:
        record = Reasons(self.facts).record
        if not record:
            return None
        pair = self._pairs.get(frozenset((first.name, second.name)))
        if pair is None:
            all_kept = not any(graph.pairs_dropped for graph in record)
            return Why("the scheduler never considered the pair", recorded=True) if all_kept else None
        if pair.reason is not None:
            return Why(_SAYS + pair.reason, recorded=True)
        said = "allowed the pair, yet did not fuse it" if pair.allowed else "refused the pair without a reason"
        return Why(f"Inductor {said}", recorded=True)

    # ------------------------------------------------------------------------------------------------------- inferred

    def _inferred(self, first: GroupFact, second: GroupFact, shared: tuple[str, ...]) -> str:
        """The first obstacle that the dumps show."""
        for group in (first, second):
            if group.node_class in _LONE:
                return f"{group.name} {_LONE[group.node_class]}{self._call(group)}, which joins no loop"
        obstacles = (
            self._devices(first, second),
            self._cycle(first, second),
            None if shared else "they share no data, and Inductor only joins groups that touch a common buffer",
            self._template(first, second),
            self._loops(first, second),
        )
        return next(
            (text for text in obstacles if text), "no obstacle that the dumps show: a limit, a score or a setting"
        )

    def _call(self, group: GroupFact) -> str:
        return (
            f" ({packet(group.kernel) if group.kernel.startswith('torch.ops') else group.kernel})"
            if group.kernel
            else ""
        )

    def _devices(self, first: GroupFact, second: GroupFact) -> str | None:
        one, other = (self._device(group) for group in (first, second))
        return f"they run on different devices ({one}, {other})" if one and other and one != other else None

    def _device(self, group: GroupFact) -> str | None:
        found = (self.facts.buffer(name) for name in group.buffers)
        return next((fact.layout.device for fact in found if fact and fact.layout and fact.layout.device), None)

    def _cycle(self, first: GroupFact, second: GroupFact) -> str | None:
        """A group that needs one of the two and is needed by the other."""
        for source, target in ((first.name, second.name), (second.name, first.name)):
            between = [
                name for name in self._needs.get(target, ()) if name != source and source in self._upstream(name)
            ]
            if between:
                lie = "lies" if len(between) == 1 else "lie"
                return f"{', '.join(sorted(between))} {lie} between them: joining them would create a cycle"
        return None

    def _upstream(self, name: str) -> frozenset[str]:
        """All groups that a group needs, directly or not."""
        if name not in self._known_upstream:
            found: set[str] = set()
            queue = [name]
            while queue:
                fresh = self._needs.get(queue.pop(), frozenset()) - found
                found |= fresh
                queue.extend(fresh)
            self._known_upstream[name] = frozenset(found)
        return self._known_upstream[name]

    @cached_property
    def _known_upstream(self) -> dict[str, frozenset[str]]:
        return {}

    def _template(self, first: GroupFact, second: GroupFact) -> str | None:
        for group in (first, second):
            inner = [name for op in group.members if op in self._leaves for name in self._leaves[op].inner]
            if any("Template" in name for name in inner):
                return f"{group.name} is a template, which only takes a prologue or epilogue that it supports"
        return None

    def _loops(self, first: GroupFact, second: GroupFact) -> str | None:
        one, other = (self._loop(group) for group in (first, second))
        if one is None or other is None or one == other:
            return None
        return f"their loops differ: {first.name} runs over {one}, {second.name} over {other}"

    def _loop(self, group: GroupFact) -> str | None:
        """The loop of the member with the most dimensions, as the dump prints it: (ranges, reduction ranges)."""
        found = [self._leaves[op].iteration for op in group.members if op in self._leaves]
        return max((text for text in found if text), key=len, default=None)


def _size(pair: FusionPair | None) -> int:
    return len(pair.first) + len(pair.second) if pair else 0
