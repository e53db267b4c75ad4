"""Random robots: hypothesis draws the structure, so that it can shrink; a seeded generator draws the numbers."""

import dataclasses

import mujoco
import numpy as np
from hypothesis import strategies as st

from truesim.files.robots.compiled import from_compiled
from truesim.physics.model.model import Model

MOVING = (
    ("hinge",),
    ("slide",),
    ("ball",),
    ("hinge", "hinge"),
    ("slide", "hinge"),
    ("hinge", "slide"),
    ("slide", "ball"),
    ("hinge", "ball"),
    ("slide", "slide", "hinge"),
)
"""Joints of one body, in the order in which MuJoCo allows them (nothing may turn after a ball joint)."""
WELDED: tuple[str, ...] = ()
FLOATING = ("free",)


@dataclasses.dataclass(frozen=True)
class Skeleton:
    """Structure of a tree: who hangs on whom, by which joints."""

    parents: tuple[int, ...]
    """Parent of each body; -1 is the world."""
    joints: tuple[tuple[str, ...], ...]


@st.composite
def skeletons(draw, *, largest: int = 5, floating: bool | None = None) -> Skeleton:
    """Trees of one to `largest` bodies; with `floating`, one that hangs on nothing but a free joint."""
    count = draw(st.integers(1, largest))
    parents, joints = [], []
    for i in range(count):
        alone = floating is True
        parents.append(draw(st.integers(0 if alone and i else -1, i - 1)) if i else -1)
        if parents[i] < 0 and floating is not False:
            choices = (FLOATING,) if alone else (FLOATING, *MOVING)
        else:
            choices = (*MOVING, WELDED)
        joints.append(draw(st.sampled_from(choices)))
    if not any(joints):
        joints[-1] = ("hinge",)
    return Skeleton(tuple(parents), tuple(joints))


seeds = st.integers(0, 2**31 - 1)


def _text(*numbers) -> str:
    return " ".join(repr(float(x)) for x in np.ravel(numbers))


def _inertial(rng: np.random.Generator) -> str:
    """Inertia of six point masses: always physical, anywhere, any orientation."""
    points, mass = rng.normal(size=(6, 3)) * 0.2, rng.uniform(0.2, 2, 6)
    center = mass @ points / mass.sum()
    arms = points - center
    full = sum(m * ((r @ r) * np.eye(3) - np.outer(r, r)) for m, r in zip(mass, arms, strict=True))
    place = f'pos="{_text(center)}" mass="{_text(mass.sum())}"'
    if rng.random() < 0.5:
        six = [full[0, 0], full[1, 1], full[2, 2], full[0, 1], full[0, 2], full[1, 2]]
        return f'<inertial {place} fullinertia="{_text(six)}"/>'
    return f'<inertial {place} quat="{_text(rng.normal(size=4))}" diaginertia="{_text(np.linalg.eigvalsh(full))}"/>'


def mjcf(skeleton: Skeleton, seed: int, *, gravity: bool = True, armature: bool = True, extra: str = "") -> str:
    """An MJCF file with this structure and random numbers, everything but the rigid bodies switched off."""
    rng = np.random.default_rng(seed)

    def joint(kind: str) -> str:
        rotor = f'armature="{_text(rng.uniform(0, 0.3) * armature)}"'
        place, axis = f'pos="{_text(rng.normal(size=3) * 0.3)}"', f'axis="{_text(rng.normal(size=3))}"'
        if kind == "free":
            return f'<joint type="free" {rotor if rng.random() < 0.5 else ""}/>'
        if kind == "ball":
            return f'<joint type="ball" {place} {rotor}/>'
        return f'<joint type="{kind}" {place} {axis} ref="{_text(rng.normal())}" {rotor}/>'

    def body(i: int) -> str:
        frame = f'pos="{_text(rng.normal(size=3) * 0.5)}" quat="{_text(rng.normal(size=4))}"'
        parts = [_inertial(rng), *(joint(kind) for kind in skeleton.joints[i])]
        parts += [body(k) for k, parent in enumerate(skeleton.parents) if parent == i]
        return f'<body name="b{i}" {frame}>{"".join(parts)}</body>'

    bodies = "".join(body(k) for k, parent in enumerate(skeleton.parents) if parent < 0)
    pull = _text(rng.normal(size=3) * 9.81) if gravity else "0 0 0"
    return (
        f'<mujoco><compiler angle="radian"/><option gravity="{pull}"><flag constraint="disable" energy="enable"/>'
        f"</option><worldbody>{bodies}</worldbody>{extra}</mujoco>"
    )


def tree(skeleton: Skeleton, seed: int, **options) -> tuple[mujoco.MjModel, Model]:
    """The tree as MuJoCo compiles it, and ours."""
    m = mujoco.MjModel.from_xml_string(mjcf(skeleton, seed, **options))
    return m, from_compiled(m, None)


def random_configuration(m: mujoco.MjModel, rng: np.random.Generator) -> np.ndarray:
    """A configuration up to 2 rad or 2 m away from where the file draws the robot, any orientation."""
    q = m.qpos0 + rng.uniform(-2, 2, m.nq)
    for kind, start in zip(map(mujoco.mjtJoint, m.jnt_type), m.jnt_qposadr, strict=True):
        if kind in (mujoco.mjtJoint.mjJNT_FREE, mujoco.mjtJoint.mjJNT_BALL):
            start += 3 * (kind == mujoco.mjtJoint.mjJNT_FREE)
            q[start : start + 4] = rng.normal(size=4)
            q[start : start + 4] /= np.linalg.norm(q[start : start + 4])
    return q
