"""Recurrent layers, which Dynamo leaves outside compiled code: cuDNN's way through them asks the driver.

The native way gives results of the same shapes (aten/src/ATen/native/RNN.cpp).
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from inductor_audit_inside.deviceless import tensors
from inductor_audit_inside.deviceless.patch import Patch

_LAYERS = ("lstm", "gru", "rnn_tanh", "rnn_relu")


def without_cudnn(torch: ModuleType, patch: Patch) -> None:
    """Take the place of the composite kernels, which go cuDNN's way where it is enabled."""
    for layer in _LAYERS:
        for overload in ("input", "data"):
            kernel = _native(getattr(getattr(torch.ops.aten, layer), overload), patch)
            for key in ("AutogradCUDA", "CUDA"):
                tensors.register(f"aten::{layer}.{overload}", kernel, key)


def _native(op: Any, patch: Patch) -> Any:
    import torch

    def kernel(*args: Any, **kwargs: Any) -> Any:
        patch.hits += 1
        enabled = torch._C._get_cudnn_enabled()
        torch._C._set_cudnn_enabled(False)
        try:
            return op.decompose(*args, **kwargs)
        finally:
            torch._C._set_cudnn_enabled(enabled)

    return kernel


def leave_weights_apart(torch: ModuleType, patch: Patch) -> None:
    """One piece of memory for all weights is what cuDNN wants."""

    def make(original: Any) -> Any:
        def flatten_parameters(self: Any) -> None:
            if not any(map(tensors.is_fake, self.parameters())):
                original(self)

        return flatten_parameters

    patch.around(torch.nn.RNNBase, "flatten_parameters", make)
