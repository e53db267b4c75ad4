"""Friction, armature, encoder bias and delay of a servo with known truth from one chirp."""
