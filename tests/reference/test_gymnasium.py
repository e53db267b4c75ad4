"""Dynamics of the robots of gymnasium against MuJoCo and Pinocchio, field by field."""

import mujoco
import numpy as np
import pytest

from tests.evaluation import compiled
from tests.random_trees import random_configuration
from tests.reference.gymnasium_models import NAMES, gymnasium_model
from tests.reference.mujoco_fields import our_fields, without_forces
from tests.reference.peers import assert_agrees_with_both
from truesim.files.robots.compiled import from_compiled
from truesim.physics.simulation import Simulator


def test_all_models_are_found():
    """The list is not empty: gymnasium ships fourteen files."""
    assert len(NAMES) >= 14


def unconstrained(name: str) -> mujoco.MjModel:
    """The model with its constraints switched off."""
    m = gymnasium_model(name)
    m.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    return m


def everything(simulator, q, v, tau, external, command):
    """Rigid-body fields, and the forces of springs, dampers and actuators with the acceleration they cause."""
    equation = simulator.equation(command)
    fields = our_fields(simulator.model, q, v, tau, external)
    return {**fields, "applied forces": equation.applied(q, v), "motion": equation.acceleration(q, v)}


def with_forces(m, q, v, command):
    """MuJoCo's forces of springs, dampers and actuators, and the acceleration they cause."""
    d = mujoco.MjData(m)
    d.qpos, d.qvel, d.ctrl = q, v, command
    mujoco.mj_forward(m, d)
    return {"applied forces": d.qfrc_passive + d.qfrc_actuator, "motion": d.qacc}


@pytest.mark.parametrize("name", NAMES)
def test_every_field_agrees(name):
    """Kinematics, forces and accelerations at random states are MuJoCo's and Pinocchio's, without constraints."""
    m, bare = unconstrained(name), without_forces(gymnasium_model(name))
    simulator, ours = Simulator.of(from_compiled(m, None)), None
    for seed in range(3):
        rng = np.random.default_rng(seed)
        state = (random_configuration(m, rng), rng.normal(size=m.nv), rng.normal(size=m.nv) * 5)
        inputs, command = (*state, rng.normal(size=(m.nbody - 1, 6))), rng.normal(size=m.nu)
        ours = ours or compiled(everything, simulator, *inputs, command)
        found = ours(simulator, *inputs, command)
        assert_agrees_with_both(found, bare, simulator.model, inputs, **with_forces(m, *state[:2], command))
