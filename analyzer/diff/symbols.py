"""Names of symbolic sizes (`s0`, `s33`) are arbitrary; the order in which a graph's inputs introduce them is not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from analyzer.model import FxNode

_DOUBLED = re.compile(r"\(\(([^()]*)\)\)")
"""Brackets twice, as newer versions print a floor division in a sum."""
_SYMBOL = re.compile(r"\bs\d+\b")


def symbol_names(nodes: Iterable[FxNode]) -> Mapping[str, str]:
    """Each symbol by its rank among those that the placeholders mention."""
    found: dict[str, str] = {}
    for node in nodes:
        if node.op == "placeholder":
            for symbol in _SYMBOL.findall(f"{node.annotation or ''} {node.shape} {node.stride}"):
                found.setdefault(symbol, f"s${len(found)}")
    return found


def renamed(text: str, names: Mapping[str, str]) -> str:
    """The text with each symbol by its rank; sums and products in one order, since symbols sort by their names."""
    if not names or "s" not in text:
        return text
    return _sorted_sum(_SYMBOL.sub(lambda match: names.get(match[0], match[0]), text))


@lru_cache(maxsize=4096)
def _sorted_sum(text: str) -> str:
    if any(bracket in text for bracket in "()[],"):
        return _DOUBLED.sub(r"(\1)", text)
    terms = text.replace(" - ", " + -").split(" + ")
    return " + ".join(sorted(map(_sorted_product, terms)))


def _sorted_product(text: str) -> str:
    sign = "-" if text.startswith("-") else ""
    return sign + "*".join(sorted(text.removeprefix("-").split("*")))
