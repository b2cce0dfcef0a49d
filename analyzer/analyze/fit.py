"""How well an FX node explains a buffer: shapes, the values loaded, the operations and the constants of the body."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass

from analyzer.analyze.fx_index import FxIndex
from analyzer.analyze.leaves import Leaf
from analyzer.analyze.lowerings import UNROLLED
from analyzer.analyze.targets import is_view
from analyzer.model import FxNode, Layout, Size


@dataclass(frozen=True, slots=True, order=True)
class Cost:
    """What speaks against a node whose operations fit, the weightiest first; less is better.

    Constants that the body lacks; a lowering on the way that we do not know; a last operation that may be anything;
    a view, where a computed value would do.
    """

    stray_constants: int
    unknown_lowering: bool
    unconfirmed_root: bool
    is_view: bool


def cost(fx: FxIndex, name: str, leaf: Leaf, values: Collection[str], targets: Collection[str | None]) -> Cost | None:
    """None if the node's operations are not the body's, or if the body loads a value that the node has no use for.

    `leaf` includes its helpers, `values` are what it loads, `targets` those of them that it only writes to.
    """
    inside, reached = fx.cone(name, values)
    if not all(value in reached or value in targets or _is_by_product(fx, value, inside) for value in values):
        return None
    if not leaf.vague and not explains(fx, name, inside, leaf.words):
        return None
    node = fx.nodes[name]
    return Cost(
        stray_constants=len({n for inner in inside for n in fx.scalars[inner]} - leaf.constants.keys()),
        unknown_lowering=any(fx.expected(inner).vocabulary is None for inner in inside),
        unconfirmed_root=fx.roots[name] is None,
        is_view=is_view(node),
    )


def _is_by_product(fx: FxIndex, value: str, inside: Collection[str]) -> bool:
    """Another result of a node of the cone: a variance is computed from its mean."""
    parent = fx.parent(fx.nodes[value])
    return parent is not None and parent.name in inside


def explains(fx: FxIndex, name: str, inside: Collection[str], body: Counter[str]) -> bool:
    """Whether the lowerings of a cone leave exactly these operations: none is missing, none is unexplained."""
    vocabulary: frozenset[str] | None = frozenset()
    for inner in inside:
        expected = fx.expected(inner)
        if expected.any_of and not expected.any_of & body.keys():
            return False
        vocabulary = None if vocabulary is None or expected.vocabulary is None else vocabulary | expected.vocabulary
    least, most = _bounds(fx, name, inside, body)
    if vocabulary is not None and _is_unrolled(least.keys() | vocabulary, body):
        least = {UNROLLED.get(word, word): 1 for word in least}
        vocabulary |= least.keys()
    if any(count > body[word] for word, count in least.items()):
        return False
    return vocabulary is None or all(word in vocabulary or count <= most.get(word, 0) for word, count in body.items())


def is_exact(fx: FxIndex, name: str, leaf: Leaf, values: Collection[str]) -> bool:
    """Whether the node's operations occur just as often as inlining, which computes them anew for every use, leaves."""
    inside, _ = fx.cone(name, values)
    required = _bounds(fx, name, inside, leaf.words)[1]
    return required.keys() <= leaf.words.keys() and all(leaf.words[word] == required[word] for word in required)


def _bounds(
    fx: FxIndex, name: str, inside: Collection[str], body: Counter[str]
) -> tuple[dict[str, int], dict[str, int]]:
    """How often each operation occurs at least (shared) and at most (computed anew for every use).

    Of constants nothing need be left: Inductor folds them. A reduction that the body lacks may be written out there.
    """
    paths = fx.paths(name, inside)
    least: defaultdict[str, int] = defaultdict(int)
    most: defaultdict[str, int] = defaultdict(int)
    for inner in inside:
        for word, count in fx.expected(inner).required.items():
            written_out = word in UNROLLED and word not in body and fx.unrolled[inner] > 1
            found, times = (UNROLLED[word], fx.unrolled[inner] - 1) if written_out else (word, count)
            least[found] += times if inner not in fx.free else 0
            most[found] += times * paths[inner]
    return least, most


def _is_unrolled(expected: Collection[str], body: Counter[str]) -> bool:
    """A small reduction written out: its operands are computed once per element."""
    return bool(UNROLLED.keys() & set(expected)) and not any(word.startswith("reduction:") for word in body)


def fits(node: FxNode, layout: Layout | None) -> bool:
    """Whether a buffer of this layout can hold the node's value; what is not printed does not speak against it."""
    if layout is None:
        return True
    same_dtype = None in (node.dtype, layout.dtype) or node.dtype == layout.dtype
    return same_dtype and (None in (node.shape, layout.size) or _same_shape(node.shape or (), layout.size or ()))


def _same_shape(left: tuple[Size, ...], right: tuple[Size, ...]) -> bool:
    return left == right or (len(left) == len(right) and all(map(_same_size, left, right)))


def _same_size(left: Size, right: Size) -> bool:
    return left == right or (isinstance(left, str) and _plain(left) == _plain(right))


def _plain(size: Size) -> Size:
    return size if isinstance(size, int) else size.replace(" ", "").strip("()")
