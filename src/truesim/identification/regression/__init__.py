"""Inverse-dynamics regression: inertias, armature and friction of an arm from joint torques, by linear algebra."""
