"""Which FX nodes each loop body computes: its origins, inlined nodes included."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from analyzer.analyze.align import Aligner
from analyzer.analyze.fx_index import FxIndex
from analyzer.analyze.leaves import Leaf
from analyzer.analyze.owners import Owners
from analyzer.analyze.targets import MATMULS, is_foreach, is_getitem, is_view, packet
from analyzer.model import FxNode


@dataclass(frozen=True)
class Bodies:
    """For each buffer the FX nodes on the way from what its body loads to its value, views and getitems included.

    `claimed` are further nodes that Inductor counts among the origins of a copy that it makes for a library call: the
    call, and what its other arguments are computed from (torch/_inductor/graph.py, `gather_origins`).
    """

    nodes: Mapping[str, frozenset[str]]
    claimed: Mapping[str, frozenset[str]]
    with_views: bool

    def origins(self, buffer: str, fx: FxIndex) -> tuple[str, ...]:
        """Those that Inductor counts as origins, in graph order.

        A getitem and a view that changes nothing make no IR node; up to torch 2.5 `gather_origins` passed over views.
        """
        known = self.nodes.get(buffer, frozenset()) | self.claimed.get(buffer, frozenset())
        found = [n for n in known if n in fx.nodes and self._leaves_ir(fx, fx.nodes[n])]
        return tuple(sorted(found, key=fx.order.__getitem__))

    def _leaves_ir(self, fx: FxIndex, node: FxNode) -> bool:
        if is_view(node):
            return self.with_views and not fx.changes_nothing(node)
        return not is_getitem(node)

    def by_node(self) -> Mapping[str, tuple[str, ...]]:
        """For each FX node the buffers whose bodies compute it."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for buffer, nodes in self.nodes.items():
            for node in nodes:
                found[node].append(buffer)
        return {node: tuple(buffers) for node, buffers in found.items()}


def find_bodies(
    fx: FxIndex,
    leaves: Mapping[str, Leaf],
    owners: Owners,
    computed: Mapping[str, frozenset[str]],
    alone: Collection[str],
    with_views: bool,
) -> Bodies:
    """`computed` limits a buffer to what its kernel computes; `alone` are buffers that are all their kernel computes."""
    cones = dict(_cones(fx, leaves, owners))
    _add_helpers(fx, leaves, owners, cones)
    limited = {name: _limited(name, cone, computed, alone, fx) for name, cone in cones.items()}
    claims = {name: _limited(name, claim, computed, (), fx) for name, claim in _claims(fx, leaves, owners)}
    return Bodies(limited, claims, with_views)


def _claims(fx: FxIndex, leaves: Mapping[str, Leaf], owners: Owners) -> Iterator[tuple[str, frozenset[str]]]:
    readers = _readers(leaves)
    made_for = {leaf.name: _only_call(leaf, readers, owners) for leaf in leaves.values() if not leaf.is_extern}
    for name, call in made_for.items():
        if call is not None and not leaves[name].computes and _is_uncounted_copy(fx, owners.node.get(name), call):
            late = {owners.node[other] for other, reader in made_for.items() if reader == call and other in owners.node}
            inside = fx.cone(call, frozenset(owners.node.values()) - late - {call})[0]
            yield name, frozenset(n for n in inside if fx.nodes[n].op == "call_function")


def _only_call(leaf: Leaf, readers: Mapping[str, list[str]], owners: Owners) -> str | None:
    """The library call that alone reads a buffer: its value was not realized before that call was lowered."""
    calls = {owners.implements.get(reader) for reader in readers[leaf.name]}
    return next(iter(calls)) if len(calls) == 1 and leaf.name not in owners.implements else None


def _limited(
    name: str, cone: frozenset[str], computed: Mapping[str, frozenset[str]], alone: Collection[str], fx: FxIndex
) -> frozenset[str]:
    known = computed.get(name)
    if known is None:
        return cone
    selected = {node for node in cone if is_getitem(fx.nodes[node])}
    return frozenset(selected | known) if name in alone else frozenset(selected | (cone & known))


def _cones(fx: FxIndex, leaves: Mapping[str, Leaf], owners: Owners) -> Iterator[tuple[str, frozenset[str]]]:
    aligner = Aligner(fx, leaves, dict(owners.node))
    owned = frozenset(owners.node.values())
    for name, node in owners.node.items():
        leaf = leaves.get(name)
        if leaf is None or leaf.is_extern:
            yield name, frozenset({node})
            continue
        inside = _between(fx, node, aligner.values(aligner.expanded(leaf).loads), owned - {node})
        lists = {p.name for n in inside if (p := fx.parent(fx.nodes[n])) is not None and is_foreach(p)}
        yield name, frozenset(n for n in inside | lists if fx.nodes[n].op == "call_function")


def _is_uncounted_copy(fx: FxIndex, owner: str | None, call: str) -> bool:
    """A copy made while the call was lowered, to give it the layout that it needs; matmuls take values as they are."""
    copied = owner is None or packet(fx.nodes[owner].target) == "clone"
    return copied and packet(fx.nodes[call].target) not in MATMULS


def _readers(leaves: Mapping[str, Leaf]) -> Mapping[str, list[str]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for leaf in leaves.values():
        for load in leaf.loads:
            found[load].append(leaf.name)
    return found


def _between(fx: FxIndex, node: str, values: frozenset[str] | None, owned: frozenset[str]) -> set[str]:
    """The nodes that compute `node` out of the loaded values.

    A buffer that a scatter writes to later holds that node's value: then what it loads tells nothing, and other
    buffers bound the search.
    """
    inside, reached = fx.cone(node, values or owned)
    return inside if values is None or values <= reached else fx.cone(node, owned)[0]


def _add_helpers(
    fx: FxIndex, leaves: Mapping[str, Leaf], owners: Owners, cones: dict[str, frozenset[str]]
) -> None:
    """A helper computes what its readers' cones can compute from the helper's loads alone."""
    readers = _readers(leaves)
    aligner = Aligner(fx, leaves, dict(owners.node))
    for leaf in reversed(leaves.values()):
        values = aligner.values(aligner.expanded(leaf).loads) or frozenset()
        calls = {owners.implements[reader] for reader in readers[leaf.name] if reader in owners.implements}
        if leaf.name in owners.implements and not leaf.is_extern:
            cones[leaf.name] = frozenset(fx.cone(owners.implements[leaf.name], values)[0])
        elif leaf.name not in owners.node:
            wanted = {node for reader in readers[leaf.name] for node in cones.get(reader, ())}
            cones[leaf.name] = calls | _first_part(fx, leaf, wanted | _arguments(fx, calls, owners), values)


def _arguments(fx: FxIndex, calls: Collection[str], owners: Owners) -> set[str]:
    """What lies between the arguments of library calls and the next values that have buffers."""
    owned = frozenset(owners.node.values()) - set(calls)
    return {node for call in calls for node in fx.cone(call, owned)[0]} - set(calls)


def _first_part(fx: FxIndex, leaf: Leaf, wanted: Collection[str], values: Collection[str]) -> frozenset[str]:
    """Of what the readers need, the part up to the node whose lowering made the helper.

    A lowering makes helpers when one FX node needs several loops (variance, split reductions): that node is the first
    one whose operations include the helper's last. A plain copy is made for the call that reads it.
    """
    possible = sorted(set(wanted) & (fx.computable(values) - set(values)), key=fx.order.__getitem__)
    root = (leaf.root or "").partition(".")[0]
    for name in possible if leaf.computes else ():
        expected = fx.expected(name)
        if root in expected.required or expected.vocabulary is None or root in expected.vocabulary:
            return frozenset(fx.cone(name, values)[0])
    return frozenset(possible)
