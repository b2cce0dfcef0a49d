"""Which scheduler nodes each generated kernel computes, and under which parameter names it sees the buffers."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from inductor_audit_inside import pairs, switches
from inductor_audit_inside.describe import buffer_names, leaf_names, origins_of
from inductor_audit_inside.store import current
from inductor_audit_inside.wrap import after


def watch_scheduling(module: ModuleType) -> None:
    """Every scheduling class names its kernels in `define_kernel(source, nodes, kernel or its args)`."""
    if hasattr(module, "CppScheduling"):
        switches.on_cpp(module)
    for kind in list(vars(module).values()):
        if isinstance(kind, type) and kind.__module__ == module.__name__ and kind.__name__.endswith("Scheduling"):
            if "define_kernel" in vars(kind):
                after(kind, "define_kernel", _on_kernel)
            pairs.watch_backend(kind)


def _on_kernel(name: Any, scheduling: Any, _source: Any, schedule: Any, *rest: Any, **named: Any) -> None:
    # A Triton schedule also holds markers such as EnableReduction, which are no nodes.
    nodes = [node for node in schedule or () if hasattr(node, "get_name")]
    names = [name for node in nodes for name in leaf_names(node)]
    current()["kernels"].append(
        {
            "name": str(name),
            "backend": type(scheduling).__name__,
            "members": list(dict.fromkeys(names)),
            "buffers": list(dict.fromkeys(name for node in nodes for name in buffer_names(node))),
            "origins": origins_of(nodes),
            "params": _params(_arguments(scheduling, rest, named)),
        }
    )


def _arguments(scheduling: Any, rest: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """The KernelArgs: passed as such, as part of a kernel, or kept in the C++ kernel group."""
    given = rest[0] if rest else named.get("kernel_args", named.get("kernel"))
    if given is None:
        given = getattr(scheduling, "kernel_group", None)
    return given if hasattr(given, "input_buffers") else getattr(given, "args", None)


def _params(arguments: Any) -> dict[str, list[str]]:
    """Parameter → buffers or symbols (torch/_inductor/codegen/common.py, KernelArgs); removed ones are left out."""
    found: dict[str, list[str]] = {}
    for attribute in ("input_buffers", "output_buffers", "sizevars"):
        for outer, inner in (getattr(arguments, attribute, None) or {}).items():
            if not _is_removed(inner):
                found.setdefault(str(inner), []).append(str(outer))
    for inplace in (getattr(arguments, "inplace_buffers", None) or {}).values():
        if not _is_removed(inplace):
            found[str(inplace.inner_name)] = [str(name) for name in inplace.other_names]
    return found


def _is_removed(parameter: Any) -> bool:
    """`RemovedArg`, or the text REMOVED in older versions."""
    return type(parameter).__name__ == "RemovedArg" or str(parameter) in ("REMOVED", "RemovedArg()")
