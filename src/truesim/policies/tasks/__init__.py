"""Tasks by name, each with the options with which it is learned."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

from truesim.core.errors import TruesimError, unknown_name
from truesim.policies.learners import LEARNERS, LearnerOptions, PpoOptions
from truesim.policies.learners.ars import ArsOptions
from truesim.policies.learners.cloning import CloneOptions
from truesim.policies.learners.distillation import DistillOptions
from truesim.policies.randomization import Randomization
from truesim.policies.task import PolicyTask, with_conditions
from truesim.policies.tasks.acrobot import acrobot_swingup
from truesim.policies.tasks.cart_pole import cart_pole_balance, cart_pole_bias, cart_pole_swingup
from truesim.policies.tasks.differential_drive import drive_command
from truesim.policies.tasks.furuta import furuta_swingup
from truesim.policies.tasks.hopper import hopper_hop
from truesim.policies.tasks.own_quadruped import quadruped_joystick
from truesim.policies.tasks.pendulum import pendulum_swingup
from truesim.policies.tasks.point_mass import point_corners, point_navigation, point_rotation
from truesim.policies.tasks.quadruped import go2_joystick
from truesim.policies.tasks.reacher import arm_reach


@dataclasses.dataclass(frozen=True)
class TaskEntry:
    """A task that can be made by name."""

    make: Callable[..., PolicyTask]
    """From a robot (file or fit; None for the task's own) and a randomization."""
    learner: PpoOptions
    steps: int
    """Control steps of training."""
    longest: int | None = None
    """Control steps up to which training goes on until the trial of the task is passed."""
    has_robot: bool = True
    """False if a robot file must be given."""


_SWINGING = PpoOptions(episodes=512, horizon=32, activation="tanh", normalize=False, entropy=0.01)
_WALKING = PpoOptions(
    episodes=512,
    horizon=16,
    minibatches=2,
    discount=0.97,
    gae=0.93,
    target_kl=0.018,
    entropy=0.003,
    normalize=False,
    critic_sees_parameters=False,  # the task's own privileged terms show them
)
_FOLLOWING = PpoOptions(episodes=256, horizon=32, activation="tanh", normalize=True, discount=0.97, gae=0.93)
TASKS = {
    "pendulum-swingup": TaskEntry(pendulum_swingup, _SWINGING, 2_000_000),
    "cart-pole-balance": TaskEntry(cart_pole_balance, _SWINGING, 2_000_000),
    "cart-pole-bias": TaskEntry(cart_pole_bias, _SWINGING, 2_000_000),
    "cart-pole-swingup": TaskEntry(cart_pole_swingup, _SWINGING, 6_000_000),
    "furuta-swingup": TaskEntry(furuta_swingup, _SWINGING, 8_000_000),
    "acrobot-swingup": TaskEntry(acrobot_swingup, _SWINGING, 6_000_000),
    "arm-reach": TaskEntry(arm_reach, _FOLLOWING, 3_000_000),
    "hopper-hop": TaskEntry(hopper_hop, _FOLLOWING, 3_000_000),
    "drive-command": TaskEntry(drive_command, _FOLLOWING, 600_000),
    "point-navigation": TaskEntry(point_navigation, _FOLLOWING, 500_000),
    "point-corners": TaskEntry(point_corners, _FOLLOWING, 500_000),
    "point-rotation": TaskEntry(point_rotation, _FOLLOWING, 500_000),
    "quadruped-joystick": TaskEntry(quadruped_joystick, _WALKING, 4_500_000, 10_500_000),
    "go2-joystick": TaskEntry(go2_joystick, _WALKING, 4_500_000, 10_500_000, has_robot=False),
}


def find_task(name: str) -> TaskEntry:
    """Entry of a task."""
    if name not in TASKS:
        raise unknown_name("task", name, TASKS)
    return TASKS[name]


def learner_named(
    task: str, name: str | None = None, network: str | None = None, *, source: str | None = None
) -> LearnerOptions:
    """Options with which a task is learned.

    Args:
        task: Name of the task.
        name: Learner of `LEARNERS`; by default the task's own.
        network: Network of the policy; by default the task's own.
        source: What an imitating learner imitates: the folder of a teacher, or recorded episodes.
    """
    own = find_task(task).learner
    if name is not None and name not in LEARNERS:
        raise unknown_name("learner", name, LEARNERS)
    options: LearnerOptions = own
    if name is not None and not isinstance(own, LEARNERS[name]):
        options = _other_learner(name, own, source or "")
    elif source:
        raise TruesimError(f"The learner {name or 'ppo'} imitates nothing; --learner distill or clone does.")
    return options if network is None else dataclasses.replace(options, network=network)


def _other_learner(name: str, own: PpoOptions, source: str) -> LearnerOptions:
    """Options of a learner that is not the task's own, with the network of the task's own."""
    if name == "ars":
        return ArsOptions()  # a linear policy, whatever the task has
    if name == "distill":
        return DistillOptions(teacher=source, hidden=own.hidden, activation=own.activation)
    if name == "clone":
        return CloneOptions(demonstrations=source, hidden=own.hidden, activation=own.activation)
    return LEARNERS[name](hidden=own.hidden, activation=own.activation, normalize=own.normalize)


def make_task(name: str, robot: str | Path | None = None, randomization: Randomization | None = None) -> PolicyTask:
    """Task of this name.

    Args:
        name: Such as `cart-pole-swingup`; `TASKS` has all.
        robot: Robot file or folder of a fit; the task's own robot by default.
        randomization: Parameters that differ between episodes, besides those of the task itself.
    """
    entry = find_task(name)
    if robot is None and not entry.has_robot:
        raise TruesimError(f"The task {name} needs a robot file, such as unitree_go2/scene.xml of MuJoCo Menagerie.")
    return with_conditions(entry.make(robot, randomization))
