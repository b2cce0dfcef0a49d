"""Constant folding on the CPU: it computes real values, which there is no device for."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from inductor_audit_inside.deviceless.patch import Patch


def fold_on_cpu(folding: ModuleType, patch: Patch) -> None:
    """Run the folding interpreter under a mode that makes its tensors on the CPU."""

    def make(original: Any) -> Any:
        def run(self: Any, *args: Any, **kwargs: Any) -> Any:
            with _on_cpu():
                return original(self, *args, **kwargs)

        return run

    patch.around(folding.ConstantFolder, "run", make)


def _on_cpu() -> Any:
    import torch
    from torch.utils import _pytree
    from torch.utils._python_dispatch import TorchDispatchMode

    def moved(value: Any) -> Any:
        return torch.device("cpu") if isinstance(value, torch.device) and value.type == "cuda" else value

    class OnCpu(TorchDispatchMode):  # type: ignore[misc,unused-ignore]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            moved_args, moved_kwargs = _pytree.tree_map(moved, (tuple(args), dict(kwargs or {})))
            return func(*moved_args, **moved_kwargs)

    return OnCpu()
