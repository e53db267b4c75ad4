"""Blocks of the page on adaptation that need no training run as written."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "adaptation.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.mark.slow
def test_policies_adapt(tmp_path, monkeypatch):
    """A policy is trained, adapted within its episodes and saved; another one estimates parameters online."""
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(compile("\n".join(BLOCKS[:2]), "adaptation.md", "exec"), names)
    assert len(names["found"].search.played) <= 12
    assert (tmp_path / "adapted" / "policy.json").is_file()
    assert names["action"].shape == (1,)


def test_simopt_finds_the_frequency():
    """The distribution moves by three standard deviations and becomes a randomization."""
    names: dict = {}
    exec(compile(BLOCKS[2], "adaptation.md", "exec"), names)
    assert abs(names["distribution"].mean[0] - 1.3) < 0.02
    assert names["randomization"].paths == ("joints/hinge.stiffness",)
