"""Measurements of other engines: one module each, imported only in the process that measures it."""
