"""Small questions to the expressions of a wrapper: which tensor, which callee, which size."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from analyzer.artifacts.python_source import PythonSource
from analyzer.model import KernelDef, Size

_MODULES = {"torch", "aten", "prims", "math", "extern_kernels", "inductor_ops", "_quantized", "device", "tl", "sys"}
_NO_TENSOR = _MODULES | {"inf", "nan", "nanj", "args", "float", "int", "bool", "max", "min", "None", "self"}
_SIZE_METHODS = {"size", "stride", "item", "numel", "storage_offset", "dim", "nbytes"}
_NUMBER_MAKERS = {"math", "int", "float", "bool", "max", "min", "abs", "round"}
_FALLBACK = re.compile(r"(?:torch\.ops|aten|prims|inductor_ops|_quantized|_c10d_functional)\.")
_ALLOCATION = re.compile(r"(?:torch\.)?(?:_?empty(?:_strided)?(?:_[a-z0-9]+)*|alloc_from_pool)$|aten\.empty")
_LAUNCH = re.compile(r"\.(?:run|generated_kernel)$|^(\w+)\.(?=\1$)")
_COPY = re.compile(r"(?!aten\.|prims\.)(?:\w+\.)?copy_$")
_VIEWS = {"reinterpret_tensor", "as_strided", "c_void_p", "copy_if_misaligned"}
_STREAM = re.compile(r"(?:raw_)?stream\d+$|get_raw_stream$")


def dotted(node: ast.expr) -> str | None:
    """`torch.ops.aten.mm.out` of nested attributes of a name; None for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])


def callee_of(node: ast.expr) -> str:
    """The dotted name that a call expression calls; of a view's method `copy_` only that; "" for other expressions."""
    if not isinstance(node, ast.Call):
        return ""
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    return dotted(node.func) or (method if method == "copy_" else "")


def base_variable(node: ast.expr) -> str:
    """The variable at the bottom of `reinterpret_tensor(buf0, ..)`, `buf1[0]` or `c_void_p(buf2.data_ptr())`.

    "" for numbers, symbolic sizes, streams and lists.
    """
    while True:
        if isinstance(node, ast.Name):
            return "" if node.id in _NO_TENSOR or _STREAM.match(node.id) else node.id
        below = _below(node)
        if below is None:
            return ""
        node = below


def _below(node: ast.expr) -> ast.expr | None:
    """The expression whose memory this one shows, one level down."""
    if isinstance(node, ast.Subscript | ast.Starred):
        return node.value
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Name):
        return node.args[0] if node.func.id in _VIEWS and node.args else None
    if isinstance(node.func, ast.Attribute) and node.func.attr not in _SIZE_METHODS:
        root = dotted(node.func)
        return None if root and root.split(".")[0] in _MODULES else node.func.value
    return None


def kernel_name(callee: str) -> str:
    """A callee without what launches it: `triton_poi_fused_0.run` → `triton_poi_fused_0`, `buf2.copy_` → `copy_`."""
    return "copy_" if _COPY.match(callee) else _LAUNCH.sub("", callee)


def copied_into(call: ast.Call) -> tuple[str, ...]:
    """The tensor that `buf2.copy_(buf1, False)` fills, as copies between devices are written; () for other calls."""
    return names_of(call.func.value) if isinstance(call.func, ast.Attribute) and _COPY.match(callee_of(call)) else ()


def allocates(callee: str) -> bool:
    """Whether a callee makes memory and computes nothing."""
    return bool(_ALLOCATION.match(callee))


def call_kind(callee: str, kernels: Mapping[str, KernelDef]) -> str:
    """The kind of a kernel call, as `KernelCall.kind` lists them; "" for what is no kernel."""
    name = kernel_name(callee)
    if name in kernels:
        return "user_triton" if kernels[name].heuristic == "user_autotune" else kernels[name].backend
    if callee.endswith(".run") and "." not in name:
        return "triton"
    if callee.startswith("extern_kernels."):
        return "extern"
    return "fallback" if name == "copy_" or (_FALLBACK.match(callee) and not allocates(callee)) else ""


def tensors_in(nodes: list[ast.expr], symbols: set[str]) -> tuple[str, ...]:
    """All variables that expressions mention as tensors, in order, once each; lists and tuples are looked into."""
    found: dict[str, None] = {}
    for node in nodes:
        for leaf in _leaves(node):
            name = base_variable(leaf)
            if name and name not in symbols:
                found[name] = None
    return tuple(found)


def _leaves(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.List | ast.Tuple):
        for element in node.elts:
            yield from _leaves(element)
    else:
        yield node


def is_scalar(node: ast.expr) -> bool:
    """Whether an expression makes a number of numbers: sizes, `buf1.size(0)`, `arg1_1.item()`, `math.floor(..)`."""
    if isinstance(node, ast.Call):
        return _is_number(node)
    calls = [part for part in ast.walk(node) if isinstance(part, ast.Call)]
    known = ast.Constant | ast.Name | ast.BinOp | ast.UnaryOp | ast.Compare | ast.BoolOp | ast.IfExp
    return isinstance(node, known) and all(_is_number(call) for call in calls)


def _is_number(call: ast.Call) -> bool:
    if isinstance(call.func, ast.Attribute) and call.func.attr in _SIZE_METHODS:
        return True
    return (dotted(call.func) or "").split(".")[0] in _NUMBER_MAKERS


def names_of(target: ast.expr) -> tuple[str, ...]:
    """The variables that an assignment's left-hand side or an `out=` names, in order."""
    return tuple(name for leaf in _leaves(target) if (name := base_variable(leaf)))


def sizes_of(node: ast.expr | None, source: PythonSource) -> tuple[Size, ...] | None:
    """`(8, s0*2)` as ints and texts; None for what is no tuple or list."""
    if not isinstance(node, ast.Tuple | ast.List):
        return None
    return tuple(_size(element, source) for element in node.elts)


def _size(node: ast.expr, source: PythonSource) -> Size:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    return source.segment(node)
