"""Breakout played from pixels by planning with identified physics."""
