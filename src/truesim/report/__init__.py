"""Pages and figures of results. This layer only reads."""
