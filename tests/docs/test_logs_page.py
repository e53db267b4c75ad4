"""The page on logs runs as written."""

import re
from importlib import resources
from pathlib import Path

import numpy as np
import polars as pl

PAGE = (Path(__file__).parents[2] / "docs" / "logs.md").read_text()


def test_the_snippets_run(tmp_path, monkeypatch, capsys):
    """The mapping file of the page renames a user's columns, and the Python block prepares the log."""
    monkeypatch.chdir(tmp_path)
    Path("robot.xml").write_text((resources.files("truesim") / "files" / "robots" / "arm.xml").read_text())
    Path("mine.toml").write_text(re.search(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL).group(1))
    time = np.arange(500) * 0.004
    columns = {"stamp_ns": (1e9 * time).astype(int), "elbow_angle": np.rad2deg(np.sin(3 * time)), "current": time}
    pl.DataFrame(columns | {"wrist_angle": np.cos(time)}).write_csv("own.csv")
    exec(compile(re.search(r"```python\n(.*?)```", PAGE, flags=re.DOTALL).group(1), "logs.md", "exec"), {})
    out = capsys.readouterr().out
    assert "250" in out
    assert "own.csv 0.0 3.0" in out


def test_every_unit_is_on_the_page():
    """Units of mapping files are listed."""
    from truesim.files.logs.mapping import UNIT_FACTORS

    assert not [unit for unit in UNIT_FACTORS if f"`{unit}`" not in PAGE]
