"""Robots to measure on."""

import mujoco

from truesim.formats.load import loads
from truesim.model.model import Model


def serial_arm_xml(joints: int = 7) -> str:
    """A serial arm of hinges that turn about z and y in turn, as MJCF."""
    body = ""
    for i in reversed(range(joints)):
        axis = "0 0 1" if i % 2 == 0 else "0 1 0"
        body = (
            f'<body name="link{i + 1}" pos="0 0 0.2"><joint name="j{i + 1}" axis="{axis}" damping="0.1"/>'
            f'<inertial pos="0.01 0.02 0.1" mass="1" fullinertia="0.01 0.012 0.005 0.0005 0.0003 0.0002"/>{body}</body>'
        )
    motors = "".join(f'<motor joint="j{i + 1}"/>' for i in range(joints))
    return f"<mujoco><worldbody>{body}</worldbody><actuator>{motors}</actuator></mujoco>"


def serial_arm(joints: int = 7) -> Model:
    """The serial arm as our model."""
    return loads(serial_arm_xml(joints))


def serial_arm_mujoco(joints: int = 7) -> mujoco.MjModel:
    """The serial arm as MuJoCo's model."""
    return mujoco.MjModel.from_xml_string(serial_arm_xml(joints))
