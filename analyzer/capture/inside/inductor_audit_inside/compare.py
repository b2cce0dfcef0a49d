"""Are two lists of outputs numerically the same? Tolerances are those of torch.testing for each dtype."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def compare(found: Sequence[Any], expected: Sequence[Any]) -> dict[str, Any]:
    """`close`: True, False, or None where they cannot be compared; `max_abs` and `max_rel` over all of them.

    `max_rel` is relative to the largest magnitude of each tensor.
    """
    if signature(found) != signature(expected):
        why = f"outputs differ in number, shape or dtype: {len(found)} and {len(expected)}"
        return {"close": None, "max_abs": None, "max_rel": None, "reason": why}
    pairs = [pair for pair in zip(found, expected, strict=True) if _is_tensor(pair[0])]
    differences = [_difference(one, other) for one, other in pairs]
    reasons = [reason for one, other in pairs if (reason := _why_not_close(one, other))]
    return {
        "close": not reasons,
        "max_abs": max((difference for difference, _ in differences), default=0.0),
        "max_rel": max((difference / scale for difference, scale in differences if scale), default=0.0),
        "reason": reasons[0] if reasons else None,
    }


def signature(values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Shapes and dtypes; other values by type."""
    return [(value.dtype, tuple(value.shape)) if _is_tensor(value) else (type(value),) for value in values]


def _is_tensor(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor)


def _difference(one: Any, other: Any) -> tuple[float, float]:
    """The largest difference, and the largest magnitude; what is not finite in both is left to `_why_not_close`."""
    import torch

    if one.numel() == 0 or one.is_complex():
        return 0.0, 0.0
    wide, expected = one.double(), other.double()
    finite = torch.isfinite(wide) & torch.isfinite(expected)
    if not bool(finite.any()):
        return 0.0, 0.0
    return float((wide - expected)[finite].abs().max()), float(expected[finite].abs().max())


def _why_not_close(one: Any, other: Any) -> str | None:
    import torch

    try:
        torch.testing.assert_close(one, other, equal_nan=True, check_stride=False)
    except AssertionError as error:
        return " ".join(str(error).split())[:300]
    return None
