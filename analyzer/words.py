"""Numbers with their nouns, for every sentence that tells one."""

from __future__ import annotations


def counted(number: int | None, noun: str, plural: str | None = None) -> str:
    """`1 kernel`, `2 kernels`, `? kernels` when the number is not known."""
    if number is None:
        return f"? {plural or noun + 's'}"
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
