"""Regression of the torques of a recorded arm."""
