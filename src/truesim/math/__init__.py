"""Physics-free numerical methods on small dense arrays."""
