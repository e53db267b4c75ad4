"""Families of small tasks with hidden numbers."""
