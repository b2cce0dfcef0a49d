"""Why a buffer exists: the rule of torch/_inductor that called for it, read off the call stack when it registers.

`StorageBox` (ir.py) turns a computation into a buffer; `GraphLowering.run_node` (graph.py), a lowering, or an extern
kernel asks it to. The stack tells which of them it was: exact, and no rule has to be evaluated a second time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

from inductor_audit_inside.describe import asked
from inductor_audit_inside.notes import guarded
from inductor_audit_inside.store import record_of
from inductor_audit_inside.wrap import after

_HERE = str(Path(__file__).parent)
_BOX = frozenset({"register_buffer", "realize", "realize_hint", "mark_reuse", "_post_init_setup"})
_INPUT_RULES = ("realize_input", "require_", "process_kernel", "realize_into", "unwrap_storage", "copy_input")
_Asked = dict[str, Any]
_lowering: list[_Asked] = []


def watch_ir(module: ModuleType) -> None:
    """Keep what run_node asked about the value at hand and what the answers were."""
    box = module.StorageBox
    after(box, "has_exceeded_max_reads", lambda answer, *_, **__: _answered("exceeded_max_reads", bool(answer)))
    after(box, "should_realize_on_reuse", lambda answer, *_, **__: _answered("realize_on_reuse", bool(answer)))
    after(box, "realize_hint", lambda *_, **__: _answered("hinted", True))


def _answered(question: str, answer: bool) -> None:
    if _lowering:
        _lowering[-1][question] = answer


def recording_run_node(original: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap GraphLowering.run_node: what became of each FX node, realized or not."""

    def recorded(self: Any, node: Any) -> Any:
        _lowering.append({})
        try:
            result = original(self, node)
            with guarded("lowering"):
                if node.op == "call_function":
                    record_of(self)["lowerings"].append(_lowered(node, result, _lowering[-1]))
            return result
        finally:
            _lowering.pop()

    return recorded


def _lowered(node: Any, result: Any, answers: _Asked) -> dict[str, Any]:
    """An FX node with what run_node found out about it; counts only where Inductor has counted already."""
    classes, data = _unboxed(result)
    users = len(node.users)
    facts = {"node": node.name, "target": str(node.target), "users": users, "ir": classes, **answers}
    facts["buffer"] = asked(data, "get_name") if hasattr(data, "layout") else None
    if classes[-1:] == ["Pointwise"] and "exceeded_max_reads" in answers:
        facts.update(_counts(data))
    return facts


def _unboxed(result: Any) -> tuple[list[str], Any]:
    """The classes from the box down to what computes or holds the value, and that innermost thing."""
    classes = [type(result).__name__]
    while type(result).__name__ in ("TensorBox", "StorageBox") or classes[-1].endswith("View"):
        inner = getattr(result, "data", None)
        if inner is None:
            break
        result = inner
        classes.append(type(result).__name__)
    return classes, result


def _counts(data: Any) -> dict[str, Any]:
    """Reads and ops of a loop body, as the thresholds count them."""
    found: dict[str, Any] = {}
    with guarded("op count"):
        found["reads"] = int(data.num_reads())
        count = data.inner_fn_opcount()
        found["ops"] = int(count.num_ops)
        found["nontrivial_reads"] = int(count.nontrivial_read_count)
    return found


# ------------------------------------------------------------------------------------------------------ the call stack


def on_buffer(name: Any, graph: Any, buffer: Any, *_: Any, **__: Any) -> None:
    """Called for every new buffer, whoever makes it."""
    stack = _torch_stack()
    node = _node_at_hand(stack)
    rule, details = _rule(stack, buffer)
    record_of(graph)["births"][str(name)] = {
        "rule": rule,
        "node": getattr(node, "name", None),
        "site": None if rule == "ablation" else _site(stack),
        **details,
    }


def _torch_stack() -> list[FrameType]:
    """Innermost first, up to the loop over FX nodes; our recorders left out, our switches kept."""
    frames = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not _is(frame.f_code, "graph.py", "run"):
        if not _is_recorder(frame.f_code):
            frames.append(frame)
        frame = frame.f_back
    return frames


def _is_recorder(code: CodeType) -> bool:
    return code.co_filename.startswith(_HERE) and not _is_switch(code)


def _is_switch(code: CodeType) -> bool:
    return code.co_filename.startswith(_HERE) and code.co_name == "realize_by_ablation"


def _is(code: CodeType, file: str, function: str) -> bool:
    return code.co_name == function and code.co_filename.endswith("_inductor/" + file)


def _node_at_hand(stack: list[FrameType]) -> Any:
    """The FX node that GraphLowering.run_node is lowering."""
    for frame in stack:
        if _is(frame.f_code, "graph.py", "run_node"):
            return frame.f_locals.get("n")
    return None


def _site(stack: list[FrameType]) -> str | None:
    """The first place outside StorageBox: who asked."""
    for frame in stack:
        if frame.f_code.co_name not in _BOX and not frame.f_code.co_filename.startswith(_HERE):
            return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} {frame.f_code.co_name}"
    return None


def _rule(stack: list[FrameType], buffer: Any) -> tuple[str, dict[str, Any]]:
    """The rule, most telling first."""
    names = [frame.f_code.co_name for frame in stack]
    kind = type(buffer).__name__
    if "realize" not in names:
        return _made_directly(buffer, kind, names), {}
    if any(_is_switch(frame.f_code) for frame in stack):
        return "ablation", {}
    asker = next((frame for frame in stack if frame.f_code.co_name not in _BOX), None)
    if "mark_reuse" in names:
        return _reuse_rule(stack, asker, buffer)
    if asker is not None and _is(asker.f_code, "graph.py", "run_node"):
        return _run_node_rule(asker, "realize_hint" in names, buffer)
    return _lowering_rule(stack, names, buffer), {}


def _made_directly(buffer: Any, kind: str, names: list[str]) -> str:
    """Buffers that no StorageBox realized: operations that own their memory."""
    from torch._inductor import ir

    if isinstance(buffer, ir.TemplateBuffer):
        return "template"
    if kind == "ConcatKernel":
        return "concat"
    if isinstance(buffer, ir.ExternKernel):
        return "extern"
    return "lowering" if "call_function" in names else "unknown"


def _reuse_rule(stack: list[FrameType], asker: FrameType | None, buffer: Any) -> tuple[str, dict[str, Any]]:
    """`StorageBox.should_realize_on_reuse`: heavy ops on CPU first, then large bodies, then reads."""
    from torch._inductor import config, ir

    mark = next(frame for frame in stack if frame.f_code.co_name == "mark_reuse")
    users = mark.f_locals.get("users")
    details = {"users": users if isinstance(users, int) else str(users), **_counts(buffer.data)}
    if asker is None or not _is(asker.f_code, "graph.py", "run_node"):
        return "broadcast", details  # a lowering (expand) that reads each element many times
    heavy = sorted(_heavy_ops(ir) & set(buffer.data.inner_fn_opcount().used_ops))
    if heavy and str(buffer.get_device()).startswith("cpu"):
        return "reuse_heavy_op", {**details, "heavy_ops": heavy}
    if buffer.data.has_large_inner_fn():
        return "reuse_large_body", details
    if details.get("reads", 0) > config.realize_reads_threshold:
        return "reuse_reads", {**details, "threshold": config.realize_reads_threshold}
    return "reuse", details


def _heavy_ops(ir: ModuleType) -> set[str]:
    """This version's list, among the text constants of the function that holds it (none of the others names an op)."""
    function = ir.StorageBox.should_realize_on_reuse
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    found: set[str] = set()
    for constant in function.__code__.co_consts:
        parts = constant if isinstance(constant, (tuple, frozenset)) else (constant,)
        found.update(part for part in parts if isinstance(part, str))
    return found


def _run_node_rule(frame: FrameType, hinted: bool, buffer: Any) -> tuple[str, dict[str, Any]]:
    """The sites of run_node itself; its own local variables say how far it has come."""
    local = frame.f_locals
    if hinted:
        if _lowering and _lowering[-1].get("exceeded_max_reads"):
            return "read_limit", _counts(buffer.data)
        return "user_needs_buffer", {"user": getattr(local.get("user"), "name", None)}
    if "curr" in local:
        return "op_limit", _counts(buffer.data)
    return ("output" if local.get("is_output") else "strides"), {}


def _lowering_rule(stack: list[FrameType], names: list[str], buffer: Any) -> str:
    """Asked for while one FX node was lowered: by its lowering, or by the layout that a user of the value needs."""
    if any(_is(frame.f_code, "graph.py", "output") for frame in stack):
        return "output"
    from_input = any(name.startswith(_INPUT_RULES) for name in names)
    if "call_function" not in names:  # run_node orders strides after the lowering
        run_node = next((frame for frame in stack if _is(frame.f_code, "graph.py", "run_node")), None)
        is_output = run_node is not None and run_node.f_locals.get("is_output")
        return "output" if is_output else ("strides" if run_node is not None else "finalize")
    if any(name == "realize_into" for name in names):
        return "concat_or_mutation"
    if from_input:
        return "input_of_extern"
    kind = type(getattr(buffer, "data", None)).__name__
    return next((known.lower() for known in ("Reduction", "Scan", "Sort") if kind.endswith(known)), "lowering")
