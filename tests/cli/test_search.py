"""Searching before a fit on the command line: basins in the result, resuming, and what cannot work."""

import json
from io import StringIO

import numpy as np
from rich.console import Console

from tests.cli.test_identify import FREE, ROBOT, TIME, TRUTH, folder  # noqa: F401
from truesim.cli.exit_codes import EXIT_CODES
from truesim.cli.search_progress import SearchProgress
from truesim.files.logs import Log
from truesim.files.robots import loads
from truesim.identification.problem.build import build
from truesim.identification.search.open_loop import search_space
from truesim.optimize import SearchResult, SolveRecord, SolveStatus

SEARCH = ("--search", "hopping", "--solves", "4", "--workers", "2")


def test_a_search_leaves_its_basins(folder, truesim):  # noqa: F811
    """The result lists basins with cost and count; the folder of a search that was killed goes on."""
    done = truesim("identify", "robot.xml", "run.csv", *FREE, *SEARCH, "--out", "fit")
    assert done.code == 0, done.err
    assert "4 solves" in done.err
    document = json.loads((folder / "fit" / "fit.json").read_text())
    mass = {p["path"]: p for p in document["parameters"]}["bodies/arm.mass"]
    assert mass["low"] < TRUTH < mass["high"]
    best = document["search"]["basins"][0]
    np.testing.assert_allclose(best["values"]["bodies/arm.mass"], [TRUTH], rtol=0.05)
    assert sum(b["count"] for b in document["search"]["basins"]) == document["search"]["solves"] == 4
    for left in ("fit.json", "report.html"):
        (folder / "fit" / left).unlink()
    again = truesim("identify", "robot.xml", "run.csv", *FREE, *SEARCH, "--out", "fit")
    assert again.code == 0, again.err
    assert json.loads((folder / "fit" / "fit.json").read_text())["search"] == document["search"]
    assert len((folder / "fit" / "search.jsonl").read_text().splitlines()) == 5


def test_mujoco_as_a_black_box(folder, truesim):  # noqa: F811
    """The fit is MuJoCo's own; the exit code says that the search ended at its limit of evaluations."""
    how = ("--search", "cmaes", "--engine", "mujoco", "--solves", "300")
    done = truesim("identify", "robot.xml", "run.csv", *FREE, *how, "--out", "fit")
    assert done.code == EXIT_CODES["iteration limit"], done.err
    document = json.loads((folder / "fit" / "fit.json").read_text())
    mass = {p["path"]: p for p in document["parameters"]}["bodies/arm.mass"]
    np.testing.assert_allclose(mass["value"], TRUTH, rtol=0.1)
    assert (folder / "fit" / "report.html").exists()


def test_mistakes_are_one_sentence(folder, truesim):  # noqa: F811
    """Options of a search without one, and names that do not exist."""
    fit = ("identify", "robot.xml", "run.csv", *FREE, "--out", "fit")
    for extra, expected in (
        (("--seconds", "5"), "add --search hopping"),
        (("--cost", "5"), "add --search hopping"),
        (("--search", "hoping"), "did you mean 'hopping'"),
        (("--search", "hopping", "--engine", "mujoco"), "no derivatives"),
        (("--search", "hopping", "--workers", "0"), "at least one worker"),
    ):
        done = truesim(*fit, *extra)
        assert done.code == 2
        assert expected in done.sentence


def test_the_display_lists_basins():
    """On a terminal every basin has a row with its cost, its count and the parameters' values."""
    problem = build(loads(ROBOT), [Log(TIME, {"qpos/hinge": np.sin(TIME), "ctrl/motor": 0 * TIME}, "run")], FREE[1:])
    ends = problem.parameters.start + np.array([[0.0, 0.0], [0.0, 0.0], [0.5, 0.0]])
    solves = [
        SolveRecord(k, 0, end, end, cost, 5, SolveStatus.CONVERGED)
        for k, (end, cost) in enumerate(zip(ends, (2.0, 2.0, 7.0), strict=True))
    ]
    console = Console(file=StringIO(), force_terminal=True, width=120)
    with SearchProgress(console, problem) as progress:
        progress(SearchResult(solves, search_space(problem), 1.0))
    shown = console.file.getvalue()
    assert "3 solves, 15 evaluations, 2 basins, best cost 2, found 2 times" in shown
    assert "bodies/arm.mass" in shown
    assert "0.8244" in shown  # 0.5 kg by e to the power 0.5
