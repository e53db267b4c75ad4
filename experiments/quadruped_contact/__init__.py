"""Foot friction and contact softness of a quadruped, identified from a log that MuJoCo made."""
