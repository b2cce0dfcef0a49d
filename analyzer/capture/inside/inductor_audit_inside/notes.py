"""What a recorder could not do, kept for the sidecar; the user's program goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

NOTES: list[dict[str, str]] = []
LIMIT = 200


def note(where: str, error: str, message: str) -> None:
    """Keep one note; repeats and floods are dropped."""
    entry = {"where": where, "error": error, "message": message[:500]}
    if entry not in NOTES and len(NOTES) < LIMIT:
        NOTES.append(entry)


@contextmanager
def guarded(where: str) -> Iterator[None]:
    """Turn whatever goes wrong inside into a note: private API of any torch version may differ from what we expect."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - a recorder must never break the program that it watches
        note(where, type(error).__name__, str(error))
