"""Sections of the page of a fit: each turns a part of `fit.json` or the signals into what the template shows."""
