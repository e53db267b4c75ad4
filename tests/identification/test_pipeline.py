"""The whole job in one call: what it reads, when it stops, and how it reports."""

import dataclasses

import numpy as np
import pytest

from tests.identification.recorded import ARM_FREE, ARM_WRONG, arm_log
from truesim.core.errors import FileError, NameUnknownError, TruesimError
from truesim.core.persistence.lock import lock_folder
from truesim.files.logs import write_log
from truesim.identification import SolveOptions, identify
from truesim.identification.options import IdentifyOptions, read_options
from truesim.identification.problem import build
from truesim.identification.request import Request
from truesim.identification.search.run import SearchOptions
from truesim.identification.solve.adam import Batch, _epochs


@pytest.fixture
def arm(tmp_path):
    """A robot file and two logs."""
    (tmp_path / "arm.xml").write_text(ARM_WRONG)
    for seed, name in enumerate(("a.csv", "b.csv")):
        log = arm_log(0.7, seed=seed, name=name)
        write_log(tmp_path / name, {"time": log.time, **log.columns})
    return tmp_path


def test_every_log_is_prepared_once(arm, monkeypatch):
    """Those of the fit, held-out and validation logs alike."""
    prepared = []
    original = build.prepare
    monkeypatch.setattr(build, "prepare", lambda log, model: prepared.append(log.name) or original(log, model))
    monkeypatch.setattr("truesim.identification.steps.solve_problem", _stop)
    with pytest.raises(KeyboardInterrupt):
        identify(arm / "arm.xml", [arm / "a.csv"], ARM_FREE, holdout=[arm / "b.csv"])
    assert sorted(prepared) == ["a.csv", "b.csv"]


def _stop(*_):
    raise KeyboardInterrupt


def test_mistakes_are_told_before_anything_is_computed(arm):
    """Wrong names, missing logs and logs that are too short for the errors that will be reported."""
    with pytest.raises(NameUnknownError, match="did you mean"):
        identify(arm / "arm.xml", [arm / "a.csv"], ["bodies/uper.mass"])
    with pytest.raises(FileError, match=r"nowhere\.csv"):
        identify(arm / "arm.xml", [arm / "nowhere.csv"], ARM_FREE)
    with pytest.raises(TruesimError, match=r"no window of 0\.5 s fits"):
        identify(arm / "arm.xml", [arm_log(0.3)], ARM_FREE)
    with pytest.raises(TruesimError, match="Nothing is free"):
        identify(arm / "arm.xml", [arm / "a.csv"])


def test_a_log_in_degrees_is_refused_unless_it_was_given_as_a_log(arm):
    """A file is refused; columns that the caller read by hand are taken as they are, with a warning."""
    log = arm_log(0.7)
    degrees = {name: np.degrees(values) if name.startswith("qpos") else values for name, values in log.columns.items()}
    write_log(arm / "degrees.csv", {"time": log.time, **degrees})
    with pytest.raises(TruesimError, match="looks like degrees"):
        identify(arm / "arm.xml", [arm / "degrees.csv"], ARM_FREE)


def test_options_survive_their_document():
    """All records of choices are equal after JSON, infinite numbers included."""
    options = IdentifyOptions(
        solve=SolveOptions(robust=np.inf, horizons=(0.1, 0.2), misfit_factor=1.5),
        search=SearchOptions("cmaes", solves=3),
        actuator_models={"a": "dc_motor"},
        values={"bodies/x.mass": 2.0},
    )
    options = dataclasses.replace(options, problem=dataclasses.replace(options.problem, bounds={"a.b": (0.0, 1.0)}))
    again = read_options(options.document())
    assert again.document() == options.document()
    assert again.solve == options.solve
    assert again.search == options.search


def test_other_thresholds_are_another_request():
    """A fit with other options does not continue an interrupted one; equal requests do."""
    usual = Request("robot.xml", ("a.csv",), ("bodies/*.mass",))
    same = Request("robot.xml", ("a.csv",), ("bodies/*.mass",))
    other = dataclasses.replace(usual, options=IdentifyOptions(solve=SolveOptions(misfit_factor=2.0)))
    assert usual.fingerprint() == same.fingerprint()
    assert usual.fingerprint() != other.fingerprint()


def test_the_seed_orders_the_batches_of_adam():
    """Equal seeds give equal orders, other seeds others; every batch comes once in each pass."""
    parts = [object.__new__(Batch) for _ in range(8)]
    orders = [[id(next(turns)) for _ in range(16)] for turns in (_epochs(parts, seed) for seed in (0, 0, 1))]
    assert orders[0] == orders[1] != orders[2]
    assert all(sorted(order[:8]) == sorted(map(id, parts)) for order in orders)


def test_a_run_that_is_killed_while_it_writes_is_continued(arm, monkeypatch):
    """The half-written folder is no obstacle, and the result is that of an uninterrupted run."""
    out = arm / "fit"

    def kill(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("truesim.identification.fit_folder.write_json", kill)
        with pytest.raises(OSError, match="No space"):
            identify(arm / "arm.xml", [arm / "a.csv"], ARM_FREE, out=out)
    assert not (out / "fit.json").exists()
    assert (out / "checkpoint.npz").exists()
    again = identify(arm / "arm.xml", [arm / "a.csv"], ARM_FREE, out=out)
    whole = identify(arm / "arm.xml", [arm / "a.csv"], ARM_FREE)
    for path, value in whole.values.items():
        np.testing.assert_allclose(again.values[path], value, rtol=1e-3)
    assert not (out / ".result.part").exists()
    assert not (out / ".lock").exists()


def test_two_runs_do_not_share_a_folder(arm):
    """The second is refused before it computes anything."""
    with lock_folder(arm / "fit"), pytest.raises(TruesimError, match="Another run"):
        identify(arm / "arm.xml", [arm / "a.csv"], ARM_FREE, out=arm / "fit")
    assert not (arm / "fit").exists()
