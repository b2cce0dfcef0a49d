"""Kinds of FX targets: which calls compute, which only change a layout, which read no values."""

from __future__ import annotations

from functools import lru_cache

from analyzer.model import FxNode


def words(text: str) -> frozenset[str]:
    """A set of names, written as running text."""
    return frozenset(text.split())


VIEWS = words("""
    alias as_strided detach diagonal expand expand_as flatten lift_fresh movedim narrow permute reshape select slice
    split split_with_sizes squeeze swapaxes t transpose unbind unfold unflatten unsafe_split unsqueeze view view_as
    _conj _neg_view _reshape_alias _unsafe_view unsafe_chunk chunk unsafe_split_with_sizes
""")
"""Targets that compute nothing: they only change sizes, strides or offset."""

MATMULS = words("mm bmm addmm baddbmm _int_mm _scaled_mm")
"""Targets whose lowering realizes its arguments and passes them on as they are."""

TEMPLATED = (
    *("mm", "addmm", "bmm", "baddbmm", "int_mm", "scaled_mm", "convolution"),
    *("mkl_linear", "linear_pointwise", "flex_attention", "flex_attention_backward"),
)
"""Targets that max-autotune may compute by a template, underscores at their ends left out."""

UNFILLED = ("empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided")
"""Targets that only get memory."""

_VALUES_IGNORED = words("""
    empty_like empty full full_like new_empty new_full new_ones new_zeros ones_like zeros_like rand_like randn_like
    zeros ones arange iota empty_strided new_empty_strided empty_permuted
""")

_MAY_CHANGE_NOTHING = words("expand detach alias reshape view _unsafe_view lift_fresh slice")


@lru_cache(maxsize=4096)
def packet(target: str) -> str:
    """`aten.add.Tensor` → `add`; `operator.getitem` → `getitem`."""
    parts = target.removeprefix("torch.ops.").split(".")
    return parts[1] if len(parts) > 1 else parts[0]


def is_getitem(node: FxNode) -> bool:
    """Takes one result of a node with several."""
    return node.op == "call_function" and packet(node.target) == "getitem"


def item_index(node: FxNode) -> int:
    """Which result a getitem takes; -1 where that is no number."""
    return int(node.args[1]) if len(node.args) > 1 and node.args[1].isdecimal() else -1


def is_view(node: FxNode) -> bool:
    """Computes nothing: its value is another node's, seen through a layout."""
    return node.op == "call_function" and packet(node.target) in VIEWS and not node.target.endswith("view.dtype")


def may_change_nothing(node: FxNode) -> bool:
    """A view whose lowering returns its argument when the sizes are the same."""
    return packet(node.target) in _MAY_CHANGE_NOTHING


def is_compute(node: FxNode) -> bool:
    """A call that makes a value: neither a view nor the selection of a result."""
    return node.op == "call_function" and not is_view(node) and not is_getitem(node)


def is_inlined(node: FxNode) -> bool:
    """A constant small enough to be written into loop bodies (torch/_inductor/graph.py, `can_inline_constant`)."""
    shape = node.shape if node.op == "get_attr" else None
    return shape is not None and len(shape) <= 1 and all(isinstance(size, int) and size <= 8 for size in shape)


def mutates(node: FxNode) -> bool:
    """Writes into one of its arguments (`copy_`, `index_put_`)."""
    name = packet(node.target)
    return name.endswith("_") and not name.endswith("__")


def scatters(node: FxNode) -> bool:
    """Lowered to writes into a fresh copy of its first argument."""
    name = packet(node.target)
    return "scatter" in name or "index_put" in name


def reads_values(node: FxNode) -> bool:
    """False where only the shapes of the arguments matter (`full_like`)."""
    return packet(node.target) not in _VALUES_IGNORED


def is_foreach(node: FxNode) -> bool:
    """Computes one result per element of its list arguments."""
    return packet(node.target).startswith("_foreach_")
