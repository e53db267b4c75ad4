"""Exit codes of `truesim identify`, by the status of the fit."""

EXIT_CODES = {
    "converged": 0,
    "not identifiable": 3,
    "model does not fit": 4,
    "iteration limit": 5,
    "stalled": 6,
    "diverged": 7,
    "interrupted": 130,
}
"""0 is a fit to trust; 1 is a defect of truesim, 2 a mistake in the command or its files. With 3, values that are not
flagged can be trusted."""
