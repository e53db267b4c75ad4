"""Freeing parameters: patterns, defaults, bounds, priors, ties, and the model that comes of it."""

import dataclasses

import jax
import numpy as np
import pytest

from tests.physics.parameters.robots import everything
from truesim.core.errors import NameUnknownError, TruesimError
from truesim.physics.model import paths
from truesim.physics.model.targets import read, target
from truesim.physics.parameters import ParameterSet, free
from truesim.physics.simulation import Simulator

MODEL = everything()
SIMULATOR = Simulator.of(MODEL)
PATHS = [str(path) for path in paths.paths(MODEL)]


@pytest.fixture(scope="module")
def all_of_them() -> ParameterSet:
    """Every number of the robot, freed."""
    return free(MODEL, PATHS)


def test_every_number_can_be_freed(all_of_them):
    """Whatever has a path can be searched, from a start within its bounds, in coordinates of order one."""
    assert all_of_them.names == PATHS
    groups = {group for group in paths.GROUPS if getattr(MODEL, group).names}
    assert {path.partition("/")[0] for path in PATHS} >= {*groups, "gravity", "time_scale"}
    assert len(groups) >= 6
    for parameter in all_of_them:
        z, (low, high) = parameter.transform.coordinates(parameter.start), parameter.bounds()
        assert np.all(np.isfinite(z)), parameter.name
        assert np.all(np.abs(z) <= 1.01), parameter.name
        assert np.all(low < high), parameter.name
        assert np.all((low <= z) & (z <= high)), parameter.name
    assert np.all(np.isfinite(all_of_them.start))


def test_a_start_is_the_models_own(all_of_them):
    """But for what lies on a bound, and for inertias of bodies without width."""
    moved = {
        parameter.name
        for parameter, value in zip(all_of_them, all_of_them.values(all_of_them.start), strict=True)
        if not np.allclose(value, parameter.start, rtol=1e-9, atol=1e-12)
    }
    on_a_bound = {p.name for p in all_of_them if np.any(p.start == p.low) or np.any(p.start == p.high)}
    assert moved <= on_a_bound | {"bodies/drone.inertia"}
    assert "joints/elbow.damping" in moved


def test_values_reach_the_model(all_of_them):
    """What is written at some coordinates is what they stand for, at every path."""
    z = np.clip(all_of_them.start + 0.01, *all_of_them.bounds)
    values, written = all_of_them.values(z), all_of_them.write(SIMULATOR, z).model
    for parameter, value in zip(all_of_them, values, strict=True):
        np.testing.assert_allclose(read(written, parameter.targets[0]), value, rtol=1e-12, atol=1e-300)
    assert all_of_them.number_slices()[-1].stop == sum(np.size(value) for value in values)
    assert all_of_them.slices()[-1].stop == all_of_them.size == z.size


def test_numbers_are_written_in_double_precision():
    """Into a model of NumPy arrays, whatever the program's own precision is."""
    with jax.enable_x64(False):
        written = paths.write(MODEL, "bodies/cart.mass", np.float64(0.1) * 3)
    assert isinstance(written.bodies.mass, np.ndarray)
    assert written.bodies.mass[0] == 0.1 * 3


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("bodies/*.mass", [f"bodies/{b}.mass" for b in ("cart", "upper", "rod", "head", "drone")]),
        ("joints/elbow.damping", ["joints/elbow.damping"]),
        ("joints/*.armature", [f"joints/{j}.armature" for j in ("rail", "shoulder", "elbow", "neck", "flight")]),
        ("bodies/u*.com[2]", ["bodies/upper.com[2]"]),
        ("actuators/?olt.volts", ["actuators/volt.volts"]),
        ("*gravity", ["gravity"]),
        ("joints/elbow.range", ["joints/elbow.range"]),
    ],
)
def test_patterns(pattern, names):
    """`*` and `?` stand for text, `[k]` for one element."""
    assert free(MODEL, [pattern]).names == names


def test_a_star_for_fields_stands_for_physics():
    """Solver settings, limits and conventions are not what `*` means."""
    fields = {name.rpartition(".")[2] for name in free(MODEL, ["joints/elbow.*"]).names}
    assert fields >= {"damping", "frictionloss", "armature", "stiffness", "position", "axis"}
    assert not fields & {"range", "margin", "ref", "solreffriction", "solimplimit"}


def test_patterns_that_overlap_count_once():
    """Naming a parameter twice frees one."""
    assert free(MODEL, ["bodies/*.mass", "bodies/cart.mass"]).names.count("bodies/cart.mass") == 1


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [
        ("bodies/*.mas", "bodies/.*mass"),
        ("joints/elbo.damping", "elbow"),
        ("joints/elbow.dampng", "damping"),
        ("joint/elbow.damping", "joints"),
        ("graviti", "gravity"),
        ("bodies/cart.com[3]", r"3 elements, \[0\] to \[2\]"),
        ("bodies/cart.mass[0]", "single number"),
        ("actuators/push.volts", "Valid: .*gain"),
    ],
)
def test_wrong_patterns_teach(pattern, hint):
    """One sentence with what is valid and the nearest match."""
    with pytest.raises(TruesimError, match=hint):
        free(MODEL, [pattern])


def test_ties_share_one_value():
    """One unknown at several places, which patterns no longer free on their own."""
    found = free(
        MODEL, ["joints/*.damping"], ties=["joints/*.armature", ["joints/rail.damping", "joints/elbow.damping"]]
    )
    assert len(found) == 3 + 2
    z = found.start.copy()
    z[found.slices()[-1]] = 4.0
    written = found.write(SIMULATOR, z).model
    assert paths.read(written, "joints/rail.damping") == paths.read(written, "joints/elbow.damping") != 0.5
    armatures = [float(paths.read(written, f"joints/{j}.armature")) for j in MODEL.joints.names]
    assert len(set(armatures)) == 1


def test_a_negative_tie_mirrors():
    """A position servo's gain and the slope of its bias are one stiffness."""
    found = free(MODEL, ["actuators/servo.gain"], ties=[["actuators/servo.gain", "-actuators/servo.bias[1]"]])
    assert found.names == ["actuators/servo.gain"]
    written = found.write(SIMULATOR, found.parameters[0].transform.coordinates(33.0)).model
    np.testing.assert_allclose(paths.read(written, "actuators/servo.gain"), 33.0)
    np.testing.assert_allclose(paths.read(written, "actuators/servo.bias"), [0.0, -33.0, -1.0])
    np.testing.assert_allclose(read(MODEL, target(MODEL, "-actuators/servo.bias[1]")), 20.0)


def test_things_of_different_shapes_do_not_tie():
    """The sentence names both."""
    with pytest.raises(TruesimError, match=r"bodies/cart.mass, bodies/cart.com cannot share"):
        free(MODEL, [], ties=[["bodies/cart.mass", "bodies/cart.com"]])


def test_bounds_apply_by_pattern_and_hold_zero():
    """Bounds are in SI units; one that reaches zero leaves the logarithmic scale."""
    found = free(MODEL, ["bodies/*.mass", "joints/rail.damping"]).bounded({"bodies/*.mass": (0.0, 5.0)})
    low, high = found.bounds
    values = [np.asarray(found.values(edge)) for edge in (low, high)]
    np.testing.assert_allclose(values[0], 0.0)
    np.testing.assert_allclose(values[1][:5], 5.0)
    assert values[1][5] == 0.5 * 50


def test_elements_take_bounds():
    """`[k]` in a pattern of bounds is an element, not a set of characters."""
    found = free(MODEL, ["bodies/upper.com[2]", "bodies/upper.com[0]"]).bounded({"bodies/upper.com[2]": (-0.3, 0.0)})
    assert (found.parameters[0].low, found.parameters[0].high) == (-0.3, 0.0)
    assert found.parameters[1].high > 0.3


@pytest.mark.parametrize(
    ("bounds", "hint"),
    [
        ({"bodies/cart.mass": (3.0, 9.0)}, "starts at 2.* kg, outside of 3:9"),
        ({"bodies/cart.mass": (3.0, 3.0)}, "3:3 .* empty"),
        ({"bodies/crat.mass": (1.0, 3.0)}, "'bodies/cart.mass'"),
        ({"bodies/cart.inertia": (0.0, 1.0)}, "takes no bounds"),
    ],
)
def test_wrong_bounds_teach(bounds, hint):
    """One sentence that names the parameter."""
    with pytest.raises(TruesimError, match=hint):
        free(MODEL, ["bodies/cart.mass", "bodies/cart.inertia"]).bounded(bounds)


def test_priors_apply_by_pattern_and_teach():
    """Means and standard deviations are in SI units; a wrong one is refused."""
    found = free(MODEL, ["bodies/*.mass"]).with_priors({"bodies/c*.mass": (2.5, 0.1)})
    assert [p.prior is not None for p in found] == [True, False, False, False, False]
    assert (found.parameters[0].prior.mean, found.parameters[0].prior.std) == (2.5, 0.1)
    with pytest.raises(TruesimError, match="must be positive"):
        found.with_priors({"bodies/cart.mass": (2.5, 0.0)})
    with pytest.raises(NameUnknownError, match="free parameter"):
        found.with_priors({"joints/rail.damping": (1.0, 0.1)})


def test_starts_lie_inside_of_their_bounds():
    """On a bound derivatives have one side only."""
    found = free(MODEL, ["joints/*.damping", "actuators/*.delay"])
    low, high = found.bounds
    assert np.all((found.start > low) & (found.start < high))
    narrow = dataclasses.replace(found.parameters[0]).with_bounds(0.5, 0.5 + 1e-6)
    values = ParameterSet((narrow,))
    assert values.bounds[0] < values.start < values.bounds[1]
