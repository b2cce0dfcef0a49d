"""Which kernel scaled_dot_product_attention uses: decided in C++ from the real device's properties.

The rule is that of aten/src/ATen/native/transformers/cuda/sdp_utils.cpp, in its order of preference and without cuDNN:
flash attention, memory-efficient attention, math.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from inductor_audit_inside.deviceless import choices, device, tensors
from inductor_audit_inside.deviceless.patch import Patch

_BASIS = "torch's order of preference (flash, efficient, math) and the profile; cuDNN is not modelled"
_LARGEST_FLASH_HEAD = 256


def choose(torch: ModuleType, patch: Patch) -> None:
    """Take the place of the composite kernel, for autograd and below it."""
    kernel = patch.counting(_attention, _attention)
    for key in ("AutogradCUDA", "CUDA"):
        tensors.register("aten::scaled_dot_product_attention", kernel, key)


def _attention(  # noqa: PLR0913, PLR0917 - the op's own signature
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: Any = None,
    enable_gqa: bool = False,
) -> Any:
    import torch

    aten = torch.ops.aten
    backend = chosen_backend(query, key, attn_mask, torch._C)
    choices.assume("sdpa", f"attention over {query.dtype} {tuple(query.shape)}", backend, _BASIS)
    if backend == "flash":
        return aten._scaled_dot_product_flash_attention(query, key, value, dropout_p, is_causal, False, scale=scale)[0]
    if backend == "efficient":
        mask = _as_bias(attn_mask, query, key)
        logsumexp = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (query, key, value))
        return aten._scaled_dot_product_efficient_attention(
            query, key, value, mask, logsumexp, dropout_p, is_causal, scale=scale
        )[0]
    return aten._scaled_dot_product_attention_math(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )[0]


def chosen_backend(query: Any, key: Any, mask: Any, switches: Any) -> str:
    """`flash`, `efficient` or `math`; `switches` has what `torch.nn.attention.sdpa_kernel` sets."""
    import torch

    if query.dim() != 4:
        return "math"
    modern, half = device.capability() >= (8, 0), query.dtype in (torch.float16, torch.bfloat16)
    width = int(query.shape[-1])
    fits = half and modern and mask is None and width <= _LARGEST_FLASH_HEAD and width % 8 == 0
    if fits and switches._get_flash_sdp_enabled():
        return "flash"
    same_heads = query.shape[1] == key.shape[1]
    known_type = modern or query.dtype != torch.bfloat16
    return "efficient" if same_heads and known_type and switches._get_mem_efficient_sdp_enabled() else "math"


def _as_bias(mask: Any, query: Any, key: Any) -> Any:
    """The efficient kernel takes a bias of full shape, as sdp_utils makes one from a boolean mask."""
    import torch

    if mask is None:
        return None
    if mask.dtype == torch.bool:
        blank = torch.zeros_like(mask, dtype=query.dtype)
        mask = blank.masked_fill_(mask.logical_not(), float("-inf"))
    return mask.expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])
