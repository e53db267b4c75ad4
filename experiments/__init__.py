"""Experiments: `python -m experiments.<name>` prints what was required and what was reached."""
