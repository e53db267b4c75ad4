"""The peers' side: one module each, imported only in the process that measures it."""
