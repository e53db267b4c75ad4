"""Robots of the benchmarks."""

import importlib.util
from pathlib import Path

import mujoco

from truesim.core.errors import TruesimError

ARM_LENGTH, ARM_MASS, ARM_DAMPING = 0.2, 1.0, 0.1
"""Distance between the joints of the serial arm [m], mass of a link [kg], damping of a joint [N m s/rad]."""
ARM_COM = (0.01, 0.02, 0.1)
"""Center of mass of a link [m]."""
ARM_INERTIA = ((0.01, 0.0005, 0.0003), (0.0005, 0.012, 0.0002), (0.0003, 0.0002, 0.005))
"""Inertia of a link about its center of mass [kg m^2]."""


def serial_arm_xml(joints: int = 7) -> str:
    """A serial arm with hinge axes alternating between z and y, as MJCF."""
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = ARM_INERTIA
    center = " ".join(map(str, ARM_COM))
    inertial = f'<inertial pos="{center}" mass="{ARM_MASS}" fullinertia="{xx} {yy} {zz} {xy} {xz} {yz}"/>'
    body = ""
    for i in reversed(range(joints)):
        axis = "0 0 1" if i % 2 == 0 else "0 1 0"
        body = (
            f'<body name="link{i + 1}" pos="0 0 {ARM_LENGTH}">'
            f'<joint name="j{i + 1}" axis="{axis}" damping="{ARM_DAMPING}"/>{inertial}{body}</body>'
        )
    motors = "".join(f'<motor joint="j{i + 1}"/>' for i in range(joints))
    return f"<mujoco><worldbody>{body}</worldbody><actuator>{motors}</actuator></mujoco>"


def _leg(name: str, x: float, y: float) -> str:
    side = 0.08 if y > 0 else -0.08
    return f"""
    <body name="{name}_hip" pos="{x} {y} 0"><joint name="{name}1" axis="1 0 0" damping="0.1"/>
      <inertial pos="0 {side / 2} 0" mass="0.7" diaginertia="0.0005 0.0008 0.0005"/>
      <body name="{name}_thigh" pos="0 {side} 0"><joint name="{name}2" axis="0 1 0" damping="0.1"/>
        <inertial pos="0 0 -0.1" mass="1.0" diaginertia="0.005 0.005 0.001"/>
        <body name="{name}_shank" pos="0 0 -0.2"><joint name="{name}3" axis="0 1 0" damping="0.1"/>
          <inertial pos="0 0 -0.1" mass="0.2" diaginertia="0.002 0.002 0.0001"/>
          {{foot}}
        </body></body></body>"""


def quadruped_xml(contact: bool = False) -> str:
    """A quadruped of twelve joints with a free base, as MJCF; with contact, it stands on a plane on spherical feet.

    With contact the motors have rotor inertia: without it, rounding in float32 causes errors above 1e-5 in the
    accelerations of the light shanks.
    """
    corners = {"fl": (0.2, 0.1), "fr": (0.2, -0.1), "hl": (-0.2, 0.1), "hr": (-0.2, -0.1)}
    foot = '<geom type="sphere" size="0.03" pos="0 0 -0.2" mass="0.05"/>' if contact else ""
    legs = "".join(_leg(name, *place) for name, place in corners.items()).replace("{foot}", foot)
    motors = "".join(f'<motor joint="{name}{k}"/>' for name in corners for k in (1, 2, 3))
    floor = '<geom type="plane" size="5 5 0.1"/>' if contact else ""
    defaults = '<default><joint armature="0.01"/></default>' if contact else ""
    return f"""<mujoco><option timestep="0.002"/>{defaults}<worldbody>{floor}
    <body name="trunk" pos="0 0 0.43"><freejoint/>
      <inertial pos="0 0 0" mass="6" diaginertia="0.03 0.1 0.11"/>{legs}</body>
    </worldbody><actuator>{motors}</actuator></mujoco>"""


CROUCH = (0.0, 0.6, -1.2)
"""Angles of a leg of the standing quadruped [rad]."""


def standing_quadruped_xml() -> str:
    """The quadruped on four feet in a crouch, held by stiff servos; its feet may also touch each other."""
    text = quadruped_xml(contact=True).replace("<motor ", '<position kp="400" kv="8" ')
    return text.replace("<option ", '<option integrator="implicitfast" ')


def chain_xml(links: int = 10) -> str:
    """The scene of lcp-physics: a ball hits a hanging chain of bars, all in a plane, in its units of pixels.

    Bars of 20 by 60 and mass 0.7 hang at distances of 50; the ball of radius 20 bounces elastically.
    """
    body = ""
    for i in reversed(range(links)):
        place = "300 0 -30" if i == 0 else f"0 0 {-45 if i == 1 else -50}"
        center = -20 if i == 0 else -25
        body = (
            f'<body name="link{i}" pos="{place}"><joint axis="0 1 0"/>'
            f'<geom name="link{i}" type="box" pos="0 0 {center}" size="10 10 30" mass="0.7" contype="2"/>{body}</body>'
        )
    return f"""<mujoco><option timestep="{1 / 30}" gravity="0 0 -100"/><worldbody>{body}
    <body name="ball" pos="50 0 -500"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>
      <joint axis="0 1 0"/><geom name="ball" size="20" mass="1" conaffinity="2"/></body></worldbody></mujoco>"""


def cube_xml() -> str:
    """A cube on a plane, as MJCF."""
    return """<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="5 5 0.1"/>
    <body pos="0 0 0.1"><freejoint/><geom type="box" size="0.1 0.1 0.1" mass="1"/></body></worldbody></mujoco>"""


def humanoid_xml() -> str:
    """The humanoid of gymnasium, constraints off, Euler integration, as MJCF."""
    package = importlib.util.find_spec("gymnasium")
    if package is None or package.origin is None:
        raise TruesimError("gymnasium, which has the humanoid, is not installed: pip install 'truesim[bench]'")
    path = Path(package.origin).parent / "envs" / "mujoco" / "assets" / "humanoid.xml"
    spec = mujoco.MjSpec.from_file(str(path))
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_EULER
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    return spec.to_xml()
