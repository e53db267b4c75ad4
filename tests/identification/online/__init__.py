"""Tests of identification while the robot runs."""
