"""What audits, diffs and the laboratory ask about two runs: their configs, their pairs of graphs, and equal parts."""
