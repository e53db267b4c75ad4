"""What the documentation shows runs as written."""

import re
import runpy
from importlib import resources
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = {
    "README.md": "heavier.xml",
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
}
"""Pages with snippets, and a file that each of them writes."""
EXAMPLES = sorted(ROOT.glob("examples/*.py"))


@pytest.mark.parametrize("page", PAGES)
def test_python_snippets_run(page, tmp_path, monkeypatch):
    """The Python blocks of a page run one after the other, with the built-in arm as `robot.xml`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "robot.xml").write_text((resources.files("truesim") / "robots" / "arm.xml").read_text())
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)
    assert blocks
    exec(compile("\n".join(blocks), page, "exec"), {"__name__": "snippet"})
    assert (tmp_path / PAGES[page]).exists()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run(example, capsys):
    """Every example runs and prints something."""
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_links_lead_somewhere():
    """Relative links in the pages point to files that exist."""
    for page in [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *ROOT.glob("docs/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_list_of_public_names_is_up_to_date():
    """docs/api.md is what `make docs` writes."""
    build = runpy.run_path(str(ROOT / "docs" / "build.py"))
    assert (ROOT / "docs" / "api.md").read_text() == build["page"](), "run `make docs`"
