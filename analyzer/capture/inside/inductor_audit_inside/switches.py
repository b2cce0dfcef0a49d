"""Ablations that no configuration of torch offers, done by wrapping its functions at run time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from inductor_audit_inside.request import load_request
from inductor_audit_inside.wrap import SWITCHES, around

INSTALLED: list[str] = []


def wanted(switch: str) -> bool:
    """Whether this run asks for a switch."""
    return switch in (load_request() or {}).get("switches", ())


def _install(switch: str, *wraps: tuple[Any, str, Callable[..., Any]]) -> None:
    if not wanted(switch):
        return
    done = [around(owner, name, make, SWITCHES) for owner, name, make in wraps]
    if all(done):
        INSTALLED.append(switch)


# ----------------------------------------------------------------------------------------------------------- lowering


def on_graph(module: ModuleType) -> None:
    """`inlining`: every lowered value gets a buffer, as if GraphLowering.run_node realized each result."""
    lowering = module.GraphLowering
    _install(
        "inlining",
        (lowering, "run_node", _remembering_node),
        (lowering, "call_function", _realizing_results),
    )


_nodes: list[Any] = []


def _remembering_node(original: Callable[..., Any]) -> Callable[..., Any]:
    def run_node(self: Any, node: Any) -> Any:
        _nodes.append(node)
        try:
            return original(self, node)
        finally:
            _nodes.pop()

    return run_node


def _realizing_results(original: Callable[..., Any]) -> Callable[..., Any]:
    """Realize inside call_function: what run_node decides afterwards then sees a realized value."""

    def call_function(self: Any, target: Any, args: Any, kwargs: Any) -> Any:
        result = original(self, target, args, kwargs)
        node = _nodes[-1] if _nodes else None
        if node is not None and node.op == "call_function" and node.users:
            for box in _boxes(result):
                realize_by_ablation(box)
        return result

    return call_function


def _boxes(result: Any) -> Iterator[Any]:
    """All tensors of a result; tuples come from ops with several outputs."""
    from torch._inductor.ir import TensorBox

    if isinstance(result, TensorBox):
        yield result
    elif isinstance(result, (list, tuple)):
        for part in result:
            yield from _boxes(part)


def realize_by_ablation(box: Any) -> None:
    """Realize a value that is still a computation; of a view its base, without a copy."""
    from torch._inductor import ir

    data = box.data
    while isinstance(data, (ir.BaseView, ir.MutableBox)) and hasattr(data, "data"):
        data = data.data
    computations = tuple(getattr(ir, name) for name in ("Pointwise", "Reduction", "Scan", "Sort") if hasattr(ir, name))
    if isinstance(data, computations):
        box.realize()


# --------------------------------------------------------------------------------------------------------- scheduling


def on_scheduler(module: ModuleType) -> None:
    """`fusion`, `vertical-fusion`, `horizontal-fusion`: refuse pairs, and say so the way Inductor does."""
    scheduler, why = module.Scheduler, module.WhyNoFuse
    _install("fusion", (scheduler, "can_fuse", _refusing("fusion", why, lambda first, second: True)))
    _install("vertical-fusion", (scheduler, "can_fuse", _refusing("vertical-fusion", why, _depends)))
    _install(
        "horizontal-fusion",
        (scheduler, "can_fuse", _refusing("horizontal-fusion", why, lambda first, second: not _depends(first, second))),
    )


def _depends(first: Any, second: Any) -> bool:
    """Whether one of the nodes needs the other, directly or through others."""
    return bool(first.get_operation_names() & second.ancestors or second.get_operation_names() & first.ancestors)


def _refusing(name: str, why: Any, refused: Callable[[Any, Any], bool]) -> Callable[..., Any]:
    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def can_fuse(self: Any, first: Any, second: Any, *rest: Any, **named: Any) -> Any:
            if refused(first, second):
                why(first, second)(f"switched off by the ablation {name}")
                return False
            return original(self, first, second, *rest, **named)

        return can_fuse

    return make


# ---------------------------------------------------------------------------------------- decompositions and kernels


def on_compile_fx(module: ModuleType) -> None:
    """`decompositions`: an empty table, so that every op keeps its own lowering or falls back to the eager kernel."""

    def make(_original: Callable[..., Any]) -> Callable[..., Any]:
        def select_decomp_table() -> dict[Any, Any]:
            return {}

        return select_decomp_table

    _install("decompositions", (module, "select_decomp_table", make))


def on_cpp(module: ModuleType) -> None:
    """`kernel-grouping`: the C++ backend closes its function after every scheduler node."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def codegen_node(self: Any, node: Any) -> Any:
            result = original(self, node)
            self._set_flush_status(True)
            return result

        return codegen_node

    _install("kernel-grouping", (module.CppScheduling, "codegen_node", make))
