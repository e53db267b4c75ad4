"""Rigid contact in single precision: tolerances are those that its rounding allows, and nearly all steps converge."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np

from truesim import native
from truesim.core.precision import float32, float64
from truesim.files.robots.load import loads
from truesim.math.interior_point.solver import ACCEPTED_BALANCE, accepted_balance, least_barrier, of_precision
from truesim.physics.contact.models.rigid import MIN_SMOOTHING, RigidContact
from truesim.physics.simulation import Simulator

BOX = """<mujoco><option timestep="0.005"/><worldbody><geom name="floor" type="plane" size="0 0 1"/>
<body pos="0 0 0.1"><freejoint/><geom type="box" size=".1 .08 .05" mass="0.5"/></body></worldbody></mujoco>"""
BATCH, STEPS = 16, 120


def compiled():
    """One step of the simulator as native code, in the precision of the scope, and its first state."""
    model = loads(BOX)
    simulator = Simulator.of(model, contact=RigidContact.of(model))

    def step(state):
        after, info = simulator.step(state, jnp.zeros(0))
        return after, info.contact.converged

    state = simulator.initial_state()
    return native.compile(step, state), jax.tree.map(lambda x: np.repeat(np.asarray(x)[None], BATCH, 0), state)


def test_tolerances_of_double_precision_are_as_they_were():
    double = np.dtype(np.float64)
    assert of_precision(1e-14, double) == 1e-14
    assert accepted_balance(double) == ACCEPTED_BALANCE
    assert least_barrier(double) < 1e-3 * MIN_SMOOTHING


def test_thrown_boxes_converge_in_single_precision():
    """99 % of the steps (55 % with the tolerances of double precision), near those of double precision one by one."""
    rng = np.random.default_rng(0)
    with float64():
        step, state = compiled()
        state = dataclasses.replace(state, v=2.0 * rng.standard_normal(state.v.shape))
        states = [state]
        for _ in range(STEPS):
            states.append(step(states[-1])[0])
    errors, converged = [], []
    with float32():
        step, _ = compiled()
        for before, after in itertools.pairwise(states):
            single = jax.tree.map(lambda x: x.astype(np.float32) if x.dtype == np.float64 else x, before)
            ours, fine = step(single)
            errors.append(np.abs(ours.v - after.v).max(1))
            converged.append(fine)
    assert np.mean(converged) > 0.99
    assert np.median(errors) < 1e-4
    assert np.quantile(errors, 0.95) < 0.02
