"""Sections of a fit's page: each turns a part of `fit.json` or `signals.npz` into values for the template."""
