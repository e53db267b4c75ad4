"""Damaged files: every loader answers with one sentence, and never hangs."""
