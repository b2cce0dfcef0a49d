"""From records to facts: `analyze(graph)` decides fates, storage, kernels and costs, each with its evidence."""

from analyzer.analyze.whole import analyze

__all__ = ["analyze"]
