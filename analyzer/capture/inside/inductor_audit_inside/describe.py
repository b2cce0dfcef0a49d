"""What IR nodes and scheduler nodes of torch/_inductor say of themselves, as plain JSON values.

A fact that a class of this torch version does not have is None; nothing is computed that Inductor itself would not ask.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

Facts = dict[str, Any]


def asked(thing: Any, method: str) -> Any:
    """The answer of a method, or None where the class has none or cannot answer (NoneLayout has no dtype)."""
    function = getattr(thing, method, None)
    if not callable(function):
        return None
    try:
        return function()
    except (NotImplementedError, AttributeError, AssertionError, TypeError, RuntimeError):
        return None


def text_of(value: Any) -> str | None:
    """The text of a dtype, device or symbol."""
    return None if value is None else str(value)


def dims(values: Iterable[Any] | None) -> list[int | str] | None:
    """Sizes or strides: ints where they are known, else the symbolic expression."""
    return None if values is None else [dim(value) for value in values]


def dim(value: Any) -> int | str:
    """An int, or the text of a symbolic expression."""
    return int(value) if isinstance(value, int) or getattr(value, "is_Integer", False) else str(value)


def node_names(origins: Any) -> list[str]:
    """The names of FX nodes, sorted."""
    return sorted(str(getattr(node, "name", node)) for node in origins or ())


def buffer_facts(buffer: Any) -> Facts:
    """A buffer of `V.graph.buffers` (torch/_inductor/ir.py, Buffer): identity, origins, layout."""
    layout = getattr(buffer, "layout", None)
    return {
        "name": asked(buffer, "get_name"),
        "operation": asked(asked(buffer, "get_defining_op"), "get_operation_name"),
        "ir_class": type(buffer).__name__,
        "origin_node": getattr(getattr(buffer, "origin_node", None), "name", None),
        "origins": node_names(getattr(buffer, "origins", None)),
        "dtype": text_of(asked(buffer, "get_dtype")),
        "size": dims(asked(buffer, "get_size")),
        "stride": dims(asked(buffer, "get_stride")),
        "device": text_of(asked(buffer, "get_device")),
        "layout": type(layout).__name__,
        "num_bytes": _num_bytes(buffer),
        "alias_of": _alias_of(layout),
        "mutates": [str(name) for name in asked(buffer, "get_mutation_names") or ()],
        "data_class": type(buffer.data).__name__ if hasattr(buffer, "data") else None,
        "extern_kernel": extern_name(buffer),
    }


def _num_bytes(buffer: Any) -> int | None:
    """Bytes of the elements, for a static size; padding of strides is not counted."""
    size, dtype = dims(asked(buffer, "get_size")), asked(buffer, "get_dtype")
    if size is None or dtype is None:
        return None
    total: int = dtype.itemsize
    for extent in size:
        if isinstance(extent, str):
            return None
        total *= extent
    return total


def _alias_of(layout: Any) -> str | None:
    """The buffer whose memory a NonOwningLayout views or a MutationLayout writes to."""
    target = getattr(layout, "view", None)
    if target is None:
        target = getattr(layout, "target", None)
    name = asked(target, "get_name")
    return None if name is None else str(name)


def extern_name(operation: Any) -> str | None:
    """What an extern kernel calls: `extern_kernels.mm`, `torch.ops.aten.sort.stable`, ..."""
    for attribute in ("python_kernel_name", "cpp_kernel_name", "op_overload"):
        value = getattr(operation, attribute, None)
        if value:
            return str(value)
    return None


def leaves(node: Any) -> Iterator[Any]:
    """The innermost scheduler nodes of a fused, foreach, grouped or plain one."""
    members = getattr(node, "snodes", None)
    if members is None:
        yield node
        return
    for member in members:
        yield from leaves(member)


def leaf_names(node: Any) -> list[str]:
    """The operations of a scheduler node, in order."""
    return [leaf.get_name() for leaf in leaves(node)]


def buffer_names(node: Any) -> list[str]:
    """The buffers that a scheduler node writes, in order of its members."""
    return [str(name) for leaf in leaves(node) for name in asked(leaf, "get_buffer_names") or ()]


def scheduler_node_facts(node: Any) -> Facts:
    """A node before fusion (torch/_inductor/scheduler.py, BaseSchedulerNode). WeakDeps only order, hence `after`."""
    operation = getattr(node, "node", None)
    accesses = getattr(node, "read_writes", None)
    reads = list(getattr(accesses, "reads", ()))
    return {
        "name": node.get_name(),
        "class": type(node).__name__,
        "ir_class": None if operation is None else type(operation).__name__,
        "buffers": buffer_names(node),
        "reads": sorted({dep.name for dep in reads if type(dep).__name__ != "WeakDep"}),
        "after": sorted({dep.name for dep in reads if type(dep).__name__ == "WeakDep"}),
        "writes": sorted({dep.name for dep in getattr(accesses, "writes", ())}),
        "origin_node": getattr(getattr(operation, "origin_node", None), "name", None),
        "origins": node_names(getattr(operation, "origins", None)),
    }


def group_facts(node: Any) -> Facts:
    """A top-level node after fusion; its kernels come with code generation."""
    return {"name": node.get_name(), "class": type(node).__name__, "members": leaf_names(node)}


def origins_of(nodes: Iterable[Any]) -> list[str]:
    """The FX nodes computed by the members of these scheduler nodes."""
    found = {name for node in nodes for leaf in leaves(node) for name in node_names(_origins(leaf))}
    return sorted(found)


def _origins(leaf: Any) -> Any:
    return getattr(getattr(leaf, "node", None), "origins", None)
