"""Why each value was realized or inlined, each group fused or kept apart, and what that costs."""
