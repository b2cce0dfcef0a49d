"""How contracts name FX nodes of the post-grad graph.

| written | means |
|---|---|
| `exp` | the node of this name |
| `exp*` | all nodes whose names fit: `*` is any text, `?` any letter |
| `aten.exp`, `aten.*softmax*` | all nodes with this target, of any overload |
| `model.py:12` | all nodes that come from this line of the program; leading folders may be left out |

Graph inputs, constants and the output are never meant; views and folded nodes, which nothing computes, only where a
selector means nothing else. A bare `"all"` instead of a list stands for `["*"]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

from analyzer.contracts.records import Selector
from analyzer.facts import Fate, GraphFacts, NodeFact

_LINE = re.compile(r"(?P<file>.+):(?P<line>\d{1,9})")
_PATTERN = re.compile(r"[*?\[.:]")


class Nodes:
    """The nodes of one graph that selectors can mean; a contract file may name thousands."""

    def __init__(self, facts: GraphFacts) -> None:
        self._all = tuple(candidates(facts))
        self._by_name = {fact.name: fact for fact in self._all}

    def selected(self, selector: Selector) -> tuple[NodeFact, ...]:
        """The nodes that a selector means, in the graph's order; none is a possible answer."""
        if selector.text in self._by_name:
            return (self._by_name[selector.text],)
        if not _PATTERN.search(selector.text):
            return ()
        found = tuple(fact for fact in self._all if _means(selector.text, fact))
        return tuple(fact for fact in found if fact.fate not in (Fate.VIEW, Fate.FOLDED)) or found


def candidates(facts: GraphFacts) -> Iterator[NodeFact]:
    """The nodes that a selector can mean."""
    for fact in facts.nodes:
        if fact.node.op == "call_function" and fact.fate not in (Fate.INPUT, Fate.CONSTANT):
            yield fact


def _means(text: str, fact: NodeFact) -> bool:
    if line := _LINE.fullmatch(text):
        return _comes_from(fact, line["file"], int(line["line"]))
    if "." in text:
        target = fact.node.target
        return fnmatchcase(target, text) or fnmatchcase(target.rpartition(".")[0], text)
    return fnmatchcase(fact.name, text)


def _comes_from(fact: NodeFact, file: str, line: int) -> bool:
    source = fact.source
    if source is None or source.line != line:
        return False
    path = source.file.replace("\\", "/")
    return f"/{path}".endswith("/" + file.replace("\\", "/").removeprefix("./").lstrip("/"))


def near_names(selector: Selector, graphs: Sequence[GraphFacts]) -> list[str]:
    """Up to three names of the same sort that look alike, best first."""
    nodes = [fact for facts in graphs for fact in candidates(facts)]
    if line := _LINE.fullmatch(selector.text):
        return _near_lines(nodes, line["file"], int(line["line"]))
    if "." in selector.text:
        names = {fact.node.target for fact in nodes} | {fact.node.target.rpartition(".")[0] for fact in nodes}
    else:
        names = {fact.name for fact in nodes}
    return get_close_matches(selector.text.replace("*", ""), sorted(names - {""}), n=3, cutoff=0.5)


def _near_lines(nodes: Sequence[NodeFact], file: str, line: int) -> list[str]:
    """Lines of the same file with ops on them, nearest first; lines of other files when it has none."""
    found = {(site.file.replace("\\", "/"), site.line) for fact in nodes if (site := fact.source)}
    mine = {place for place in found if place[0].rpartition("/")[2] == file.rpartition("/")[2]} or found
    nearest = sorted(mine, key=lambda place: (abs(place[1] - line), place))[:3]
    return [f"{path.rpartition('/')[2]}:{number}" for path, number in nearest]
