"""Designed motions: exact gradients, limits along the real motion, and intervals that hold what they promise."""

import dataclasses

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from tests.identification.two_joint_arm import FREE, NOISE, STEP, xml
from truesim.core.errors import TruesimError
from truesim.files.logs import Log
from truesim.files.robots import loads
from truesim.identification import identify
from truesim.identification.excitation import (
    Designer,
    DesignOptions,
    FittedCovariance,
    Limits,
    designer_after_fit,
)
from truesim.identification.excitation.criterion import CRITERIA
from truesim.identification.excitation.prior import fitted_information
from truesim.identification.excitation.splines import spline_basis
from truesim.identification.excitation.starts import control_reach, fitting_scale
from truesim.physics.model import paths
from truesim.physics.parameters import free

SPEED = 2.0


@pytest.fixture(scope="module")
def designer():
    """Two seconds of the two-joint arm."""
    model = loads(xml())
    options = DesignOptions(seconds=2.0, starts=1, iterations=20, noise={"qpos/*": NOISE})
    return Designer(model, FREE, Limits.of(model, speeds={"*": SPEED}), options)


@pytest.fixture(scope="module")
def plan(designer):
    """The designed motion."""
    return designer.optimize()


@pytest.mark.parametrize("criterion", CRITERIA)
def test_gradients_go_through_the_simulator(designer, criterion):
    """Against differences of the cost, with limits that are passed."""
    experiment = dataclasses.replace(designer._experiment, criterion=criterion)
    experiment = dataclasses.replace(experiment, reach=control_reach(experiment))
    rng = np.random.default_rng(0)
    x = rng.normal(size=(experiment.basis.shape[1], 2))
    x *= 1.5 * fitting_scale(experiment, x)
    way, h = rng.normal(size=x.shape), 1e-7
    multipliers = rng.uniform(0, 1, (len(designer.time), len(designer.limits.names)))
    _, gradient = experiment.cost(x, multipliers, 100.0)
    ahead, behind = (experiment.cost(x + side * h * way, multipliers, 100.0)[0] for side in (1, -1))
    difference = (ahead - behind) / (2 * h)
    assert np.sum(gradient * way) == pytest.approx(difference, rel=1e-6)


def test_limits_hold_along_the_motion_of_another_engine(plan):
    """Positions, speeds, torques and set points, at every step of MuJoCo."""
    model = mujoco.MjModel.from_xml_string(xml())
    data = mujoco.MjData(model)
    data.qpos[:] = plan.motion[0, :2]
    held = round((plan.time[1] - plan.time[0]) / STEP)
    assert np.all(np.abs(plan.commands) <= 2)
    for command in np.repeat(plan.commands, max(held, 1), axis=0):
        data.ctrl[:] = command
        mujoco.mj_step(model, data)
        assert np.all(np.abs(data.qpos) <= 2)
        assert np.all(np.abs(data.qvel) <= SPEED * 1.002)
        assert np.all(np.abs(data.actuator_force) <= [40, 20])
    assert plan.usage.max() > 0.9


def test_it_begins_and_ends_at_rest(plan):
    """Commands leave rest and return to it smoothly."""
    np.testing.assert_allclose(plan.commands[[0, -1]], plan.commands[[0]].repeat(2, axis=0), atol=1e-9)
    first = np.abs(np.diff(plan.commands[:3], axis=0)).max()
    assert first < 0.02 * np.abs(np.diff(plan.commands, axis=0)).max()


def test_it_tells_more_than_a_chirp_and_keeps_its_promise(designer, plan):
    """Fits to noisy recordings have the expected intervals, smaller than those after a chirp of full speed."""
    time = designer.time[:, None]
    wave = np.sin(2 * np.pi * (0.3 + 0.4 * time) * time + np.array([0.0, 1.0])) * np.minimum(1, 4 * time)
    chirp = designer.evaluate(designer.scale_into_limits(designer.rest + 0.8 * wave))
    assert chirp.usage.max() > 0.9
    assert chirp.mean_std > 1.5 * plan.mean_std
    fit = identify(designer.model, [played(plan)], FREE)
    stds = [float(e.std) for e in fit.estimates]
    expected = [e.after for e in plan.expected]
    assert np.exp(np.mean(np.log(np.array(stds) / expected))) == pytest.approx(1, abs=0.3)


def test_what_is_known_counts(designer):
    """A prior that says everything leaves nothing to gain."""
    known = designer.with_prior(np.eye(len(FREE) + 2) * 1e12)
    commands = np.tile(designer.rest, (len(designer.time), 1))
    known.sensitivities = designer.sensitivities
    assert max(e.before / e.value for e in known.evaluate(commands).expected) < 1e-5


def test_the_covariance_of_a_fit_counts_without_rounding(designer):
    """Information is the inverse covariance in coordinates; two nearly equal parameters keep their correlation."""
    with jax.enable_x64(True):
        parameters = free(designer.model, ["bodies/lower.mass", "joints/elbow.damping"])
        jacobian = np.asarray(jax.jacfwd(parameters.flat)(jnp.asarray(parameters.start)))
    rho, std = 1 - 1e-5, np.array([0.02, 0.3])
    covariance = np.array([[1.0, rho], [rho, 1.0]]) * np.outer(std, std)
    names = ["joints/shoulder.damping", "bodies/lower.mass", "joints/elbow.damping"]
    whole = np.zeros((3, 3))
    whole[0, 0], whole[1:, 1:] = 0.1, covariance
    found = fitted_information(parameters, FittedCovariance(names, whole))
    np.testing.assert_allclose(found, jacobian.T @ np.linalg.inv(covariance) @ jacobian, rtol=1e-6)
    document = {"covariance": {"names": names, "matrix": whole.tolist()}}
    np.testing.assert_array_equal(fitted_information(parameters, document), found)
    rounded = {
        "parameters": [{"std": x} for x in np.sqrt(np.diag(whole))],
        "correlations": {"names": names, "matrix": [[1, 0, 0], [0, 1, 0.99], [0, 0.99, 1]]},
    }
    stale = covariance.copy()
    stale[0, 1] = stale[1, 0] = 0.99 * np.prod(std)
    old = fitted_information(parameters, rounded)
    np.testing.assert_allclose(old, jacobian.T @ np.linalg.inv(stale) @ jacobian, rtol=1e-6)
    with pytest.raises(TruesimError, match=r"shape \(3, 3\) for 2 numbers"):
        fitted_information(parameters, FittedCovariance(names[1:], whole))


def test_a_fit_is_taken_as_plain_arguments(designer):
    """Values, covariance and noise of a fit reach the designer; noise of the options takes precedence."""
    path = "bodies/lower.mass"
    made = designer_after_fit(
        designer.model,
        [path],
        designer.limits,
        DesignOptions(seconds=2.0, noise={"qpos/elbow": 0.5}),
        values={path: 0.7, "bodies/lower.mass@log": 9.0},
        covariance=FittedCovariance([path], np.array([[1e-6]])),
        noise={"qpos/shoulder": 0.25, "qpos/elbow": 0.1},
    )
    assert float(paths.read(made.model, path)) == 0.7
    assert dict(made.options.noise) == {"qpos/shoulder": 0.25, "qpos/elbow": 0.5}
    before = np.sqrt(np.linalg.inv(made._experiment.prior)[0, 0]) * 0.7
    assert before == pytest.approx(1e-3, rel=1e-4)


def test_one_thread_unless_asked_for_more():
    """Importing and default options take one core."""
    assert DesignOptions().threads == 1
    with pytest.raises(TruesimError, match="threads"):
        DesignOptions(threads=0)


def test_splines_leave_rest_smoothly():
    """Value, derivative and curvature vanish at both ends."""
    time = np.linspace(0, 2, 2001)
    splines = spline_basis(time, 2.0, 0.1)
    second = np.diff(splines, 2, axis=0) / (time[1] - time[0]) ** 2
    assert np.abs(splines[[0, -1]]).max() < 1e-12
    assert np.abs(second[[0, -1]]).max() < 0.02 * np.abs(second).max()
    assert splines.max() == pytest.approx(1, abs=1e-6)


def test_limits_name_what_is_missing_or_wrong():
    """Speeds are needed; names and empty ranges are refused."""
    model = loads(xml())
    with pytest.raises(TruesimError, match="no limit of the speed"):
        Limits.of(model)
    with pytest.raises(TruesimError, match="joint named 'elbo'"):
        Limits.of(model, speeds={"elbo": 1.0})
    with pytest.raises(TruesimError, match="leave nothing"):
        Limits.of(model, speeds={"*": 1.0}, positions={"elbow": (3.0, 4.0)})
    tight = Limits.of(model, speeds={"*": 1.0}, forces={"a1": 5.0})
    assert tight.high[list(tight.names).index("force of a1")] == 5.0
    assert tight.high[list(tight.names).index("force of a2")] == 20.0
    flying = loads('<mujoco><worldbody><body><freejoint/><geom size="0.1"/></body></worldbody></mujoco>')
    with pytest.raises(TruesimError, match="free joint"):
        Limits.of(flying, speeds={"*": 1.0})


def played(plan, seed=0):
    """A noisy recording of a plan, by MuJoCo."""
    model = mujoco.MjModel.from_xml_string(xml())
    data = mujoco.MjData(model)
    data.qpos[:] = plan.motion[0, :2]
    held = round((plan.time[1] - plan.time[0]) / STEP)
    angles = np.empty((len(plan.time), 2))
    for k, command in enumerate(plan.commands):
        angles[k], data.ctrl[:] = data.qpos, command
        for _ in range(held):
            mujoco.mj_step(model, data)
    angles += NOISE * np.random.default_rng(seed).normal(size=angles.shape)
    columns = {"qpos/shoulder": angles[:, 0], "qpos/elbow": angles[:, 1]}
    return Log(plan.time, {**columns, "ctrl/a1": plan.commands[:, 0], "ctrl/a2": plan.commands[:, 1]}, "played")
