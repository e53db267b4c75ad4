"""Robots of MuJoCo Menagerie."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def menagerie() -> Path:
    """Folder of Menagerie: `$TRUESIM_DATA/menagerie`, or the data beside the repository."""
    beside = Path(__file__).resolve().parents[4] / "shared" / "data"
    folder = Path(os.environ.get("TRUESIM_DATA", beside)) / "menagerie"
    if not folder.is_dir():
        pytest.skip(f"MuJoCo Menagerie is not at {folder}; set TRUESIM_DATA to the data folder")
    return folder
