"""What each FX target becomes in a loop body: the knowledge of torch/_inductor/lowering.py that alignment needs.

Both sides are compared as multisets of `ops.*` names. Loads, stores, constants, index arithmetic and casts are left
out, since simplification adds and drops them freely, and spellings that Inductor swaps (`a / 2` for `a * 0.5`) count
as one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from analyzer.model import FxNode, LoopBody, Statement

VIEWS = frozenset(
    ["alias", "as_strided", "detach", "diagonal", "expand", "expand_as", "flatten", "lift_fresh", "movedim", "narrow", "permute", "reshape", "select", "slice", "split", "split_with_sizes", "squeeze", "swapaxes", "t", "transpose", "unbind", "unfold", "unflatten", "unsafe_split", "unsqueeze", "view", "view_as", "_conj", "_neg_view", "_reshape_alias", "_unsafe_view", "unsafe_chunk", "chunk", "unsafe_split_with_sizes"]
)
"""Targets that compute nothing: they only change sizes, strides or offset."""

MATMULS = frozenset("mm bmm addmm baddbmm _int_mm _scaled_mm".split())
"""Targets whose lowering realizes its arguments and passes them on as they are."""

TEMPLATED = ("mm", "addmm", "bmm", "baddbmm", "int_mm", "scaled_mm", "mkl_linear", "linear_pointwise", "convolution", "flex_attention", "flex_attention_backward")
"""Targets that max-autotune may compute by a template, underscores at their ends left out."""

VALUES_IGNORED = frozenset(
    ["empty_like", "empty", "full", "full_like", "new_empty", "new_full", "new_ones", "new_zeros", "ones_like", "zeros_like", "rand_like", "randn_like", "zeros", "ones", "arange", "iota", "empty_strided", "new_empty_strided", "empty_permuted"]
)
"""Targets that read no element of their tensor arguments."""

_SILENT = frozenset(
    ["load", "store", "store_reduction", "constant", "get_index", "getitem", "set_indirect", "check_bounds", "index_expr", "to_dtype", "masked", "return", "masked_subblock", "load_seed", "identity", "to_dtype_bitcast", "partial_accumulate"]
)

_SAME = {"truediv": "mul", "square": "mul", "logical_and": "mul", "bitwise_and": "mul", "reciprocal": "mul", "and_": "mul", "randn": "rand"}
"""Operations that Inductor writes for one another, and the name that stands for them here."""

_PLAIN = frozenset(
    ["abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil", "copysign", "cos", "cosh", "eq", "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "floor", "ge", "gt", "hypot", "isinf", "isnan", "le", "lgamma", "log", "log10", "log1p", "log2", "logical_and", "logical_not", "logical_or", "logical_xor", "lt", "maximum", "minimum", "mul", "ne", "neg", "nextafter", "reciprocal", "relu", "round", "rsqrt", "sigmoid", "sign", "signbit", "sin", "sinh", "sqrt", "sub", "tan", "tanh", "trunc", "where"]
)
_RENAMED = {
    "div": "mul",
    "true_divide": "mul",
    "rsub": "sub",
    "amax": "reduction:max",
    "amin": "reduction:min",
    "prod": "reduction:prod",
    "any": "reduction:any",
    "argmax": "reduction:argmax",
    "argmin": "reduction:argmin",
    "clamp_min": "maximum",
    "clamp_max": "minimum",
    "inductor_random": "rand",
}
_MOVES = frozenset(
    ["clone", "convert_element_type", "copy", "copy_", "full", "scatter", "scatter_add", "scatter_reduce", "inductor_force_stride_order", "contiguous", "full_like", "empty", "device_put", "_to_copy", "iota", "arange", "lift_fresh_copy", "zeros_like", "ones_like", "scalar_tensor", "inductor_lookup_seed", "inductor_seeds"]
)
"""Lowerings that only move data or make constants."""

_WELFORD = frozenset({"reduction:welford_reduce", "reduction:welford_combine"})
_VARIANCE = frozenset({"sub", *_WELFORD})
_MASK_WORDS = frozenset(["add", "mul", "sub", "lt", "le", "gt", "ge", "eq", "ne", "where", "minimum", "maximum", "and_", "or_", "logical_or", "logical_not"])
_VOCABULARIES = {
    **dict.fromkeys(
        ["select_scatter", "slice_scatter", "constant_pad_nd", "cat", "index_put", "index_put_", "gather", "embedding", "index", "_unsafe_index", "_unsafe_index_put", "tril", "triu", "flip", "roll", "repeat"],
        _MASK_WORDS,
    ),
    "square": frozenset({"mul", "pow"}),
    "pow": frozenset({"mul", "pow", "sqrt", "rsqrt", "libdevice_pow"}),
    "var_mean": frozenset({"mul", "add", "reduction:sum", *_WELFORD}),
    "var": frozenset({"mul", "sub", "add", "reduction:sum", *_WELFORD}),
    "sum": frozenset({"add", "reduction:sum"}),
    "mean": frozenset({"add", "mul", "reduction:sum"}),
    **dict.fromkeys(MATMULS, frozenset({"mul", "add", "fma", "reduction:sum"})),
    "clamp": frozenset({"maximum", "minimum"}),
    "fma": frozenset({"add", "mul", "fma"}),
}

_NEEDED = {
    "var": _VARIANCE,
    **dict.fromkeys(MATMULS, frozenset({"mul", "reduction:sum"})),
}
"""Of an open vocabulary, words of which at least one must be there."""

_ITEM_ROOTS: dict[tuple[str, int], frozenset[str]] = {
    ("var_mean", 0): frozenset({"mul"}),
    ("var_mean", 1): frozenset({"mul", "reduction:welford_reduce.0", "reduction:welford_combine.0"}),
    ("max", 0): frozenset({"reduction:max", "reduction:argmax_value"}),
    ("max", 1): frozenset({"reduction:argmax"}),
    ("min", 0): frozenset({"reduction:min", "reduction:argmin_value"}),
    ("min", 1): frozenset({"reduction:argmin"}),
    ("sort", 0): frozenset({"sort.0"}),
    ("sort", 1): frozenset({"sort.1"}),
    ("prepare_softmax_online", 0): frozenset({"reduction:online_softmax_reduce.0"}),
    ("prepare_softmax_online", 1): frozenset({"reduction:online_softmax_reduce.1"}),
}
"""For `node[i]`: the operations that may produce the stored value."""

_ROOTS = {
    "mean": frozenset({"mul"}),
    "sum": frozenset({"reduction:sum", "add", "load"}),
    "var": frozenset({"mul"}),
}


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a lowering leaves in a body: `required` names, further ones out of `vocabulary` (None: anything).

    At least one of `any_of` is there, if it names any.
    """

    required: Counter[str] = field(default_factory=Counter)
    vocabulary: frozenset[str] | None = frozenset()
    any_of: frozenset[str] = frozenset()


def packet(target: str) -> str:
    """`aten.add.Tensor` → `add`; `operator.getitem` → `getitem`."""
    parts = target.removeprefix("torch.ops.").split(".")
    return parts[1] if len(parts) > 1 else parts[0]


def is_getitem(node: FxNode) -> bool:
    """Takes one result of a node with several."""
    return node.op == "call_function" and packet(node.target) == "getitem"


def is_view(node: FxNode) -> bool:
    """Computes nothing: its value is another node's, seen through a layout."""
    return node.op == "call_function" and packet(node.target) in VIEWS and not node.target.endswith("view.dtype")


def is_compute(node: FxNode) -> bool:
    """A call that makes a value: neither a view nor the selection of a result."""
    return node.op == "call_function" and not is_view(node) and not is_getitem(node)


def mutates(node: FxNode) -> bool:
    """Writes into one of its arguments (`copy_`, `index_put_`)."""
    name = packet(node.target)
    return name.endswith("_") and not name.endswith("__")


def reads_values(node: FxNode) -> bool:
    """False where only the shapes of the arguments matter (`full_like`)."""
    return packet(node.target) not in VALUES_IGNORED


def is_foreach(node: FxNode) -> bool:
    """Computes one result per element of its list arguments."""
    return packet(node.target).startswith("_foreach_")


def name_of_foreach(node: FxNode) -> str:
    """`_foreach_add_` → `add`."""
    return packet(node.target).removeprefix("_foreach_").strip("_")


def item_index(node: FxNode) -> int:
    """Which result a getitem takes; -1 where that is no number."""
    return int(node.args[1]) if len(node.args) > 1 and node.args[1].isdecimal() else -1


def expectation(node: FxNode, parent: FxNode | None = None) -> Expectation:
    """What the node's lowering leaves in a body that computes it; `parent` as in `roots`."""
    name = packet(node.target)
    if parent is not None and packet(parent.target) == "var_mean" and item_index(node) == 0:
        return Expectation(vocabulary=frozenset({"sub", "mul"}), any_of=_VARIANCE)
    if name in _NEEDED:
        return Expectation(vocabulary=_VOCABULARIES[name], any_of=_NEEDED[name])
    if parent is not None and is_foreach(parent):
        word = name_of_foreach(parent)
        return Expectation(Counter({_RENAMED.get(word, _SAME.get(word, word)): 1}) if word in _PLAIN | _RENAMED.keys() else Counter(), None)
    if not is_compute(node) or name in _MOVES or is_foreach(node):
        return Expectation()
    if name in _VOCABULARIES:
        return Expectation(vocabulary=_VOCABULARIES[name])
    if name in ("add", "sub") and dict(node.kwargs).get("alpha", "1") != "1":
        return Expectation(Counter({name: 1, "mul": 1}))
    if name in _RENAMED and dict(node.kwargs).get("rounding_mode", "None") == "None":
        return Expectation(Counter({_RENAMED[name]: 1}))
    return Expectation(Counter({_SAME.get(name, name): 1})) if name in _PLAIN else Expectation(vocabulary=None)


def roots(node: FxNode, parent: FxNode | None) -> frozenset[str] | None:
    """The operations that may produce this node's value in a body; None when anything may.

    `parent` is the node that a getitem takes a result of.
    """
    if parent is not None:
        return _ITEM_ROOTS.get((packet(parent.target), item_index(node)))
    name = packet(node.target)
    if name in _ROOTS:
        return _ROOTS[name]
    expected = expectation(node)
    return frozenset(expected.required) if sum(expected.required.values()) == 1 else None


def _word(statement: Statement) -> str:
    if statement.op in ("reduction", "scan") and len(statement.args) > 2:
        return f"reduction:{statement.args[2]}"
    return _SAME.get(statement.op, statement.op)


def words_of(body: LoopBody) -> Counter[str]:
    """The multiset of operations that a loop body computes."""
    return Counter(_word(statement) for statement in body.statements() if statement.op not in _SILENT)


def root_of(body: LoopBody) -> str | None:
    """The operation that produces the stored value, casts looked through; `load` for a plain copy."""
    made = {statement.result: statement for statement in body.statements() if statement.result}
    stores = [s for s in body.statements() if s.op in ("store", "store_reduction")]
    statement = made.get(stores[-1].args[2]) if stores and len(stores[-1].args) > 2 else None
    item = ""
    for _ in range(8):
        if statement is None or statement.op not in ("to_dtype", "getitem", "identity"):
            break
        item = f".{statement.args[1]}" if statement.op == "getitem" else item
        statement = made.get(statement.args[0])
    return None if statement is None else _word(statement) + item


def constants_of(body: LoopBody) -> Counter[float]:
    """The numbers that a loop body mentions."""
    constants = [s.args[0] for s in body.statements() if s.op == "constant" and s.args]
    texts = constants + [s.args[1] for s in body.statements() if s.op == "load_seed" and len(s.args) > 1]
    return Counter(number for text in texts if (number := _number(text)) is not None)


def scalars(node: FxNode) -> Counter[float]:
    """The numbers among a node's operands; those of reductions and the like are dimensions, not operands."""
    if not is_compute(node) or packet(node.target) not in _PLAIN | _RENAMED.keys() | {"inductor_lookup_seed"}:
        return Counter()
    return Counter(number for text in node.args if (number := _number(text)) is not None)


def _number(text: str) -> float | None:
    try:
        return float({"True": "1", "False": "0"}.get(text, text))
    except ValueError:
        return None
