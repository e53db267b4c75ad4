"""Tests of the lowering rules."""
