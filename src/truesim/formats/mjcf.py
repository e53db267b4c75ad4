"""MJCF in: from a compiled MuJoCo model to ours, field by field."""
