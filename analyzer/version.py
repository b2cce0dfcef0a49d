"""Comparing the torch versions that artifacts print."""

from __future__ import annotations

import re

_NUMBERS = re.compile(r"(\d+)\.(\d+)")


def release(version: str | None) -> tuple[int, int] | None:
    """`2.13.0+cpu` as (2, 13); None for text without numbers."""
    found = _NUMBERS.match(version or "")
    return (int(found[1]), int(found[2])) if found else None


def at_least(version: str, wanted: tuple[int, int]) -> bool:
    """Whether `2.13.0+cpu` is at least (2, 7); text without numbers is not."""
    found = release(version)
    return found is not None and found >= wanted
