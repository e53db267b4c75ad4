"""The result of an identification: saved, moved and loaded without a loss."""

import json
import shutil

import jax
import numpy as np
import pytest

from tests.identification.recorded import ARM_FREE, ARM_WRONG, arm_log
from truesim.core.errors import FileError
from truesim.files.robots import load
from truesim.identification import Fit, Part, Status, identify
from truesim.identification.solve.levenberg_marquardt import Ending


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A fit of the planar arm with a held-out log, and its folder, whose sources no longer exist."""
    home = tmp_path_factory.mktemp("sources")
    robot = home / "arm.xml"
    robot.write_text(ARM_WRONG)
    fit = identify(
        load(robot),
        [arm_log(0.6, name="a.csv")],
        ARM_FREE,
        holdout=[arm_log(0.6, seed=1, name="b.csv")],
        out=home / "fit",
        window=0.2,
    )
    folder = tmp_path_factory.mktemp("elsewhere") / "moved"
    shutil.copytree(home / "fit", folder)
    shutil.rmtree(home)
    return fit, folder


def test_a_moved_folder_loads_to_the_same_fit(saved):
    """Estimates, covariance, initial states, options and predictions are equal to the bit."""
    fit, folder = saved
    again = Fit.load(str(folder))
    assert again.status is fit.status
    assert again.request == fit.request
    assert again.diagnostics == fit.diagnostics
    assert [e.document() for e in again.estimates] == [e.document() for e in fit.estimates]
    np.testing.assert_array_equal(again.solution.theta, fit.solution.theta)
    np.testing.assert_array_equal(again.solution.nodes.q, fit.solution.nodes.q)
    np.testing.assert_array_equal(again.uncertainty.coordinates, fit.uncertainty.coordinates)
    np.testing.assert_array_equal(again.uncertainty.values, fit.uncertainty.values)
    np.testing.assert_array_equal(again.solution.windows.window, fit.solution.windows.window)
    assert again.errors == fit.errors
    assert again.document == json.loads((folder / "fit.json").read_text())
    for part, log in ((Part.TRAIN, "a.csv"), (Part.HELD_OUT, "b.csv")):
        np.testing.assert_array_equal(again.signals[f"{part}/{log}/fitted"], fit.signals[f"{part}/{log}/fitted"])


def test_the_loaded_simulator_and_residuals_are_the_same(saved):
    """Every number of the simulator, and the residuals that are simulated on first use."""
    fit, folder = saved
    again = Fit.load(folder)
    pairs = zip(jax.tree.leaves(fit.simulator), jax.tree.leaves(again.simulator), strict=True)
    for mine, other in pairs:
        np.testing.assert_array_equal(mine, other)
    np.testing.assert_allclose(again.solution.at.simulated.residual, fit.solution.at.simulated.residual, atol=1e-12)


def test_saving_a_loaded_fit_changes_nothing(saved, tmp_path):
    """A copy of a copy has the same files with the same content."""
    _, folder = saved
    Fit.load(folder).save(tmp_path / "copy")
    names = sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
    assert sorted(str(p.relative_to(tmp_path / "copy")) for p in (tmp_path / "copy").rglob("*") if p.is_file()) == names
    for name in names:
        mine, other = folder / name, tmp_path / "copy" / name
        if name.endswith(".npz"):
            with np.load(mine) as a, np.load(other) as b:
                assert sorted(a.files) == sorted(b.files)
                for key in a.files:
                    np.testing.assert_array_equal(a[key], b[key])
        else:
            assert mine.read_text() == other.read_text(), name


def test_a_fit_is_shown_in_a_line(saved):
    """`repr` does not print every array."""
    fit, _ = saved
    assert repr(fit) == f"<Fit of arm.xml: {fit.status}, {len(fit.estimates)} parameters, 1 logs>"


def test_what_is_not_a_fit_is_refused(saved, tmp_path):
    """By a sentence that names the folder and the file."""
    _, folder = saved
    with pytest.raises(FileError, match=r"is not the folder of a fit: it has no fit\.json"):
        Fit.load(tmp_path)
    shutil.copytree(folder, tmp_path / "part")
    (tmp_path / "part" / "logs.npz").unlink()
    with pytest.raises(FileError, match=r"has no logs\.npz: it was written by an earlier version"):
        Fit.load(tmp_path / "part")
    shutil.copytree(folder, tmp_path / "old")
    document = json.loads((folder / "fit.json").read_text())
    del document["options"]
    (tmp_path / "old" / "fit.json").write_text(json.dumps(document))
    with pytest.raises(FileError, match="written by an earlier version"):
        Fit.load(tmp_path / "old")
    shutil.copytree(folder, tmp_path / "broken")
    (tmp_path / "broken" / "solution.npz").write_bytes(b"not an archive")
    with pytest.raises(FileError, match=r"solution\.npz cannot be read"):
        Fit.load(tmp_path / "broken")


def test_other_logs_are_predicted_by_the_loaded_fit(saved):
    """With the errors that the fit itself reported for its held-out log."""
    fit, folder = saved
    again = Fit.load(folder).evaluate([arm_log(0.6, seed=1, name="c.csv")])
    for row, errors in fit.errors[Part.HELD_OUT].items():
        np.testing.assert_allclose(again[row].rmse, errors.rmse, rtol=1e-9)


def test_an_iteration_limit_is_not_a_divergence(arm_of):
    """A solve that is cut short has the status `iteration limit`."""
    from truesim.identification import SolveOptions, solve_problem

    solution = solve_problem(arm_of(arm_log(0.6)), SolveOptions(iterations=1, window=0.2))
    assert solution.ending is Ending.ITERATION_LIMIT
    fit = Fit.of(solution)
    assert fit.status in (Status.ITERATION_LIMIT, Status.DOES_NOT_FIT)
    assert fit.status is not Status.DIVERGED


@pytest.mark.parametrize("width", [1.0, 20.0, np.inf])
def test_intervals_of_determined_parameters_do_not_depend_on_the_prior(arm_of, width):
    """Estimates move by less than a hundredth of a standard deviation, and intervals by less than one per cent."""
    from truesim.identification import SolveOptions, solve_problem

    usual, other = (
        Fit.of(solve_problem(arm_of(arm_log(), prior_width=w), SolveOptions(window=0.5))) for w in (2.0, width)
    )
    for mine, theirs in zip(usual.estimates, other.estimates, strict=True):
        assert mine.identifiable
        assert np.all(np.abs(mine.value - theirs.value) < 0.01 * mine.std)
        np.testing.assert_allclose(theirs.std, mine.std, rtol=0.01)
