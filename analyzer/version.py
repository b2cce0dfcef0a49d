"""Comparing the torch versions that artifacts print."""

from __future__ import annotations

import re

_NUMBERS = re.compile(r"(\d+)\.(\d+)")


def at_least(version: str, wanted: tuple[int, int]) -> bool:
    """Whether `2.13.0+cpu` is at least (2, 7); text without numbers is not."""
    found = _NUMBERS.match(version)
    return found is not None and (int(found[1]), int(found[2])) >= wanted
