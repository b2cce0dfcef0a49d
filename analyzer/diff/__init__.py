"""What differs between two runs, by structure: `diff_runs(old, new) -> RunDiff`."""

from analyzer.diff.compare import diff_graphs, diff_runs
from analyzer.diff.records import (
    Change,
    ConfigChange,
    EnvironmentChange,
    GraphDiff,
    Kind,
    Layer,
    Repeated,
    RunDiff,
    Side,
)
from analyzer.diff.repeats import collapse

__all__ = [
    "Change",
    "ConfigChange",
    "EnvironmentChange",
    "GraphDiff",
    "Kind",
    "Layer",
    "Repeated",
    "RunDiff",
    "Side",
    "collapse",
    "diff_graphs",
    "diff_runs",
]
