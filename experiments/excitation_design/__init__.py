"""Designed motions of a seven-joint arm, compared with chirps."""
