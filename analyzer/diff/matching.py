"""Which buffer of the old graph is which of the new one: through the FX node whose value it holds.

Helper buffers of a lowering hold no node's value: they are matched by what they compute and from what. Nothing is ever
matched because two numbers in names are equal.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from analyzer.diff.bodies import Naming, canonical_body
from analyzer.diff.following import ASPECTS, Aspect, Spread, spread
from analyzer.diff.fx_matching import FxMatching, match_fx
from analyzer.diff.symbols import renamed
from analyzer.facts import BufferFact, GraphFacts
from analyzer.model import CompiledGraph, DumpNode, FxGraph, IrDump, KernelCall, KernelDef


@dataclass(frozen=True)
class GraphSide:
    """One graph's facts, arranged for look-up."""

    facts: GraphFacts
    symbols: Mapping[str, str]

    @cached_property
    def buffers(self) -> Mapping[str, BufferFact]:
        """Buffers by name, in order."""
        return {fact.name: fact for fact in self.facts.buffers}

    @cached_property
    def fx_order(self) -> Mapping[str, int]:
        """The place of each FX node in the graph."""
        return {fact.name: at for at, fact in enumerate(self.facts.nodes)}

    @cached_property
    def leaves(self) -> Mapping[str, DumpNode]:
        """For each buffer the scheduler node that makes it, as it was before fusion where that is known."""
        graph = self.facts.graph
        dump: IrDump | None = next((d for d in (graph.pre, graph.post) if d is not None and d.nodes), None)
        return {buffer.name: leaf for leaf in (dump.leaves() if dump else ()) for buffer in leaf.buffers}

    @cached_property
    def kernels(self) -> Mapping[str, KernelDef]:
        """Generated kernels by name."""
        code = self.facts.graph.code
        return {kernel.name: kernel for kernel in (code.kernels if code else ())}

    @cached_property
    def calls(self) -> Mapping[str, list[KernelCall]]:
        """Calls by callee."""
        found: defaultdict[str, list[KernelCall]] = defaultdict(list)
        for call in self.facts.graph.code.calls() if self.facts.graph.code else ():
            found[call.callee].append(call)
        return found

    def text(self, value: object) -> str:
        """A size or stride as text, symbols by rank."""
        if isinstance(value, tuple):
            return f"[{', '.join(map(self.text, value))}]"
        return renamed(str(value), self.symbols)


_ALONE = ("old:", "new:")


def is_alone(name: str) -> bool:
    """Whether a name given by `Matching.naming` is of something that the other graph lacks."""
    return name.startswith(_ALONE)


@dataclass
class Matching:
    """Two graphs and what in them is the same thing. `buffers` maps old names to new ones."""

    old: GraphSide
    new: GraphSide
    fx: FxMatching
    buffers: dict[str, str] = field(default_factory=dict)

    @cached_property
    def buffers_back(self) -> Mapping[str, str]:
        """The matching of buffers from the new graph's names."""
        return {other: one for one, other in self.buffers.items()}

    @cached_property
    def spreads(self) -> Mapping[Aspect, Spread]:
        """How far other dtypes and other shapes go through the FX graph."""
        return {aspect: spread(self.fx, aspect) for aspect in ASPECTS}

    def pairs(self) -> Iterator[tuple[BufferFact, BufferFact]]:
        """Matched buffers in the old graph's order."""
        for name, fact in self.old.buffers.items():
            if name in self.buffers:
                yield fact, self.new.buffers[self.buffers[name]]

    @property
    def _matched_new(self) -> set[str]:
        return set(self.fx.to_old) | set(self.buffers.values())

    def naming(self, side: GraphSide) -> Naming:
        """A buffer's or input's name in the new graph's words; marked where the other graph lacks it."""
        old = side is self.old
        shape = self.fx.old if old else self.fx.new
        known = {**self.fx.to_new, **self.buffers} if old else {name: name for name in self._matched_new}
        mark = _ALONE[0] if old else _ALONE[1]

        def name(text: str) -> str:
            ours = text in side.buffers or text in shape.by_name
            return known.get(text) or (mark + text if ours else text)

        return name


def match_graphs(
    old: GraphFacts,
    new: GraphFacts,
    nodes: Mapping[str, str] | None = None,
    buffers: Mapping[str, str] | None = None,
) -> Matching:
    """Matches two graphs; `nodes` and `buffers` are pairs that the caller knows, old name to new name."""
    fx = match_fx(
        [fact.node for fact in old.nodes],
        [fact.node for fact in new.nodes],
        (_outputs(old.graph), _outputs(new.graph)),
        nodes,
    )
    matching = Matching(GraphSide(old, fx.old.symbols), GraphSide(new, fx.new.symbols), fx)
    sides = matching.old.buffers, matching.new.buffers
    known = (buffers or {}).items()
    matching.buffers.update({one: other for one, other in known if one in sides[0] and other in sides[1]})
    _match_owned(matching)
    _match_helpers(matching)
    return matching


def _outputs(graph: CompiledGraph) -> tuple[str | None, ...]:
    fx: FxGraph | None = graph.fx or graph.readable
    return fx.outputs if fx is not None else ()


def _match_owned(matching: Matching) -> None:
    """Buffers that hold the value of matched FX nodes."""
    owned: defaultdict[str, list[BufferFact]] = defaultdict(list)
    taken = set(matching.buffers.values())
    for fact in matching.new.facts.buffers:
        if fact.fx_node is not None and fact.name not in taken:
            owned[fact.fx_node].append(fact)
    for fact in matching.old.facts.buffers:
        node = matching.fx.to_new.get(fact.fx_node or "")
        candidates = owned[node] if node is not None and fact.name not in matching.buffers else []
        if candidates:
            best = next((c for c in candidates if c.ir_class == fact.ir_class), candidates[0])
            candidates.remove(best)
            matching.buffers[fact.name] = best.name


def _match_helpers(matching: Matching) -> None:
    """Buffers without a node of their own, again and again while each round tells more about the next ones.

    By computation also those that hold a node's value on one side alone: an attribution may fail, a body does not.
    """
    for signature in (_computation, _nodes, _last_node, _mutated, _resized(matching)):
        before, any_owner = -1, signature is _computation
        while len(matching.buffers) != before:
            before = len(matching.buffers)
            _match_helpers_once(matching, signature, any_owner)


Signature = Callable[[GraphSide, BufferFact, Naming], Hashable]


def _match_helpers_once(matching: Matching, signature: Signature, any_owner: bool) -> None:
    """One round; several helpers of one signature are interchangeable and matched in order."""
    naming = matching.naming(matching.old), matching.naming(matching.new)
    taken = set(matching.buffers.values())
    free: defaultdict[Hashable, list[BufferFact]] = defaultdict(list)
    for fact in matching.new.facts.buffers:
        if fact.name not in taken and (any_owner or fact.fx_node not in matching.fx.to_old):
            free[signature(matching.new, fact, naming[1])].append(fact)
    for fact in matching.old.facts.buffers:
        if fact.name not in matching.buffers and free and (any_owner or fact.fx_node not in matching.fx.to_new):
            candidates = free.get(signature(matching.old, fact, naming[0]), [])
            found = next((other for other in candidates if _may_be_one(matching.fx, fact, other)), None)
            if found is not None:
                matching.buffers[fact.name] = found.name
                candidates.remove(found)


def _may_be_one(fx: FxMatching, one: BufferFact, other: BufferFact) -> bool:
    """Not when one's nodes are all matched and the other is made for none of them: another layer has a twin of it."""
    ours, theirs = set(one.origins), set(other.origins)
    common = {fx.to_new.get(name) for name in ours} & theirs
    return bool(common) or not (ours and theirs) or not (ours <= fx.to_new.keys() or theirs <= fx.to_old.keys())


def _computation(side: GraphSide, fact: BufferFact, naming: Naming) -> Hashable:
    """What a helper computes, from what, as what; unique to it while something it reads is not matched."""
    leaf = side.leaves.get(fact.name)
    reads = sorted({naming(dep.buffer) for dep in leaf.reads}) if leaf else []
    if leaf is None or any(is_alone(name) for name in reads):
        return object()
    return fact.ir_class, _tensor(side, fact), tuple(reads), leaf.kernel, _body(leaf, fact, side, naming)


def _body(leaf: DumpNode, fact: BufferFact, side: GraphSide, naming: Naming) -> Hashable:
    own = {buffer.name: f"self{position}" for position, buffer in enumerate(leaf.buffers)}
    place = own.get(fact.name)
    if leaf.body is None:
        return place
    return place, canonical_body(leaf.body, lambda name: own.get(name) or naming(name), side.symbols)


def _tensor(side: GraphSide, fact: BufferFact) -> Hashable:
    layout = fact.layout
    return (layout.dtype, side.text(layout.size)) if layout is not None else None


def _nodes(side: GraphSide, fact: BufferFact, naming: Naming) -> Hashable:
    """The FX nodes that a helper computes, when its computation itself differs."""
    origins = frozenset(naming(name) for name in fact.origins)
    if not origins or any(is_alone(name) for name in origins):
        return object()
    return fact.ir_class, _tensor(side, fact), origins


def _last_node(side: GraphSide, fact: BufferFact, naming: Naming) -> Hashable:
    """The FX node that a helper is made for: what is inlined before it may differ."""
    last = _last_origin(side, fact, naming)
    return (fact.ir_class, _tensor(side, fact), last) if last is not None else object()


def _resized(matching: Matching) -> Signature:
    """The last node again, for helpers of nodes that have another shape or dtype."""
    reached = {matching.fx.to_new[name] for spread in matching.spreads.values() for name in spread.reached}

    def signature(side: GraphSide, fact: BufferFact, naming: Naming) -> Hashable:
        last = _last_origin(side, fact, naming)
        dimensions = len(fact.layout.size or ()) if fact.layout else None
        return (fact.ir_class, dimensions, last) if last in reached else object()

    return signature


def _last_origin(side: GraphSide, fact: BufferFact, naming: Naming) -> str | None:
    """The last node that a helper is made for, where both graphs have it."""
    last = naming(max(fact.origins, key=lambda name: side.fx_order.get(name, -1), default=""))
    return None if not last or is_alone(last) else last


def _mutated(side: GraphSide, fact: BufferFact, naming: Naming) -> Hashable:
    """What a helper writes into, when nothing tells which nodes it is made for."""
    leaf = side.leaves.get(fact.name)
    targets = [naming(name) for buffer in (leaf.buffers if leaf else ()) for name in buffer.mutations]
    return (fact.ir_class, *targets) if targets and not any(map(is_alone, targets)) else object()
