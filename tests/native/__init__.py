"""Tests of truesim.native."""
