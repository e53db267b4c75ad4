"""Write the quantities of a `Model` into MuJoCo's compiled model, the inverse of `compiled`."""

from collections.abc import Callable, Iterable

import mujoco
import numpy as np

from truesim.core.errors import TruesimError
from truesim.files.robots.findings import Collector
from truesim.files.robots.frames import full_inertia
from truesim.files.robots.messages import collect_warnings, errors_as_sentences
from truesim.files.robots.mjcf import compile_mjcf
from truesim.files.robots.supported import simulated_actuators
from truesim.files.robots.urdf import build, compile_readable
from truesim.physics.model import paths
from truesim.physics.model.actuators import AFFINE
from truesim.physics.model.model import Model

Writer = Callable[[mujoco.MjModel, int, np.ndarray], None]


def compiled_model(model: Model) -> mujoco.MjModel:
    """MuJoCo's compiled model of a model's source file, with the model's values."""
    source = model.source
    if source is None:
        raise TruesimError("This model did not come from a file or text, so MuJoCo cannot compile it.")
    if source.format == "mjcf":
        _, compiled, _ = compile_mjcf(source.text, source.path)
    else:
        with collect_warnings([]), errors_as_sentences(source.path):
            compiled = compile_readable(build(source.text, source).spec, Collector())
    pairs = zip(model.actuators.names, model.actuators.models, strict=True)
    other = [name for name, kind in pairs if kind != AFFINE]
    if other:
        raise TruesimError(f"MuJoCo does not have the actuator model of {other[0]!r}; use truesim's own engine.")
    return write_values(compiled, model, (p for p in paths.paths(model) if (p.group, p.field) in WRITERS))


def write_values(compiled: mujoco.MjModel, model: Model, changed: Iterable[paths.Path]) -> mujoco.MjModel:
    """Write the model's values at these paths into a compiled model, in place."""
    for path in changed:
        check_writable(path)
        value = np.asarray(paths.read(model, path), float)
        WRITERS[(path.group, path.field)](compiled, path.index or 0, value)
    mujoco.mj_setConst(compiled, mujoco.MjData(compiled))
    return compiled


def check_writable(path: paths.Path) -> None:
    """Refuse a path that MuJoCo's compiled model has no field for."""
    if (path.group, path.field) not in WRITERS:
        held = ", ".join(sorted(f"{group}/….{field}" if group else field for group, field in WRITERS))
        raise TruesimError(f"MuJoCo has no place for {path}; it has {held}.")


def _inertia(m: mujoco.MjModel, i: int, value: np.ndarray) -> None:
    """Write principal moments and axes."""
    moments, axes = np.linalg.eigh(full_inertia(value))
    axes[:, 2] *= np.sign(np.linalg.det(axes))
    m.body_inertia[i + 1] = moments
    mujoco.mju_mat2Quat(m.body_iquat[i + 1], np.ascontiguousarray(axes).ravel())


def _field(name: str, first: int = 0) -> Writer:
    """Writer of a row of one of MuJoCo's arrays."""

    def write(m: mujoco.MjModel, i: int, value: np.ndarray) -> None:
        getattr(m, name)[i + first] = value

    return write


def _all_dofs(name: str) -> Writer:
    """Writer of one number to all degrees of freedom of a joint."""

    def write(m: mujoco.MjModel, i: int, value: np.ndarray) -> None:
        last = m.jnt_dofadr[i + 1] if i + 1 < m.njnt else m.nv
        getattr(m, name)[m.jnt_dofadr[i] : last] = value

    return write


def _spring_rest(m: mujoco.MjModel, i: int, value: np.ndarray) -> None:
    if m.jnt_type[i] in (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE):
        m.qpos_spring[m.jnt_qposadr[i]] = value


def _actuator(name: str, columns: slice | int, of_type: tuple[str, int] | None = None) -> Writer:
    """Writer of some columns of an actuator's row, if the actuator has a type with them."""

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
    **{("joints", field): _all_dofs(f"dof_{field}") for field in ("damping", "frictionloss", "armature")},
    ("actuators", "gain"): _actuator("actuator_gainprm", 0),
    ("actuators", "gain_slope"): _actuator(
        "actuator_gainprm", slice(1, 3), ("actuator_gaintype", int(mujoco.mjtGain.mjGAIN_AFFINE))
    ),
    ("actuators", "bias"): _actuator(
        "actuator_biasprm", slice(0, 3), ("actuator_biastype", int(mujoco.mjtBias.mjBIAS_AFFINE))
    ),
    **{
        ("geoms", field): _field(f"geom_{field}")
        for field in ("friction", "solref", "solimp", "solmix", "margin", "gap")
    },
    ("joints", "solreflimit"): _field("jnt_solref"),
    ("joints", "solimplimit"): _field("jnt_solimp"),
    ("joints", "solreffriction"): _all_dofs("dof_solref"),
    ("joints", "solimpfriction"): _all_dofs("dof_solimp"),
    ("sites", "position"): _field("site_pos"),
    ("sites", "orientation"): _field("site_quat"),
    (None, "gravity"): _gravity,
}
"""Writer of each field, by group and field."""
