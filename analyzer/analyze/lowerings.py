"""What a lowering leaves in a loop body: the knowledge of torch/_inductor/lowering.py that alignment needs.

Bodies and FX nodes are compared as multisets of `ops.*` names. Loads, stores, constants, index arithmetic and casts do
not count, since simplification adds and drops them freely; spellings that Inductor swaps for one another
(`a / 2` for `a * 0.5`, `logical_and` for a product of bools) count as one word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from analyzer.analyze.targets import MATMULS, is_compute, is_foreach, is_inlined, item_index, packet, words
from analyzer.model import FxNode

SAME = {
    **dict.fromkeys(words("truediv square logical_and bitwise_and and_ reciprocal"), "mul"),
    **dict.fromkeys(words("logical_or or_"), "bitwise_or"),
    "bitwise_not": "logical_not",
    "randn": "rand",
}
"""Operations that Inductor writes for one another, and the word that stands for them here."""

UNROLLED = {
    "reduction:sum": "add",
    "reduction:prod": "mul",
    "reduction:max": "maximum",
    "reduction:min": "minimum",
    "reduction:any": "bitwise_or",
}
"""What a reduction over a few elements is written out as (torch/_inductor/ir.py, `Reduction.create`)."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a lowering leaves in a body: `required` words, further ones out of `vocabulary` (None: anything).

    At least one of `any_of` is there, if it names any.
    """

    required: Counter[str] = field(default_factory=Counter)
    vocabulary: frozenset[str] | None = frozenset()
    any_of: frozenset[str] = frozenset()


UNKNOWN = Expectation(vocabulary=None)
_BIASED = Expectation(Counter({"add": 1}), None)
"""A packed matmul whose bias a loop adds (torch/_inductor/mkldnn_lowerings.py, `mkl_packed_linear`)."""
NOTHING = Expectation()

_PLAIN = words("""
    abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_not bitwise_or
    bitwise_right_shift bitwise_xor ceil copysign cos cosh eq erf erfc erfinv exp exp2 expm1 floor ge gt hypot isinf
    isnan le lgamma log log10 log1p log2 logical_and logical_not logical_or logical_xor lt maximum minimum mul ne neg
    nextafter reciprocal relu round rsqrt sigmoid sign signbit sin sinh sqrt sub tan tanh trunc where
""")
"""Targets whose lowering is the operation of the same name."""

_RENAMED = {
    **dict.fromkeys(("div", "true_divide"), "mul"),
    "rsub": "sub",
    "amax": "reduction:max",
    "amin": "reduction:min",
    "prod": "reduction:prod",
    "any": "reduction:any",
    "clamp_min": "maximum",
    "clamp_max": "minimum",
    "inductor_random": "rand",
}

_MOVES = words("""
    clone convert_element_type copy copy_ full scatter scatter_add scatter_reduce inductor_force_stride_order contiguous
    full_like empty device_put _to_copy iota arange lift_fresh_copy zeros_like ones_like scalar_tensor
    inductor_lookup_seed inductor_seeds rev
""")
"""Lowerings that only move data or make constants."""

_MASKED_MOVES = words("""
    slice_scatter constant_pad_nd cat index_put index_put_ gather embedding index _unsafe_index
    _unsafe_index_put tril triu flip roll repeat
""")
_MASK = words("add mul sub lt le gt ge eq ne where minimum maximum bitwise_or logical_not")
_WELFORD = words("reduction:welford_reduce reduction:welford_combine")
_COMPARED = words("gt lt eq ne bitwise_or mul where")
"""An argmax or argmin over a few elements, written out (torch/_inductor/ir.py, `get_reduction_combine_fn`)."""

_TABLE: Mapping[str, Expectation] = {
    **{name: Expectation(Counter({SAME.get(name, name): 1})) for name in _PLAIN},
    **{name: Expectation(Counter({word: 1})) for name, word in _RENAMED.items()},
    **dict.fromkeys(_MOVES, NOTHING),
    **dict.fromkeys(_MASKED_MOVES, Expectation(vocabulary=_MASK)),
    **dict.fromkeys(
        MATMULS,
        Expectation(vocabulary=words("mul add fma reduction:sum"), any_of=words("mul reduction:sum")),
    ),
    "select_scatter": Expectation(Counter({"eq": 1, "where": 1})),
    "pow": Expectation(vocabulary=words("mul pow sqrt rsqrt libdevice_pow")),
    "square": Expectation(vocabulary=words("mul pow")),
    "sum": Expectation(vocabulary=words("add reduction:sum")),
    "mean": Expectation(vocabulary=words("add mul reduction:sum")),
    "var_mean": Expectation(vocabulary=words("mul add sub maximum reduction:sum") | _WELFORD),
    "var": Expectation(
        vocabulary=words("mul sub add maximum reduction:sum") | _WELFORD, any_of=words("sub") | _WELFORD
    ),
    "argmax": Expectation(vocabulary=_COMPARED | {"reduction:argmax"}, any_of=words("where reduction:argmax")),
    "argmin": Expectation(vocabulary=_COMPARED | {"reduction:argmin"}, any_of=words("where reduction:argmin")),
    "clamp": Expectation(vocabulary=words("maximum minimum")),
    "fma": Expectation(vocabulary=words("add mul fma")),
}

_VARIANCE = Expectation(vocabulary=words("sub mul maximum"), any_of=words("sub") | _WELFORD)
"""What the first result of var_mean adds to the mean, its second."""

_ITEM_ROOTS: Mapping[tuple[str, int], frozenset[str]] = {
    ("var_mean", 0): words("mul"),
    ("var_mean", 1): words("mul reduction:welford_reduce.0 reduction:welford_combine.0"),
    ("max", 0): words("reduction:max reduction:argmax_value maximum"),
    ("max", 1): words("reduction:argmax where"),
    ("min", 0): words("reduction:min reduction:argmin_value minimum"),
    ("min", 1): words("reduction:argmin where"),
    ("sort", 0): words("sort.0"),
    ("sort", 1): words("sort.1"),
    ("prepare_softmax_online", 0): words("reduction:online_softmax_reduce.0"),
    ("prepare_softmax_online", 1): words("reduction:online_softmax_reduce.1"),
}
"""For `node[i]`: the operations that may produce the stored value."""

_ROOTS = {
    "mean": words("mul"),
    "var": words("mul"),
    "sum": words("reduction:sum add load"),
    "argmax": words("reduction:argmax where"),
    "argmin": words("reduction:argmin where"),
}

_REDUCTIONS = words("sum mean prod amax amin any argmax argmin max min var var_mean")

_OPERAND_SCALARS = _PLAIN | _RENAMED.keys() | {"inductor_lookup_seed"}


def expectation(node: FxNode, parent: FxNode | None = None) -> Expectation:
    """What the node's lowering leaves in a body that computes it.

    `parent` is the node that a getitem takes a result of.
    """
    if parent is not None:
        return _item_expectation(node, parent)
    if is_inlined(node):
        return Expectation(vocabulary=words("lt where"))
    if not is_compute(node) or is_foreach(node):
        return NOTHING
    name, options = packet(node.target), dict(node.kwargs)
    if name == "_mkl_linear":
        return _BIASED if node.args[3:4] not in ((), ("None",)) else UNKNOWN
    if options.get("alpha", "1") != "1":
        return Expectation(_TABLE.get(name, NOTHING).required + Counter({"mul": 1}))
    return UNKNOWN if options.get("rounding_mode", "None") != "None" else _TABLE.get(name, UNKNOWN)


def _item_expectation(node: FxNode, parent: FxNode) -> Expectation:
    if is_foreach(parent):
        element = _TABLE.get(packet(parent.target).removeprefix("_foreach_").strip("_"), UNKNOWN)
        return Expectation(element.required, None)
    first_of_two = packet(parent.target) == "var_mean" and item_index(node) == 0
    return _VARIANCE if first_of_two else NOTHING


def roots(node: FxNode, parent: FxNode | None) -> frozenset[str] | None:
    """The operations that may produce this node's value in a body; None when anything may. `parent` as above."""
    if parent is not None:
        return _ITEM_ROOTS.get((packet(parent.target), item_index(node)))
    name = packet(node.target)
    if name in _ROOTS:
        return _ROOTS[name]
    required = expectation(node).required
    if sum(required.values()) != 1:
        return None
    return frozenset(required) | {UNROLLED[word] for word in required if word in UNROLLED}


def reduces(node: FxNode) -> bool:
    """Whether the lowering is a reduction over some of the argument's dimensions."""
    return packet(node.target) in _REDUCTIONS


def scalars(node: FxNode) -> Counter[float]:
    """The numbers among a node's operands; those of reductions and the like are dimensions, not operands."""
    if packet(node.target) not in _OPERAND_SCALARS:
        return Counter()
    return Counter(number for text in node.args if (number := number_in(text)) is not None)


def number_in(text: str) -> float | None:
    """A literal's value; None for anything else."""
    try:
        return float({"True": "1", "False": "0"}.get(text, text))
    except ValueError:
        return None
