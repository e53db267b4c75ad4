"""Tests of the design of experiments."""
