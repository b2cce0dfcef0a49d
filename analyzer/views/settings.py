"""The settings of a run in few words."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.compare.chosen import shared_settings
from analyzer.compare.effective import short_key
from analyzer.facts import GraphFacts
from analyzer.views.text import shortened

VALUE = 40
"""Characters of a setting's value, unless everything was asked for."""


def told_settings(graphs: Sequence[GraphFacts], full: bool = False) -> list[str]:
    """`name = value` for every shared setting; Inductor's own prefix is left out, long values are shortened."""
    settings = shared_settings(graphs).items()
    return [f"{short_key(key)} = {value if full else shortened(value, VALUE)}" for key, value in settings]
