"""Whether 95 % regions of posteriors hold the truth in 95 % of all repeats, on three small problems."""
