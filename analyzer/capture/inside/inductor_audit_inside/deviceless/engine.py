"""A reverse-mode engine in Python: calls autograd's C++ nodes in the order that the C++ engine would.

The C++ engine (torch/csrc/autograd/engine.cpp) needs a stream of the device that a gradient lies on. Its order and its
treatment of gradients are kept, so that AOTAutograd traces the same backward graph. Hooks on tensors that are no leaves
are not run.
"""

from __future__ import annotations

import heapq
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import Any

from inductor_audit_inside.deviceless import traces
from inductor_audit_inside.deviceless.patch import Patch

Node = Any
Edge = tuple[Node, int]
Gradients = dict[int, Any]
"""The gradients that have arrived at a node, by number of its output."""

_ACCUMULATE = "torch::autograd::AccumulateGrad"


def drive_in_python(graph: Any, patch: Patch) -> None:
    """Take over what touches CUDA; torch.autograd has a name of its own for the same function."""
    import torch

    original = graph._engine_run_backward

    def run_backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        roots = [edge_of(graph, tensor) for tensor in tensors]
        if not any(map(_on_cuda, reachable(node for node, _ in roots))):
            return original(tensors, *args, **kwargs)
        patch.hits += 1
        return _run(graph, roots, *args, **kwargs)

    graph._engine_run_backward = run_backward
    torch.autograd._engine_run_backward = run_backward
    if hasattr(torch._C._autograd, "_get_current_graph_task_keep_graph"):
        torch._C._autograd._get_current_graph_task_keep_graph = lambda: False
    torch.autograd.function.FunctionCtx.set_materialize_grads = _set_materialize_grads


def _set_materialize_grads(self: Any, value: bool) -> None:
    """As the original; the attribute that it sets cannot be read."""
    self.materialize_grads = value
    self._inductor_audit_materialize = value


def edge_of(graph: ModuleType, tensor: Any) -> Edge:
    """The node that a tensor's gradient arrives at, and where."""
    edge = tensor if hasattr(tensor, "node") else graph.get_gradient_edge(tensor)
    return edge.node, edge.output_nr


def reachable(roots: Iterable[Node]) -> set[Node]:
    """All nodes that gradients of these roots can come to."""
    seen: set[Node] = set()
    waiting = [root for root in roots if root is not None]
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting += [after for after, _ in node.next_functions if after is not None]
    return seen


def _on_cuda(node: Node) -> bool:
    return any(known is not None and known.device.type == "cuda" for known in _metadata(node))


def _metadata(node: Node) -> Sequence[Any]:
    """Type, shape and device of the gradients that a node takes."""
    return tuple(node._input_metadata)


def _run(  # noqa: PLR0913, PLR0917 - the arguments of Variable._execution_engine.run_backward
    graph: ModuleType,
    roots: list[Edge],
    gradients: Sequence[Any],
    keep_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Sequence[Any] = (),
    allow_unreachable: bool = False,
    accumulate_grad: bool = False,
) -> tuple[Any, ...]:
    import torch

    wanted = [edge_of(graph, tensor) for tensor in inputs]
    sweep = _Sweep(roots, {node for node, _ in wanted}, accumulate_grad or not wanted)
    with torch.set_grad_enabled(create_graph), traces.kept():
        for (node, number), gradient in zip(roots, gradients, strict=True):
            sweep.add(node, number, gradient)
        sweep.run({node for node, _ in roots})
    if sweep.accumulates:
        return ()
    found = tuple(sweep.captured.get(node, {}).get(number) for node, number in wanted)
    if not allow_unreachable and any(gradient is None for gradient in found):
        raise RuntimeError(
            "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if "
            "this is the desired behavior."
        )
    return found


class _Sweep:
    """One backward pass: the nodes to run, how many gradients each still waits for, and what has arrived."""

    def __init__(self, roots: list[Edge], wanted: set[Node], accumulates: bool) -> None:
        self.wanted, self.accumulates = wanted, accumulates
        self.needed = _needed(reachable(node for node, _ in roots), wanted)
        self.pending: dict[Node, int] = defaultdict(int)
        for node in self.needed:
            for after in self._after(node):
                self.pending[after] += 1
        self.arrived: dict[Node, Gradients] = defaultdict(dict)
        self.captured: dict[Node, Gradients] = {}
        self.ready: list[tuple[int, int, Node]] = []
        self.order = itertools.count()

    def _after(self, node: Node) -> list[Node]:
        """The nodes that a node's results go to, repeats kept, as far as they take part."""
        takes_part = self.needed | self.wanted
        return [after for after, _ in node.next_functions if after in takes_part]

    def add(self, node: Node, number: int, gradient: Any) -> None:
        """A gradient arrives; several at one place are summed (torch/csrc/autograd/input_buffer.cpp)."""
        if gradient is not None:
            gradient = _fitted(gradient, node, number)
            before = self.arrived[node].get(number)
            self.arrived[node][number] = gradient if before is None else before + gradient

    def run(self, roots: set[Node]) -> None:
        """All nodes, the one that was recorded last first."""
        for node in roots:
            self._enqueue(node)
        while self.ready:
            node = heapq.heappop(self.ready)[-1]
            arrived = self.arrived.pop(node, {})
            if node in self.wanted:
                self.captured[node] = arrived
            results = self._results(node, arrived)
            for (after, number), gradient in itertools.zip_longest(node.next_functions, results):
                if after is not None:
                    self.add(after, number, gradient)
            for after in self._after(node) if node in self.needed else ():
                self.pending[after] -= 1
                self._enqueue(after)

    def _enqueue(self, node: Node) -> None:
        if self.pending[node] == 0:
            heapq.heappush(self.ready, (-int(node._sequence_nr()), next(self.order), node))

    def _results(self, node: Node, arrived: Gradients) -> Sequence[Any]:
        if node.name() == _ACCUMULATE:
            if self.accumulates and (not self.wanted or node in self.wanted):
                _accumulate(node.variable, arrived.get(0))
            return ()
        if node not in self.needed or not arrived:
            return ()
        with traces.of_node(node):
            results = _call(node, arrived)
        return results if isinstance(results, (tuple, list)) else (results,)


def _needed(nodes: set[Node], wanted: set[Node]) -> set[Node]:
    """The nodes to run: all, or those from which a wanted one can be reached."""
    if not wanted:
        return nodes
    before: dict[Node, list[Node]] = defaultdict(list)
    for node in nodes:
        for after, _ in node.next_functions:
            before[after].append(node)
    needed: set[Node] = set()
    waiting = list(wanted)
    while waiting:
        for node in before[waiting.pop()]:
            if node not in needed:
                needed.add(node)
                waiting.append(node)
    return needed


def _fitted(gradient: Any, node: Node, number: int) -> Any:
    """Shape and type as the node wants them (engine.cpp, `validate_outputs`)."""
    known = _metadata(node)
    wanted = known[number] if number < len(known) else None
    if wanted is None:
        return gradient
    if tuple(gradient.shape) != tuple(wanted.shape):
        gradient = gradient.sum_to_size(wanted.shape)
    return gradient if gradient.dtype == wanted.dtype else gradient.to(wanted.dtype)


def _call(node: Node, arrived: Gradients) -> Any:
    """Functions written in Python get zeros for gradients that did not arrive, unless they asked for None."""
    import torch

    known = _metadata(node)
    arguments = [arrived.get(number) for number in range(len(known))]
    if not isinstance(node, torch.autograd.function.BackwardCFunction):
        return node(*arguments)
    if getattr(node, "_inductor_audit_materialize", True):
        arguments = [_zeros(one) if given is None else given for given, one in zip(arguments, known, strict=True)]
    return node.apply(*arguments)


def _zeros(wanted: Any) -> Any:
    import torch

    return None if wanted is None else torch.zeros(wanted.shape, dtype=wanted.dtype, device=wanted.device)


def _accumulate(variable: Any, gradient: Any) -> None:
    """What AccumulateGrad does (torch/csrc/autograd/functions/accumulate_grad.h), with the leaf's hooks."""
    if gradient is None:
        return
    for hook in _hooks(variable, "_backward_hooks"):
        changed = hook(gradient)
        gradient = gradient if changed is None else changed
    variable.grad = gradient.detach() if variable.grad is None else variable.grad + gradient.detach()
    for hook in _hooks(variable, "_post_accumulate_grad_hooks"):
        hook(variable)


def _hooks(variable: Any, name: str) -> list[Callable[[Any], Any]]:
    return list((getattr(variable, name, None) or {}).values())


def keep_stack_traces(logging_utils: ModuleType, patch: Patch) -> None:
    """AOTAutograd asks for hooks on the nodes below these roots; `traces` does their work."""
    patch.replace(logging_utils, "setup_stacktrace_preservation_hooks", lambda roots: traces.remember(reachable(roots)))
