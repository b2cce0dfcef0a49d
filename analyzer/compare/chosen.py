"""Which settings of a run are worth telling: those that somebody chose, and that all of its graphs share."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.artifacts.runnable import meaningful_config
from analyzer.compare.effective import HARMLESS
from analyzer.facts import GraphFacts
from analyzer.model import CompiledGraph


def chosen_settings(graph: CompiledGraph) -> dict[str, str] | None:
    """What differed from the defaults when the graph was compiled, tracing and caching left out; None: not recorded."""
    if graph.runnable is None:
        return None
    return {key: value for key, value in meaningful_config(graph.runnable).items() if key not in HARMLESS}


def shared_settings(graphs: Sequence[GraphFacts]) -> dict[str, str]:
    """The chosen settings on whose value all graphs agree."""
    chosen = [settings for facts in graphs if (settings := chosen_settings(facts.graph)) is not None]
    first = chosen[0] if chosen else {}
    return {key: value for key, value in first.items() if all(settings.get(key) == value for settings in chosen)}
