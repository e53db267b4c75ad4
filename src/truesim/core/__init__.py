"""Base of every layer: array types, errors, result codes, ports and taps, precision."""
