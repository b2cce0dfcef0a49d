"""The values of a contract's keys, typed or refused at their place."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from analyzer.contracts.code import BACKENDS
from analyzer.contracts.kinds import KINDS, Takes, kind_of
from analyzer.contracts.places import Places
from analyzer.contracts.records import Clause, Selector
from analyzer.errors import ArtifactError

NAMES = ("name", "graph")
"""Keys of a contract that promise nothing."""

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
_SIZE = re.compile(r"(?P<number>\d{1,15}(?:\.\d{1,9})?)\s*(?P<unit>[A-Za-z]{0,3})")


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the keys of one contract, which is the file's `contract`-th, counted from 0."""

    places: Places
    contract: int

    def text(self, entry: Mapping[str, object], key: str) -> str | None:
        """A text, None when it is not there."""
        value = entry.get(key)
        if value is not None and not (isinstance(value, str) and value):
            raise self._error(key, f"expected text for {key}")
        return value if isinstance(value, str) else None

    def clause(self, key: str, value: object) -> Clause:
        """One promise. ArtifactError for a key that is none and a value that does not fit."""
        kind = kind_of(key)
        if kind is None:
            known = [*NAMES, *(kind.name for kind in KINDS)]
            near = get_close_matches(key, known, n=3, cutoff=0.5)
            hint = f"near names: {', '.join(near)}" if near else f"promises: {', '.join(known[len(NAMES) :])}"
            raise self._error(key, f"there is no promise {key!r}", hint)
        read: Mapping[Takes, Callable[[str, object], Clause | None]] = {
            Takes.ITEMS: self._items,
            Takes.COUNT: self._count,
            Takes.BYTES: self._bytes,
            Takes.TRUE: self._true,
            Takes.KERNELS: self._kernels,
            Takes.BACKENDS: self._backends,
        }
        clause = read[kind.takes](key, value)
        if clause is None:
            raise self._error(key, f"expected {kind.takes} for {key}, found {_shown(value)}")
        return clause

    def _error(self, key: str, message: str, hint: str | None = None) -> ArtifactError:
        return self.places.error(self.places.key(self.contract, key), message, hint)

    def _items(self, key: str, value: object) -> Clause | None:
        items = self._selectors(key, value)
        return None if items is None else Clause(key, self.places.key(self.contract, key), items=items)

    def _selectors(self, key: str, value: object) -> tuple[Selector, ...] | None:
        texts = ["*" if value == "all" else value] if isinstance(value, str) else value
        if not isinstance(texts, list | tuple) or not texts or not all(isinstance(t, str) and t for t in texts):
            return None
        return tuple(Selector(text, self.places.item(self.contract, key, text)) for text in texts)

    def _count(self, key: str, value: object) -> Clause | None:
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            return None
        return Clause(key, self.places.key(self.contract, key), number=value)

    def _bytes(self, key: str, value: object) -> Clause | None:
        match = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
        if match is None:
            return self._count(key, value)
        unit = _UNITS.get(match["unit"].upper())
        return None if unit is None else self._count(key, int(float(match["number"]) * unit))

    def _true(self, key: str, value: object) -> Clause | None:
        return Clause(key, self.places.key(self.contract, key)) if value is True else None

    def _kernels(self, key: str, value: object) -> Clause | None:
        if not isinstance(value, dict) or not value:
            return None
        table = [(str(pattern), self._selectors(key, items)) for pattern, items in value.items()]
        whole = tuple((pattern, items) for pattern, items in table if items is not None)
        return Clause(key, self.places.key(self.contract, key), table=whole) if len(whole) == len(table) else None

    def _backends(self, key: str, value: object) -> Clause | None:
        words = [value] if isinstance(value, str) else value
        if not isinstance(words, list | tuple) or not words or not all(word in BACKENDS for word in words):
            return None
        return Clause(key, self.places.key(self.contract, key), words=tuple(words))


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
