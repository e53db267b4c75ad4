"""Methods of adaptation in `truesim gap`: what is asked for, lines with intervals, and their figure."""

import json

import numpy as np
import pytest

from truesim.cli.gap_methods import MethodOptions, _line, check_methods, randomized_task
from truesim.cli.measured_gap import _robot
from truesim.core.errors import NameUnknownError, TruesimError
from truesim.policies import make_task
from truesim.policies.adaptation import EnvBench, MethodCurve
from truesim.policies.runner import PolicyRunner
from truesim.report.gap_page import write_gap_page


def test_unknown_methods_are_named_with_the_nearest(tmp_path):
    with pytest.raises(NameUnknownError, match="'so-cma'"):
        check_methods(MethodOptions(("so-cna",), tmp_path / "ranges.toml"))
    with pytest.raises(TruesimError, match="--randomize"):
        check_methods(MethodOptions(("so-cma",)))
    with pytest.raises(TruesimError, match="belongs to --methods"):
        check_methods(MethodOptions((), tmp_path / "ranges.toml"))
    with pytest.raises(TruesimError, match="cannot adapt"):
        check_methods(MethodOptions(("so-cma",), tmp_path / "ranges.toml"), [tmp_path])


def test_what_policies_are_told_is_checked_before_anything_is_played(tmp_path):
    """Wrong files and paths are named; conditions of the file, such as latency, are kept."""
    task, file = make_task("cart-pole-swingup"), tmp_path / "ranges.toml"
    assert randomized_task(task, MethodOptions()) is task
    asked = MethodOptions(("so-cma",), file)
    with pytest.raises(TruesimError, match="no randomization"):
        randomized_task(task, asked)
    file.write_text('["bodies/pol.mass"]\nuniform = [0.1, 0.2]\n')
    with pytest.raises(TruesimError, match="'pole'"):
        randomized_task(task, asked)
    file.write_text("[conditions]\nnoise = 1.0\n")
    with pytest.raises(TruesimError, match="randomizes nothing"):
        randomized_task(task, asked)
    file.write_text('["bodies/pole.mass"]\nuniform = [0.1, 0.2]\n[conditions]\nlatency = [0.0, 0.02]\n')
    told = randomized_task(task, asked)
    assert told.latency == (0.0, 0.02)
    assert told.randomization.paths == ("bodies/pole.mass",)


def test_lines_are_relative_to_nominal_and_oracle():
    """Returns of 2 and 4 between a nominal 1 and an oracle 5 close a quarter and three quarters of the gap."""
    curve = MethodCurve("so-cma", (0, 5), np.array([[2.0, 4.0], [2.0, 5.0], [2.0, 3.0]]), [])
    line = _line(curve, (1.0, 5.0))
    assert line["value"] == pytest.approx([0.25, 0.75])
    assert line["low"][0] == line["high"][0] == pytest.approx(0.25)
    assert 0.5 <= line["low"][1] < 0.75 < line["high"][1] <= 1.0
    assert _line(curve, None)["value"] == pytest.approx([2.0, 4.0])


def test_the_page_draws_a_line_for_each_method(tmp_path):
    """The page of a gap with methods names them, and works without."""
    role = {
        "role": "policy",
        "name": "the policy",
        "short": "policy",
        "policies": 1,
        "episodes": 2,
        "ended_early": 0,
        "returns": [[1.0, 2.0]],
        "real": {"value": 1.5, "low": 1.0, "high": 2.0},
        "simulated": 1.5,
        "gap_closed": {"value": 0.5, "low": 0.4, "high": 0.6},
    }
    document = {"task": "t", "real": "R1", "sentence": "s", "roles": [role], "discrepancies": []}
    curve = MethodCurve("so-cma", (0, 5), np.array([[2.0, 4.0], [2.0, 5.0]]), [])
    for methods in ([], [_line(curve, (1.0, 5.0))]):
        (tmp_path / "gap.json").write_text(json.dumps({**document, "methods": methods}))
        assert ("so-cma" in write_gap_page(tmp_path).read_text()) == bool(methods)


@pytest.mark.parametrize(
    ("on", "sentence"),
    [
        ("R7", "did you mean"),
        ("no_such_module:make", "cannot be loaded"),
        ("json:dump", "cannot be made: TypeError"),
        ("builtins:dict", "returns dict; a robot is an environment"),
    ],
)
def test_what_is_no_robot_is_named(on, sentence):
    """One sentence for every way to name it wrongly."""
    with pytest.raises(TruesimError, match=sentence):
        _robot(on, object.__new__(PolicyRunner))


class OneStep:
    """An environment of one step, whose return is best for the action 0.3, with noise by seed."""

    def reset(self, seed=None):
        """Begin an episode."""
        self._noise = np.random.default_rng(seed).normal(0.0, 0.01)
        return np.zeros(1), {}

    def step(self, action):
        """End the episode."""
        return np.zeros(1), -((float(action[0]) - 0.3) ** 2) + self._noise, True, False, {}

    def close(self):
        """Nothing to close."""


class Constant:
    """A policy that always acts alike."""

    def __init__(self, action):
        self._action = action

    def act(self, observation):
        """The action."""
        return np.array([self._action])


def test_evaluations_repeat_and_do_not_count():
    """Evaluations have the same seeds every time; episodes that count have others."""
    bench = EnvBench(OneStep, evaluated=5)
    first, again = bench.evaluate(Constant(0.3)), bench.evaluate(Constant(0.3))
    np.testing.assert_array_equal(first, again)
    assert bench.played == 0
    counted = [bench.episode(Constant(0.3)) for _ in range(3)]
    assert bench.played == 3
    assert not set(counted) & set(first.tolist())
    assert bench.evaluate(Constant(0.9)).mean() < first.mean() - 0.3
    bench.close()
