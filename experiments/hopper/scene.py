"""The hopper: gymnasium's file, with contact of the foot only, and the task to run."""

import re
from pathlib import Path

import gymnasium
import numpy as np

import truesim as ts
from truesim.control import Command, Cost, JointVelocity, Posture, Task
from truesim.files.robots import loads
from truesim.physics.model.model import Model

STEPS, TIMESTEP, SPEED = 50, 0.02, 2.0
STANDING = np.array([0.0, 1.25, 0.0, 0.0, 0.0, 0.0])


def hopper_xml(timestep: float = TIMESTEP) -> str:
    """MJCF text without pictures, with Euler steps, in which only the foot meets the floor."""
    file = Path(gymnasium.__file__).parent / "envs/mujoco/assets/hopper.xml"
    text = re.sub(r"<asset>.*</asset>", "", file.read_text(encoding="utf-8"), flags=re.DOTALL)
    text = re.sub(r' material="\w+"', "", text)
    changes = {
        'integrator="RK4" timestep="0.002"': f'timestep="{timestep}"',
        'conaffinity="1" condim="1" contype="1"': 'conaffinity="0" condim="3" contype="0"',
        '<geom conaffinity="1" condim="3" name="floor"': '<geom conaffinity="1" contype="0" condim="3" name="floor"',
        'name="foot_geom"': 'name="foot_geom" contype="1" conaffinity="0"',
    }
    for old, new in changes.items():
        assert old in text, f"the file of gymnasium has changed: {old} is missing"
        text = text.replace(old, new)
    return text


def hopper() -> Model:
    """The model."""
    return loads(hopper_xml())


def run_task() -> Task:
    """Run at `SPEED` for a second, with the torso upright and high, from standing."""
    model = hopper()
    simulator = ts.Simulator.of(model, contact=ts.RigidContact.of(model))
    speed = np.eye(model.nv)[0] * SPEED
    costs = {
        "speed": Cost(JointVelocity(speed, joints=("rootx",)), 1.0),
        "torso": Cost(Posture(STANDING, joints=("rootz", "rooty")), np.array([5.0, 1.0])),
        "legs": Cost(Posture(STANDING, joints=("thigh_joint", "leg_joint", "foot_joint")), 0.05),
        "effort": Cost(Command(), 0.01),
    }
    return Task(simulator, STEPS, costs)
