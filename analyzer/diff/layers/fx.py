"""What differs between two post-grad FX graphs. Dead nodes and the order of nodes do not count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from analyzer.compare.sameness import same_program
from analyzer.diff.following import differ
from analyzer.diff.fx_matching import FxMatching, FxShape
from analyzer.diff.fx_regions import Region, regions
from analyzer.diff.layers.words import arrival_text
from analyzer.diff.matching import GraphSide, Matching
from analyzer.diff.records import Change, Kind, Layer, Side
from analyzer.facts import NodeFact
from analyzer.model import FxNode


def fx_changes(matching: Matching) -> Iterator[Change]:
    """Nodes that came, went or changed, and the graph's results."""
    removed, added = ([node for node in nodes if _counts(node)] for nodes in matching.fx.left())
    facts = [{fact.name: fact for fact in side.facts.nodes} for side in (matching.old, matching.new)]
    for region in regions(matching.fx, removed, added):
        sides = _side(region.old, facts[0], matching.old), _side(region.new, facts[1], matching.new)
        yield Change(_kind(region), Layer.FX, _aspect(region), _subject(region), *sides)
    pairs = [(one, other) for one, other in matching.fx.pairs() if _counts(one) or _counts(other)]
    following = {aspect: spread.following for aspect, spread in matching.spreads.items()}
    for one, other in pairs:
        told_below = [aspect for aspect, names in following.items() if one.name in names]
        yield from _node_changes(matching, one, other, told_below)
    for aspect, names in following.items():
        yield from _following_change(aspect, [pair for pair in pairs if pair[0].name in names])
    yield from _output_changes(matching)
    yield from _subgraph_changes(matching)


def _counts(node: FxNode) -> bool:
    return node.op != "output" and (node.live or node.op == "placeholder")


def subject_of(node: FxNode) -> str:
    """What kind of node it is: its target, or `input`."""
    return "input" if node.op == "placeholder" else node.target


def both(one: str, other: str) -> str:
    """One word for two sides, whichever is the old one."""
    return " / ".join(sorted({one, other}))


def _kind(region: Region) -> Kind:
    return Kind.CHANGED if region.old and region.new else Kind.REMOVED if region.old else Kind.ADDED


def _aspect(region: Region) -> str:
    return "node" if len(region.old) + len(region.new) == 1 else "nodes"


def _subject(region: Region) -> str:
    nodes = (*region.old, *region.new)
    return subject_of(nodes[0]) if len(nodes) == 1 else "nodes"


def _side(nodes: Sequence[FxNode], facts: Mapping[str, NodeFact], side: GraphSide) -> Side:
    """One node by what it is and became, several by their names with one line of code each."""
    if not nodes:
        return Side()
    names = tuple(node.name for node in nodes)
    lines = tuple(_node_text(node, facts[node.name], side) for node in nodes)
    if len(nodes) == 1:
        return Side(names, lines[0], nodes[0].location)
    code = tuple(f"{name} = {line}" for name, line in zip(names, lines, strict=True))
    return Side(names, ", ".join(names), nodes[0].location, code)


def _node_text(node: FxNode, fact: NodeFact, side: GraphSide) -> str:
    text = f"{subject_of(node)} {_tensor_text(node)}".strip()
    return text if node.op == "placeholder" else f"{text}, {arrival_text(fact, side)}"


def _tensor_text(node: FxNode) -> str:
    if node.dtype is None or node.shape is None:
        return ""
    return f"{node.dtype.removeprefix('torch.')}[{', '.join(map(str, node.shape))}]"


def _changed(aspect: str, pair: tuple[FxNode, FxNode], old: str, new: str) -> Change:
    one, other = pair
    sides = Side((one.name,), old, one.location), Side((other.name,), new, other.location)
    return Change(Kind.CHANGED, Layer.FX, aspect, both(*map(subject_of, pair)), *sides)


def _node_changes(matching: Matching, one: FxNode, other: FxNode, following: Collection[str]) -> Iterator[Change]:
    """What differs between matched nodes; `following` are aspects that the nodes they read explain."""
    pair, call = (one, other), one.op != "placeholder"
    if one.target != other.target and call:
        yield _changed("target", pair, one.target, other.target)
    for aspect, old, new in _tensor_differences(matching.fx, one, other):
        if aspect not in following:
            yield _changed(aspect, pair, old, new)
    if one.target == other.target and call:
        yield from _argument_changes(matching, one, other)


def _tensor_differences(fx: FxMatching, one: FxNode, other: FxNode) -> Iterator[tuple[str, str, str]]:
    """Aspect, old and new value; of tensors of unlike shapes the strides count only by their order."""
    if differ(fx, one, other, "dtype"):
        yield "dtype", _value_text(one, "dtype"), _value_text(other, "dtype")
    unlike = differ(fx, one, other, "shape")
    if unlike:
        yield "shape", _value_text(one, "shape"), _value_text(other, "shape")
    if _other_order(one, other) if unlike else fx.unlike_sizes(one.stride, other.stride):
        yield "stride", _value_text(one, "stride"), _value_text(other, "stride")


def _other_order(one: FxNode, other: FxNode) -> bool:
    """Whether dimensions follow each other in memory otherwise; unknown for symbolic strides."""
    strides = [[step for step in node.stride or () if isinstance(step, int)] for node in (one, other)]
    orders = [sorted(range(len(stride)), key=stride.__getitem__) for stride in strides]
    known = len(orders[0]) == len(orders[1]) == len(one.stride or ()) == len(other.stride or ())
    return known and orders[0] != orders[1]


def _value_text(node: FxNode, aspect: str) -> str:
    value = getattr(node, aspect)
    return str(list(value)) if isinstance(value, tuple) else str(value).removeprefix("torch.")


def _following_change(aspect: str, pairs: Sequence[tuple[FxNode, FxNode]]) -> Iterator[Change]:
    """All nodes that are otherwise because something they read is, as one change."""
    if pairs:
        yield Change(
            Kind.CHANGED,
            Layer.FX,
            f"{aspect}s",
            "nodes",
            *(_values_side(nodes, aspect) for nodes in zip(*pairs, strict=True)),
        )


def _values_side(nodes: Sequence[FxNode], aspect: str) -> Side:
    values = [_value_text(node, aspect) for node in nodes]
    code = tuple(f"{node.name}: {value}" for node, value in zip(nodes, values, strict=True))
    return Side(tuple(node.name for node in nodes), ", ".join(dict.fromkeys(values)), nodes[0].location, code)


def _argument_changes(matching: Matching, one: FxNode, other: FxNode) -> Iterator[Change]:
    """Literal arguments, or which nodes are passed; not when the other node is itself new or gone."""
    old, new = matching.fx.old, matching.fx.new
    if _literals(one, old) != _literals(other, new):
        yield _changed("arguments", (one, other), _call_text(one), _call_text(other))
        return
    if _rewired(matching, one, other):
        yield _changed("inputs", (one, other), _call_text(one), _call_text(other))


def _rewired(matching: Matching, one: FxNode, other: FxNode) -> bool:
    """Whether a matched node is passed in the place of another matched one."""
    fx = matching.fx
    left = Counter((place, fx.to_new[name]) for place, name in fx.old.operands(one) if name in fx.to_new)
    right = Counter((place, name) for place, name in fx.new.operands(other) if name in fx.to_old)
    return bool({place for place, _ in left - right} & {place for place, _ in right - left})


def _literals(node: FxNode, shape: FxShape) -> object:
    """Positional and keyword arguments alike; sets of keywords in any order. The shape that a view restates is told."""
    own = _value_text(node, "shape")
    args = [arg if arg != own else "its shape" for arg in node.args]
    kwargs = sorted((key, shape.blank(value, node)) for key, value in node.kwargs)
    return [shape.blank(arg, node) for arg in args], kwargs


def _call_text(node: FxNode) -> str:
    given = [*node.args, *(f"{key}={value}" for key, value in node.kwargs)]
    return f"{node.target}({', '.join(given)})"


def _output_changes(matching: Matching) -> Iterator[Change]:
    """Results of the graph: how many, and which; a result that is new or gone tells itself."""
    old, new = matching.fx.old.outputs, matching.fx.new.outputs
    to_new = matching.fx.to_new
    same = len(old) == len(new) and all(_same_result(a, b, to_new.get, matching) for a, b in zip(old, new, strict=True))
    if not same and old and new:
        lone = [name for name in old if to_new.get(name or "") not in new]
        lone_new = [name for name in new if matching.fx.to_old.get(name or "") not in old]
        texts = (
            (_results_text(old, lone), _results_text(new, lone_new)) if lone or lone_new else map(_names, (old, new))
        )
        yield Change(Kind.CHANGED, Layer.FX, "outputs", "output", *(Side(("output",), text) for text in texts))


def _results_text(results: Sequence[str | None], told: Sequence[str | None]) -> str:
    """`3 results with add_1, relu`."""
    return f"{len(results)} result{'s' * (len(results) != 1)}{' with ' * bool(told)}{_names(told)}"


def _names(results: Iterable[str | None]) -> str:
    return ", ".join(dict.fromkeys(map(str, results)))


def _same_result(one: str | None, other: str | None, to_new: Callable[[str], str | None], matching: Matching) -> bool:
    if one is None or other is None:
        return one is other
    lone = to_new(one) is None or other not in matching.fx.to_old
    return lone or to_new(one) == other


def _subgraph_changes(matching: Matching) -> Iterator[Change]:
    """Branches and bodies of control flow, by the names of their attributes."""
    one, other = (side.facts.graph.fx or side.facts.graph.readable for side in (matching.old, matching.new))
    if one is None or other is None:
        return
    for name in sorted(one.subgraphs.keys() | other.subgraphs.keys()):
        old, new = one.subgraphs.get(name), other.subgraphs.get(name)
        if old is None or new is None or not same_program(old, new):
            texts = (f"{len(graph.nodes)} nodes" if graph else "absent" for graph in (old, new))
            yield Change(Kind.CHANGED, Layer.FX, "subgraph", "subgraph", *(Side((name,), text) for text in texts))
