"""Follows each GraphLowering (torch/_inductor/graph.py) from its first FX node to its last line of code."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from inductor_audit_inside import deviceless, process, reasons, switches
from inductor_audit_inside.context import context, vector_isa
from inductor_audit_inside.describe import asked, buffer_facts, scheduler_node_facts, text_of
from inductor_audit_inside.notes import guarded
from inductor_audit_inside.store import current, debug_folder, forget_codegen, record_of, save
from inductor_audit_inside.wrap import after, around, before

_generating: list[Any] = []
"""Graphs whose code is being generated, the outermost first: branches are generated within their parent."""


def watch_graph(module: ModuleType) -> None:
    """Switches of lowering go below the recorders, so that these see what the switches did."""
    switches.on_graph(module)
    lowering = module.GraphLowering
    around(lowering, "run", _recording_run)
    around(lowering, "run_node", reasons.recording_run_node)
    after(lowering, "register_buffer", reasons.on_buffer)
    around(lowering, "codegen", _recording_codegen)
    around(lowering, "codegen_subgraph", _recording_codegen)


def watch_debug(module: ModuleType) -> None:
    """The dump before fusion is written after dead nodes are gone: the same moment for the same facts."""
    before(module.DebugFormatter, "ir_pre_fusion", _on_pre_fusion)


def _on_pre_fusion(_formatter: Any, nodes: Any, *_: Any, **__: Any) -> None:
    current()["scheduler_nodes"] = [scheduler_node_facts(node) for node in nodes]


def _recording_run(original: Callable[..., Any]) -> Callable[..., Any]:
    def recorded(self: Any, *args: Any, **kwargs: Any) -> Any:
        with guarded("context"):
            _open(self)
        try:
            return original(self, *args, **kwargs)
        except BaseException as error:
            _close(self, error)
            raise

    return recorded


def _recording_codegen(original: Callable[..., Any]) -> Callable[..., Any]:
    def recorded(self: Any, *args: Any, **kwargs: Any) -> Any:
        with guarded("codegen"):
            forget_codegen(record_of(self))
            record_of(self)["parent"] = _name(_generating[-1]) if _generating else None
        _generating.append(self)
        try:
            result = original(self, *args, **kwargs)
        except BaseException as error:
            _close(self, error)
            raise
        finally:
            _generating.pop()
        _close(self, None)
        return result

    return recorded


def _name(graph: Any) -> str:
    """A graph's name; the outermost one has none."""
    return str(getattr(graph, "name", None) or "")


def _open(graph: Any) -> None:
    record = record_of(graph)
    nested = getattr(graph, "name", None)
    record["name"] = nested
    record["aot_id"] = _aot_id()
    record["kind"] = _kind(graph, record["aot_id"])
    record["context"] = None if nested else context()


def _aot_id() -> str | None:
    """Such as `0_backward`: what the first line of the output code and the folder's name say."""
    from torch._guards import TracingContext

    names = getattr(TracingContext.try_get(), "aot_graph_name", None)
    return "_".join(str(name) for name in names) if isinstance(names, (list, tuple)) else None


def _kind(graph: Any, aot_id: str | None) -> str:
    """AOTInductor compiles for inference and gives its graphs no id."""
    for kind in ("backward", "forward", "inference"):
        if aot_id is not None and kind in aot_id:
            return kind
    inference = getattr(graph, "is_inference", False) or getattr(graph, "aot_mode", False)
    return "inference" if inference else "unknown"


def _close(graph: Any, error: BaseException | None) -> None:
    """Write what is known, also of a compile that failed: where it failed is a finding."""
    with guarded("sidecar"):
        record = record_of(graph)
        record["complete"] = error is None
        record["failure"] = None if error is None else f"{type(error).__name__}: {error}"[:2000]
        with guarded("graph facts"):
            record.update(_graph_facts(graph))
        folder = debug_folder()
        save(record, folder)
        deviceless.on_graph(folder)
        process.on_graph(folder, record)


def _graph_facts(graph: Any) -> dict[str, Any]:
    """The facts that are final once code has been generated."""
    scheduler = getattr(graph, "scheduler", None)
    births = record_of(graph)["births"]
    return {
        "graph_id": getattr(graph, "graph_id", None),
        "aot_mode": bool(getattr(graph, "aot_mode", False)),
        "cpp_wrapper": bool(getattr(graph, "cpp_wrapper", False)),
        "inputs": [str(name) for name in getattr(graph, "graph_inputs", None) or ()],
        "outputs": [str(name) for name in asked(graph, "get_output_names") or ()],
        "mutated_inputs": sorted(str(name) for name in getattr(graph, "mutated_inputs", None) or ()),
        "constants": {str(name): _tensor_text(value) for name, value in (graph.constants or {}).items()},
        "buffers": [
            {**buffer_facts(buffer), "realized_by": births.get(asked(buffer, "get_name"))} for buffer in graph.buffers
        ],
        "operations": [asked(operation, "get_operation_name") for operation in graph.operations],
        "removed_buffers": sorted(graph.removed_buffers),
        "removed_operations": sorted(getattr(graph, "removed_operations", None) or ()),
        "inplaced_to_remove": sorted(graph.inplaced_to_remove),
        "mutation_renames": _texts(getattr(scheduler, "mutation_renames", None)),
        "mutation_real_name": _texts(getattr(scheduler, "mutation_real_name", None)),
        "bytes_accessed": _bytes_accessed(scheduler),
        "device_types": sorted(getattr(graph, "device_types", None) or ()),
        "vector_isa": vector_isa(),
    }


def _texts(mapping: Any) -> dict[str, str]:
    return {str(key): str(value) for key, value in (mapping or {}).items()}


def _tensor_text(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return type(value).__name__ if shape is None else f"{value.dtype} {tuple(shape)} {text_of(value.device)}"


def _bytes_accessed(scheduler: Any) -> dict[str, int]:
    """Inductor's own count per group (`BaseSchedulerNode.get_read_write_buffers_sizes`); it takes each buffer once."""
    found = {}
    for node in getattr(scheduler, "nodes", None) or ():
        with guarded("bytes accessed"):
            found[node.get_name()] = int(node.get_read_write_buffers_sizes())
    return found
