"""What the documentation shows runs as written."""

import re
import runpy
from importlib import resources
from pathlib import Path

import pytest

from truesim.cli.demo_robot import record

ROOT = Path(__file__).parents[2]
PAGES = {
    "README.md": "identified.xml",
    "docs/getting-started.md": "heavier.xml",
    "docs/actuators.md": "servo.xml.truesim.json",
    "docs/posteriors.md": "pendulum.html",
    "docs/search.md": "search.jsonl",
    "docs/augmentation.md": "networks/networks.npz",
    "docs/contact.md": "puck.xml.truesim.json",
    "docs/online.md": "heavier.xml",
    "docs/design.md": "excitation.csv",
    "docs/suggest.md": "suggested/blueprint-1.toml",
    "docs/learned-actuators.md": "servo/networks.npz",
    "docs/pytorch.md": "trained/networks.npz",
    "docs/control.md": "plan.csv",
    "docs/policies.md": "stay/policy.json",
}
"""Pages with snippets, and a file that each of them writes."""
EXAMPLES = sorted(ROOT.glob("examples/*.py"))


def needs_torch() -> None:
    """Skip a test where PyTorch is absent."""
    pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'truesim[torch]'")


@pytest.mark.parametrize("page", PAGES)
def test_python_snippets_run(page, tmp_path, monkeypatch):
    """The Python blocks of a page run one after the other, with the built-in arm as `robot.xml`."""
    if page == "docs/pytorch.md":
        needs_torch()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "robot.xml").write_text((resources.files("truesim") / "files" / "robots" / "arm.xml").read_text())
    if page == "README.md":
        for seed in range(2):
            record(tmp_path / "robot.xml", tmp_path / f"run{seed}.csv", seed, seconds=1.5)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)
    assert blocks
    exec(compile("\n".join(blocks), page, "exec"), {"__name__": "snippet"})
    assert (tmp_path / PAGES[page]).exists()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run(example, capsys, tmp_path, monkeypatch):
    """Every example runs and prints something; pictures go into a folder of the test."""
    monkeypatch.chdir(tmp_path)
    if example.stem.startswith("torch"):
        needs_torch()
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_links_lead_somewhere():
    """Relative links in the pages point to files that exist."""
    for page in [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *ROOT.glob("docs/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_list_of_public_names_is_up_to_date():
    """docs/api.md is what `make docs` writes."""
    needs_torch()
    build = runpy.run_path(str(ROOT / "docs" / "build.py"))
    assert (ROOT / "docs" / "api.md").read_text() == build["page"](), "run `make docs`"
