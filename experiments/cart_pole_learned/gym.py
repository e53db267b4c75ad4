"""CartPole-v1 of gymnasium: masses and length from one random episode, then predictive control."""

import gymnasium
import numpy as np

from experiments.cart_pole_learned.scene import Fitter
from truesim.bridges.gymnasium import GymnasiumPlant
from truesim.control import Command, Cost, JointVelocity, Posture, PredictiveController, Task, run_closed_loop
from truesim.files.robots import loads
from truesim.physics.simulation import Simulator

XML = """
<mujoco><compiler angle="radian"/><option timestep="0.02"><flag contact="disable"/></option><worldbody>
  <body name="cart"><joint name="slide" type="slide" axis="1 0 0"/>
    <inertial pos="0 0 0" mass="{}" diaginertia=".1 .1 .1"/>
    <body name="pole"><joint name="hinge" axis="0 1 0"/>
      <inertial pos="0 0 {}" mass="{}" diaginertia="1e-3 1e-3 1e-3"/></body></body></worldbody>
<actuator><motor name="push" joint="slide" ctrlrange="-10 10" ctrllimited="true"/></actuator></mujoco>"""
FORCE = 10.0


def state_of(observation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Configuration and velocity; the environment's angle is zero upright."""
    x, dx, angle, rate = np.asarray(observation, float)
    return np.array([x, angle + np.pi]), np.array([dx, rate])


class Pulses:
    """Forces as pushes to the left and right, whose mean follows the command."""

    def __init__(self) -> None:
        self.missing = 0.0

    def __call__(self, command: np.ndarray) -> int:
        """0 for left, 1 for right."""
        self.missing += float(command[0])
        right = self.missing > 0
        self.missing -= FORCE if right else -FORCE
        return int(right)


def random_episode(env: gymnasium.Env, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """States and forces of one episode of random pushes."""
    rng = np.random.default_rng(seed)
    observation, _ = env.reset(seed=seed)
    states, forces, ended = [np.concatenate(state_of(observation))], [], False
    while not ended:
        action = int(rng.integers(2))
        observation, _, terminated, truncated, _ = env.step(action)
        states.append(np.concatenate(state_of(observation)))
        forces.append([FORCE if action else -FORCE])
        ended = terminated or truncated
    return np.array(states), np.array(forces)


def gymnasium_reward(seed: int) -> float:
    """Reward of CartPole-v1 under a controller whose model was fitted to one random episode."""
    env = gymnasium.make("CartPole-v1")
    states, forces = random_episode(env, seed)
    cart, pole, com = Fitter(np.array([1.5, 0.15, -0.3])).fit(states, forces, np.full(4, 1e-2))
    simulator = Simulator.of(loads(XML.format(cart, com, pole)))
    up = [0.0, np.pi]
    costs = {
        "effort": Cost(Command(), 1e-3),
        "state": Cost(Posture(up), [1.0, 10.0]),
        "velocity": Cost(JointVelocity(), 0.1),
    }
    task = Task(simulator, 40, costs, start=simulator.initial_state(q=np.array(up)))
    plant = GymnasiumPlant(env, state_of, period=0.02, action_of=Pulses(), seed=1000 + seed)
    run_closed_loop(PredictiveController(task), plant, 500)
    return plant.reward
