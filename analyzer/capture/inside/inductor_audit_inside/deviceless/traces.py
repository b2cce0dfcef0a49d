"""Source lines of the backward graph: what AOTAutograd's hooks on autograd nodes set while a node runs.

The hooks are those of torch/_functorch/_aot_autograd/logging_utils.py, `setup_stacktrace_preservation_hooks`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

_SUM = "Gradient addition node due to multiple use of tensor around:"
"""What marks a sum in torch versions that have no name for it."""

_nodes: set[Any] = set()


def remember(nodes: Iterable[Any]) -> None:
    """Nodes whose forward stack is to be carried over when they run."""
    _nodes.update(nodes)


@contextmanager
def kept() -> Iterator[None]:
    """Around a backward pass: the stack from before is there again after it."""
    from torch.fx import traceback

    if not _nodes:
        yield
        return
    before = traceback.format_stack()
    try:
        yield
    finally:
        _nodes.clear()
        traceback.set_stack_trace(before)


@contextmanager
def of_node(node: Any) -> Iterator[None]:
    """Around one node. Sums of its results with others carry its stack too, marked as such."""
    if node not in _nodes:
        yield
        return
    from torch.fx import traceback

    stack = list(node.metadata.get("traceback_", []))
    traceback.set_stack_trace(stack)
    traceback.set_grad_fn_seq_nr(node._sequence_nr())
    _if_there(traceback, "_mark_autograd_backward")
    try:
        yield
    finally:
        traceback.set_stack_trace([*stack, getattr(traceback, "GRADIENT_ACC_SPECIAL_STACK", _SUM)])
        traceback.reset_grad_fn_seq_nr()
        _if_there(traceback, "_reset_autograd_backward")


def _if_there(module: Any, name: str) -> None:
    """Newer torch versions mark the backward pass."""
    function = getattr(module, name, None)
    if function is not None:
        function()
