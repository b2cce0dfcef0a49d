"""Compilation that ends when the wrapper's code has been written: its kernels are not compiled.

`GraphLowering` (torch/_inductor/graph.py) writes the code, copies it into the debug folder and imports it. Instead of
the imported module it gets one whose `call` runs the post-grad graph through its FX interpreter: on real tensors with
right results, on FakeTensors with right shapes.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

from inductor_audit_inside.deviceless import wanted
from inductor_audit_inside.deviceless.patch import Patch

_loading: list[Any] = []
"""The graphs (GraphLowering) whose code is being turned into a module, the outermost first."""


def after_codegen(graph: types.ModuleType, patch: Patch) -> None:
    """Remember which graph is about to load its code."""
    lowering = graph.GraphLowering
    name = "_compile_to_module_lines" if hasattr(lowering, "_compile_to_module_lines") else "_compile_to_module"

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def compile_to_module(self: Any, *args: Any, **kwargs: Any) -> Any:
            _loading.append(self)
            try:
                return original(self, *args, **kwargs)
            finally:
                _loading.pop()

        return compile_to_module

    patch.around(lowering, name, make)


def instead_of_loading(codecache: types.ModuleType, patch: Patch) -> None:
    """A wrapper is loaded with the graph's constants as attributes; anything else, such as a template, for real."""
    original = codecache.PyCodeCache.load_by_key_path

    def load_by_key_path(
        key: str, path: str, linemap: Any = None, attrs: dict[str, Any] | None = None, *args: Any, **kwargs: Any
    ) -> Any:
        if not _loading or attrs is None:
            return original(key, path, linemap, attrs, *args, **kwargs)
        patch.hits += 1
        return stand_in(_loading[-1], key, path)

    codecache.PyCodeCache.load_by_key_path = staticmethod(load_by_key_path)


def stand_in(lowering: Any, key: str, path: str) -> types.ModuleType:
    """What takes the place of the wrapper's module."""
    module = types.ModuleType(f"inductor_audit_codegen_only_{key}")
    module.__file__ = path
    module.key = key  # type: ignore[attr-defined]
    program = lowering.module
    module.call = lambda arguments: _call(program, arguments)  # type: ignore[attr-defined]
    return module


def _call(program: Any, arguments: list[Any]) -> Sequence[Any]:
    """Runs the graph; like a wrapper it takes its arguments out of the list, so that their memory can be freed."""
    values = list(arguments)
    arguments.clear()
    try:
        return list(_interpreter()(program).run(*values))
    except Exception as error:
        if not wanted():
            raise
        return _from_metadata(program, error)


def _interpreter() -> Any:
    import torch

    class CodegenOnly(torch.fx.Interpreter):  # type: ignore[misc,unused-ignore]
        """Runs ops as they are; the operator's name is told when one cannot run outside compiled code."""

        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            if target is torch.ops.aten.view.default:  # strides may differ from those that were traced
                target = torch.ops.aten.reshape.default
            try:
                return super().call_function(target, args, kwargs)
            except Exception as error:
                if not wanted():
                    note = "capture without --codegen-only: the code has to be compiled and run"
                    raise RuntimeError(f"{target} cannot run outside compiled code ({error}); {note}") from error
                raise

    return CodegenOnly


def _from_metadata(program: Any, error: Exception) -> list[Any]:
    """Results of a graph that cannot be interpreted on FakeTensors: shapes as traced."""
    import torch

    def made(node: Any) -> Any:
        traced = node.meta.get("val") if isinstance(node, torch.fx.Node) else node
        if not isinstance(traced, torch.Tensor):
            return traced
        size, stride = ([int(extent) for extent in extents] for extents in (traced.shape, traced.stride()))
        return torch.empty_strided(size, stride, dtype=traced.dtype, device=traced.device)

    output = next(node for node in program.graph.nodes if node.op == "output")
    if any(getattr(result, "meta", {}).get("val") is None for result in output.args[0] if result is not None):
        raise error
    return [made(result) for result in output.args[0]]


def without_cuda_graphs(output_code: types.ModuleType, patch: Patch) -> None:
    """Nothing is recorded; the wrapper's code is as it is for CUDA graphs."""
    for name in ("cudagraph_post_compile", "cudagraph_partition_post_compile"):
        if hasattr(output_code, name):
            patch.replace(output_code, name, lambda *args, **kwargs: None)
