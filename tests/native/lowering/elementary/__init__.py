"""Tests of the elementary functions."""
