"""Which FX nodes matter: those that the graph's output needs, and those that change something outside.

The printed graph still holds dead nodes (torch/_inductor/fx_passes/post_grad.py removes only some of them), so counts
of nodes need this closure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from analyzer.artifacts.fx_statement import mentions
from analyzer.model import FxNode

_EFFECTS = frozenset({
    "_assert",
    "_assert_async",
    "_assert_scalar",
    "_assert_tensor_metadata",
    "_enter_autocast",
    "_exit_autocast",
    "_print",
    "_record_function_enter",
    "_record_function_enter_new",
    "_record_function_exit",
    "_set_grad_enabled",
    "call_torchbind",
    "print",
    "record_stream",
    "sym_constrain_range",
    "sym_constrain_range_for_size",
    "wait_tensor",
    "with_effects",
})  # fmt: skip
"""Ops with an effect beyond their result: `_side_effectful_functions` of torch/fx/node.py, and effectful HOPs."""

_VIEWS = frozenset({
    "alias", "as_strided", "detach", "diagonal", "expand", "getitem", "imag", "movedim", "narrow", "permute", "real",
    "reshape", "select", "slice", "split", "split_with_sizes", "squeeze", "t", "transpose", "unbind", "unfold",
    "unsqueeze", "view", "view_as_complex", "view_as_real",
})  # fmt: skip
"""Ops whose result may share its first argument's memory, so that writing to it writes to the argument."""

_OPERATORS = frozenset({"and_", "or_"})
_IN_PLACE_OPERATORS = frozenset({
    "iadd", "iand", "ifloordiv", "ilshift", "imatmul", "imod", "imul", "ior", "ipow", "irshift", "isub", "itruediv",
    "ixor", "setitem",
})  # fmt: skip
_MUTATING_HOPS = ("triton_kernel_wrapper_mutation",)
_NAMESPACES = frozenset({
    "aten", "c10d", "c10d_functional", "_c10d_functional", "_c10d_functional_autograd", "fsdp", "higher_order",
    "inductor", "inductor_prims", "mkl", "mkldnn", "mkldnn_prepacked", "onednn", "prim", "prims", "profiler",
    "quantized", "quantized_decomposed", "_quantized", "rngprims", "symm_mem", "torch", "xpu",
})  # fmt: skip
"""Where torch's own ops live, which keep to its rules for names."""


def live_names(nodes: Sequence[FxNode], lost: Collection[str] = ()) -> set[str]:
    """Names of the live nodes. `lost` are names mentioned by lines that could not be read: they stay live.

    Without an output node (a cut-off graph) nothing can be called dead, so all are live.
    """
    if not nodes or nodes[-1].op != "output":
        return {node.name for node in nodes}
    closure = _Closure(frozenset(name for node in nodes for name in node.inputs))
    for node in nodes:
        closure.add(node)
    return closure.reach([*closure.roots, *lost])


class _Closure:
    """What each node needs: its inputs, and the node that last wrote to the memory of each input."""

    def __init__(self, used: frozenset[str]) -> None:
        self._used = used
        self.roots: list[str] = []
        self._needs: dict[str, list[str]] = {}
        self._memory: dict[str, str] = {}
        self._outside: set[str] = set()
        self._last_write: dict[str, str] = {}

    def add(self, node: FxNode) -> None:
        names = node.inputs if _may_write_anywhere(node, node.name in self._used) else _written(node)
        written = {self._memory.get(name, name) for name in names}
        needs = self._needs[node.name] = list(node.inputs)
        if self._last_write:
            needs += [writer for name in node.inputs if (writer := self._last_write.get(self._memory.get(name, name)))]
        self._last_write.update(dict.fromkeys(written, node.name))
        if node.op in ("placeholder", "get_attr"):
            self._outside.add(node.name)
        if node.op == "output" or _base(node.target) in _EFFECTS or written & self._outside:
            self.roots.append(node.name)
        if node.inputs and (written or _base(node.target) in _VIEWS):
            self._memory[node.name] = self._memory.get(node.inputs[0], node.inputs[0])

    def reach(self, roots: Iterable[str]) -> set[str]:
        seen: set[str] = set()
        waiting = list(roots)
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                waiting.extend(self._needs.get(name, ()))
        return seen


def _written(node: FxNode) -> list[str]:
    """The inputs whose memory the node writes to: the first argument of `x_` ops, what `out=` names."""
    known = frozenset(node.inputs)
    if _base(node.target) in _MUTATING_HOPS:
        return list(node.inputs)
    texts = [text for key, text in node.kwargs if key == "out"]
    if node.args and _is_in_place(node.target):
        texts.append(node.args[0])
    return [name for text in texts for name in mentions(text, known)]


def _may_write_anywhere(node: FxNode, used: bool) -> bool:
    """A custom op, whose signature no dump has: it returns nothing, or its name says that it writes."""
    custom = node.target.count(".") > 1 and node.target.partition(".")[0] not in _NAMESPACES
    returns = used or node.annotation is not None
    return node.op == "call_function" and custom and (not returns or _is_in_place(node.target))


def _is_in_place(target: str) -> bool:
    base = _base(target)
    return base in _IN_PLACE_OPERATORS or (base.endswith("_") and not base.startswith("__") and base not in _OPERATORS)


def _base(target: str) -> str:
    """`aten.view.default` → `view`; `operator.getitem` → `getitem`; a method's name is its own base."""
    parts = target.split(".")
    return parts[-2] if len(parts) > 2 and parts[0] != "torch" else parts[-1]


def users_of(nodes: Sequence[FxNode]) -> Mapping[str, tuple[str, ...]]:
    """Node → its users in order, each once."""
    users: dict[str, dict[str, None]] = {}
    for node in nodes:
        for name in node.inputs:
            users.setdefault(name, {})[node.name] = None
    return {name: tuple(found) for name, found in users.items()}
