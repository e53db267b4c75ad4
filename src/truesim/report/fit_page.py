"""Page of a fit."""

from pathlib import Path


def write_report(folder: Path) -> Path:
    """Placeholder."""
    return folder / "report.html"
