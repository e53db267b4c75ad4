"""What every layer may use: array types, errors, result codes."""
