"""Every page of the documentation shows a picture or something to run, links lead somewhere, and tutorials run."""

import ast
import json
import re
from pathlib import Path

import numpy as np
import pytest

from docs.tutorials import pages, real_machines

ROOT = Path(__file__).parents[2]
PAGES = sorted(path for path in ROOT.glob("docs/**/*.md") if "reference" not in path.parts)
RUNNABLE = re.compile(r"^\s*(truesim|python|make|pip|TRUESIM_\w+=\S+ truesim) ", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_has_a_picture_or_something_to_run(page):
    """A reader sees something, or can try something."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"```(\w*)\n(.*?)```", text, flags=re.DOTALL)
    runs = any(language == "python" or RUNNABLE.search(block) for language, block in blocks)
    assert "![" in text or runs, f"{page.name} has neither"


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda path: str(path.relative_to(ROOT)))
def test_links_and_anchors_lead_somewhere(page):
    """Files of relative links exist, and so do the headings that they name."""
    for target in re.findall(r"\]\(([^):\s]+)\)", page.read_text(encoding="utf-8")):
        name, _, anchor = target.partition("#")
        file = page if not name else page.parent / name
        assert file.exists(), f"{page.name} links to {target}"
        if anchor and file.suffix == ".md":
            headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
            slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
            assert anchor in slugs, f"{page.name} links to {target}; there are {sorted(slugs)}"


def test_the_readme_is_short_and_begins_with_a_picture():
    """Two screens, of which the first has a picture."""
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 65
    assert any(line.startswith("![") for line in lines[:10])


def test_the_site_lists_pages_that_exist():
    """The navigation names files, except those that are made for the site."""
    named = re.findall(r"^\s+- (?:.*: )?(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), flags=re.MULTILINE)
    assert len(named) > 30
    for page in named:
        assert page.startswith("reference/") or (ROOT / "docs" / page).is_file(), page


@pytest.mark.parametrize("script", pages.SCRIPTS, ids=lambda path: path.stem)
def test_pages_of_tutorials_are_those_of_their_scripts(script):
    """The code on a page is the code of the script: `python -m docs.tutorials.pages` writes it again."""
    shown = re.findall(r"```python\n(.*?)\n```", script.with_suffix(".md").read_text(encoding="utf-8"), flags=re.DOTALL)
    assert shown == [cell.text for cell in pages.read_cells(script) if cell.is_code]


def words(text: str) -> list[str]:
    """Words of an output, without its numbers."""
    return re.findall(r"[A-Za-z_/]{2,}", text)


def executed(name: str, folder: Path) -> tuple[dict, dict]:
    """Names that a tutorial leaves behind, and its notebook."""
    cells, names = pages.execute(pages.read_cells(pages.FOLDER / f"{name}.py"))
    page = (pages.FOLDER / f"{name}.md").read_text(encoding="utf-8")
    shown = re.findall(r"```text\n(.*?)\n```", page, flags=re.DOTALL)
    printed = [cell.output for cell in cells if cell.output.strip()]
    assert list(map(words, printed)) == list(map(words, shown)), "run `python -m docs.tutorials.pages`"
    assert (folder / "images" / f"{name}.svg").is_file()
    return names, json.loads(json.dumps(pages.notebook(cells)))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_desk_arm_runs(folder):
    """Values of the servos are found, and the replay in MuJoCo follows the held-out episode."""
    names, notebook = executed("so101", folder)
    values = {path.rpartition(".")[2]: float(value) for path, value in names["fit"].values.items()}
    assert values["damping"] == pytest.approx(real_machines.TRUE["joints/*.damping"], rel=0.01)
    assert values["kp"] == pytest.approx(real_machines.TRUE["actuators/*.kp"], rel=0.01)
    assert values["delay"] == pytest.approx(real_machines.DELAY, abs=2e-4)
    assert values["mass"] == pytest.approx(real_machines.TRUE["bodies/jaw.mass"], rel=0.01)
    assert np.all(names["errors"]["after"] < 0.1 * names["errors"]["before"])
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert any("mrad after" in line for cell in code for out in cell["outputs"] for line in out["text"])
    for cell in code:
        ast.parse("".join(cell["source"]))


def test_the_arm_with_torques_runs(folder):
    """Friction is found, and the torque error of the held-out run falls."""
    names, _ = executed("torque_arm", folder)
    part = names["Part"]
    assert names["relative"][part.HELD_OUT] < 0.05 < 0.5 < names["relative"][part.HELD_OUT_START]
    assert float(names["fit"].values["joints/elbow_flex.damping"]) == pytest.approx(0.42, rel=0.05)


def test_from_a_fit_to_a_policy_runs(folder):
    """The parameters are found, and the policy holds the pole of the machine that it never saw."""
    names, _ = executed("fit_to_policy", folder)
    assert float(names["fit"].values["bodies/pole.mass"]) == pytest.approx(0.3, rel=0.01)
    assert names["played"].returns.mean() > 5.0
