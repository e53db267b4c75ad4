"""Numbers of our model into MuJoCo's compiled model: the other way round than `compiled`."""

from collections.abc import Callable, Iterable

import mujoco
import numpy as np

from truesim.core.errors import TruesimError
from truesim.formats.findings import Collector
from truesim.formats.frames import full_inertia
from truesim.formats.messages import errors_as_sentences, listening
from truesim.formats.mjcf import compile_mjcf
from truesim.formats.supported import simulated_actuators
from truesim.formats.urdf import build, compile_readable
from truesim.model import paths
from truesim.model.actuators import AFFINE
from truesim.model.model import Model

Writer = Callable[[mujoco.MjModel, int, np.ndarray], None]


def compiled_model(model: Model) -> mujoco.MjModel:
    """MuJoCo's compiled model of the file that a model came from, with the model's numbers."""
    source = model.source
    if source is None:
        raise TruesimError("This model did not come from a file or text, so MuJoCo cannot compile it.")
    if source.format == "mjcf":
        _, compiled, _ = compile_mjcf(source.text, source.path)
    else:
        with listening([]), errors_as_sentences(source.path):
            compiled = compile_readable(build(source.text, source.path, source.floating_base).spec, Collector())
    other = [name for name, law in zip(model.actuators.names, model.actuators.laws, strict=True) if law != AFFINE]
    if other:
        raise TruesimError(f"MuJoCo does not have the law of actuator {other[0]!r}; use our own engine.")
    return with_numbers(compiled, model, (p for p in paths.paths(model) if (p.group, p.field) in WRITERS))


def with_numbers(compiled: mujoco.MjModel, model: Model, changed: Iterable[paths.Path]) -> mujoco.MjModel:
    """The compiled model, changed in place, with the model's numbers at these paths."""
    for path in changed:
        check_held(path)
        value = np.asarray(paths.read(model, path), float)
        WRITERS[(path.group, path.field)](compiled, path.index or 0, value)
    mujoco.mj_setConst(compiled, mujoco.MjData(compiled))
    return compiled


def check_held(path: paths.Path) -> None:
    """Refuses a path that MuJoCo's compiled model has no place for."""
    if (path.group, path.field) not in WRITERS:
        held = ", ".join(sorted(f"{group}/….{field}" if group else field for group, field in WRITERS))
        raise TruesimError(f"MuJoCo has no place for {path}; it has {held}.")


def _inertia(m: mujoco.MjModel, i: int, value: np.ndarray) -> None:
    """Principal moments and axes."""
    moments, axes = np.linalg.eigh(full_inertia(value))
    axes[:, 2] *= np.sign(np.linalg.det(axes))
    m.body_inertia[i + 1] = moments
    mujoco.mju_mat2Quat(m.body_iquat[i + 1], np.ascontiguousarray(axes).ravel())


def _field(name: str, first: int = 0) -> Writer:
    """Writes to a row of one of MuJoCo's arrays."""

    def write(m: mujoco.MjModel, i: int, value: np.ndarray) -> None:
        getattr(m, name)[i + first] = value

    return write


def _freedoms(name: str) -> Writer:
    """Writes the same number to all freedoms of a joint."""

    def write(m: mujoco.MjModel, i: int, value: np.ndarray) -> None:
        last = m.jnt_dofadr[i + 1] if i + 1 < m.njnt else m.nv
        getattr(m, name)[m.jnt_dofadr[i] : last] = value

    return write


def _spring_rest(m: mujoco.MjModel, i: int, value: np.ndarray) -> None:
    if m.jnt_type[i] in (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE):
        m.qpos_spring[m.jnt_qposadr[i]] = value


def _actuator(name: str, columns: slice | int, of_type: tuple[str, int] | None = None) -> Writer:
    """Writes to some columns of an actuator's row, if the actuator is of a type that has them."""

    def write(m: mujoco.MjModel, i: int, value: np.ndarray) -> None:
        own = simulated_actuators(m)[i]
        if of_type is None or getattr(m, of_type[0])[own] == of_type[1]:
            getattr(m, name)[own, columns] = value

    return write


def _gravity(m: mujoco.MjModel, i: int, value: np.ndarray) -> None:
    m.opt.gravity[:] = value


WRITERS: dict[tuple[str | None, str], Writer] = {
    ("bodies", "mass"): _field("body_mass", 1),
    ("bodies", "com"): _field("body_ipos", 1),
    ("bodies", "inertia"): _inertia,
    ("bodies", "position"): _field("body_pos", 1),
    ("bodies", "orientation"): _field("body_quat", 1),
    ("joints", "axis"): _field("jnt_axis"),
    ("joints", "position"): _field("jnt_pos"),
    ("joints", "range"): _field("jnt_range"),
    ("joints", "stiffness"): _field("jnt_stiffness"),
    ("joints", "springref"): _spring_rest,
    **{("joints", field): _freedoms(f"dof_{field}") for field in ("damping", "frictionloss", "armature")},
    ("actuators", "gain"): _actuator("actuator_gainprm", 0),
    ("actuators", "gain_slope"): _actuator(
        "actuator_gainprm", slice(1, 3), ("actuator_gaintype", mujoco.mjtGain.mjGAIN_AFFINE)
    ),
    ("actuators", "bias"): _actuator(
        "actuator_biasprm", slice(0, 3), ("actuator_biastype", mujoco.mjtBias.mjBIAS_AFFINE)
    ),
    ("geoms", "friction"): _field("geom_friction"),
    ("sites", "position"): _field("site_pos"),
    ("sites", "orientation"): _field("site_quat"),
    (None, "gravity"): _gravity,
}
"""How each kind of number is written."""
