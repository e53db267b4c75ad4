"""A servo on one joint with known truth: friction, armature, encoder bias and delay from one chirp."""
