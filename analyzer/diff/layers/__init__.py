"""What differs at each layer of two matched graphs: one generator of changes per layer."""
