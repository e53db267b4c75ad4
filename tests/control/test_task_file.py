"""Task files: what they say arrives in the task, and mistakes are one sentence that names the file."""

import numpy as np
import pytest

from tests.control.robots import CART_POLE
from truesim.control import read_task
from truesim.core.errors import TruesimError
from truesim.files.robots import loads

TASK = """
steps = 50
timestep = 0.01
[start.q]
hinge = 0.3
[bounds]
push = [-4, 5]
[costs.effort]
quantity = "command"
weight = 0.01
[costs.up]
quantity = "posture"
target = { hinge = 3.14 }
weight = [1.0, 20.0]
when = "final"
[limits.track]
quantity = "posture"
joints = ["slide"]
low = -0.5
high = 0.5
[design]
timestep = [0.005, 0.02]
"""


def test_a_file_is_a_task(tmp_path):
    """Horizon, start, bounds, costs, limits and design are those of the file."""
    (tmp_path / "task.toml").write_text(TASK)
    task = read_task(tmp_path / "task.toml", loads(CART_POLE))
    assert task.steps == 50
    np.testing.assert_allclose(task.initial_state().q, [0.0, 0.3])
    np.testing.assert_allclose(np.ravel(task.command_bounds()), [-4, 5])
    np.testing.assert_allclose(task.costs["up"].quantity.target, [0.0, 3.14])
    assert task.costs["up"].when == "final"
    assert task.limits["track"].quantity.joints == ("slide",)
    assert task.design == {"timestep": (0.005, 0.02)}


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("steps = 50", "", "no steps"),
        ("steps = 50", "steps = = 50", "not valid TOML"),
        ('"command"', '"comand"', "did you mean 'command'"),
        ("weight = 0.01", "wieght = 0.01", "did you mean 'weight'"),
        ("push", "pull", "There is no actuator named 'pull'"),
        ("hinge = 0.3", "hing = 0.3", "did you mean 'hinge'"),
        ("steps = 50", 'steps = "fifty"', "steps is 'fifty'; it must be a whole number"),
        ("timestep = 0.01", "timestep = -0.1", "The time step is -0.1 s"),
        ("weight = 0.01", 'weight = "x"', "costs.effort.weight holds 'x'; it must be a number"),
        ("hinge = 0.3", 'hinge = "up"', "start.q holds 'up'"),
        ("[0.005, 0.02]", "0.01", "design.timestep is 0.01; it must be a pair"),
        ("[design]", "[desing]", "did you mean 'design'"),
    ],
)
def test_mistakes_name_the_file(tmp_path, old, new, sentence):
    """A mistake in a task file is one sentence."""
    (tmp_path / "task.toml").write_text(TASK.replace(old, new))
    with pytest.raises(TruesimError, match=r"task\.toml") as error:
        read_task(tmp_path / "task.toml", loads(CART_POLE))
    assert sentence in str(error.value)


def test_a_missing_file_is_named(tmp_path):
    """A file that does not exist is named."""
    with pytest.raises(TruesimError, match=r"none.toml cannot be read"):
        read_task(tmp_path / "none.toml", loads(CART_POLE))
