"""What differs between two runs, by structure: `analyzer.diff.compare.diff_runs(old, new) -> RunDiff`."""
