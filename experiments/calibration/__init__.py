"""Coverage of posteriors on three small problems."""
