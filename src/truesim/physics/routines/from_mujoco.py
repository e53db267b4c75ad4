"""Tables of a compiled `mujoco.MjModel`."""

from collections.abc import Iterator, Sequence

import mujoco
import numpy as np

from truesim.core.errors import TruesimError
from truesim.physics.routines.layout import EULER, IMPLICIT, IMPLICITFAST, PARAMETERS, RK4, STRUCTURE
from truesim.physics.routines.tables import StepTables

_Disable = mujoco.mjtDisableBit
_JOINT_TRANSMISSIONS = [int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT)]
Rows = tuple[Sequence[int], Sequence[int], Sequence[int]]
"""Actuators, tendons and equalities, each in increasing order."""
_SCALAR_JOINTS = {int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE)}


def from_mujoco(m: mujoco.MjModel, rows: Rows | None = None) -> StepTables:
    """Tables of a model.

    Raises `TruesimError` with a list where something that moves the robot is not supported.

    Args:
        m: The model.
        rows: Simulate these actuators, tendons and equalities alone, without anything that `Model` leaves out of a
            file: fluids, activation dynamics, no-slip iterations, other solvers than Newton's.
    """
    actuators, tendons, equalities = rows or (range(m.nu), range(m.ntendon), range(m.neq))
    missing = [*_unsupported(m, actuators), *(() if rows else _left_out(m))]
    if missing:
        raise TruesimError(f"the table-driven step does not support {'; '.join(missing)}")
    structure = {name: np.asarray(getattr(m, name), np.int64) for name in STRUCTURE if hasattr(m, name)}
    parameters = {name: np.asarray(getattr(m, name), float) for name in PARAMETERS if hasattr(m, name)}
    structure |= {
        "jnt_springy": (m.jnt_stiffness > 0).astype(np.int64),
        "dof_frictional": ((m.dof_frictionloss > 0) & (not _disabled(m, _Disable.mjDSBL_FRICTIONLOSS))).astype(
            np.int64
        ),
        "tendon_frictional": ((m.tendon_frictionloss > 0) & (not _disabled(m, _Disable.mjDSBL_FRICTIONLOSS))).astype(
            np.int64
        ),
    }
    if _disabled(m, _Disable.mjDSBL_LIMIT):
        structure |= {"jnt_limited": 0 * structure["jnt_limited"], "tendon_limited": 0 * structure["tendon_limited"]}
    parameters["body_inertia"] = _inertias(m)
    of_tendons = [name for name in (*structure, *parameters) if name.startswith("tendon_")]
    for name in of_tendons:
        group = structure if name in STRUCTURE else parameters
        group[name] = group[name][list(tendons)]
    for tables in (
        _pairs(m),
        _equalities(m, equalities, tendons),
        _tendons(m, tendons),
        _actuators(m, actuators, tendons),
    ):
        for name, values in tables.items():
            (structure if name in STRUCTURE else parameters)[name] = values
    limited = m.jnt_actfrclimited[m.dof_jntid].astype(bool)[:, None]
    parameters["dof_actfrcrange"] = np.where(limited, m.jnt_actfrcrange[m.dof_jntid], [-np.inf, np.inf])
    o = m.opt
    for name in ("timestep", "impratio", "tolerance", "ls_tolerance"):
        parameters[name] = np.array([getattr(o, name)])
    parameters["gravity"] = np.array(o.gravity) * (not _disabled(m, _Disable.mjDSBL_GRAVITY))
    return StepTables(_sizes(m, structure), structure, parameters)


def _inertias(m: mujoco.MjModel) -> np.ndarray:
    """Inertia of every body along the axes of its frame: xx, yy, zz, xy, xz, yz."""
    R = np.zeros((m.nbody, 9))
    for nine, quaternion in zip(R, m.body_iquat, strict=True):
        mujoco.mju_quat2Mat(nine, quaternion)
    R = R.reshape(-1, 3, 3)
    full = np.einsum("bij,bj,bkj->bik", R, m.body_inertia, R)
    return full[:, [0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]


def _sizes(m: mujoco.MjModel, structure: dict[str, np.ndarray]) -> dict[str, int]:
    is_damped = bool(m.dof_damping.any()) and not _disabled(m, _Disable.mjDSBL_EULERDAMP)
    o = m.opt
    return {
        **{name: int(getattr(m, name)) for name in ("nq", "nv", "nbody", "njnt", "ngeom")},
        "nu": len(structure["actuator_trnid"]),
        "ntendon": len(structure["tendon_adr"]),
        "npair": len(structure["pair_geom1"]),
        "neq": len(structure["eq_type"]),
        "nwrap": len(structure["wrap_jntid"]),
        "cone": int(o.cone),
        "integrator": int(o.integrator),
        "iterations": int(o.iterations),
        "ls_iterations": int(o.ls_iterations),
        "refsafe": int(not _disabled(m, _Disable.mjDSBL_REFSAFE)),
        "implicit_damping": int(is_damped if o.integrator == EULER else o.integrator != RK4),
        "warm": int(not _disabled(m, _Disable.mjDSBL_WARMSTART)),
        "islands": int(not _disabled(m, _Disable.mjDSBL_ISLAND)),
        "actuation": int(m.nu > 0 and not _disabled(m, _Disable.mjDSBL_ACTUATION)),
    }


def _disabled(m: mujoco.MjModel, flag: mujoco.mjtDisableBit) -> bool:
    return bool(m.opt.disableflags & flag)


def _left_out(m: mujoco.MjModel) -> Iterator[str]:
    """Features that neither the routines nor a `Model` have, as phrases."""
    o = m.opt
    if o.solver != mujoco.mjtSolver.mjSOL_NEWTON:
        yield f"solver {mujoco.mjtSolver(o.solver).name}"
    if m.nmocap:
        yield "mocap bodies"
    if m.na:
        yield "activation dynamics"
    if m.nplugin:
        yield "plugins"
    if o.density or o.viscosity or np.any(o.wind):
        yield "fluid forces"
    if o.noslip_iterations:
        yield "the no-slip solver"
    if any(m.wrap_type[a] != mujoco.mjtWrap.mjWRAP_JOINT for a in m.tendon_adr):
        yield "spatial tendons"
    if not set(m.actuator_trntype) <= {*_JOINT_TRANSMISSIONS, int(mujoco.mjtTrn.mjTRN_TENDON)}:
        yield "site, body or slider-crank transmissions"
    if not set(m.actuator_gaintype) <= {0, 1} or not set(m.actuator_biastype) <= {0, 1}:
        yield "muscles or user-defined actuators"
    for name in (
        "jnt_stiffnesspoly",
        "dof_dampingpoly",
        "tendon_stiffnesspoly",
        "tendon_dampingpoly",
        "actuator_damping",
        "actuator_armature",
    ):
        if np.any(getattr(m, name, 0)):
            yield name
    for flag in (_Disable.mjDSBL_SPRING, _Disable.mjDSBL_DAMPER):
        if _disabled(m, flag):
            yield f"the flag {flag.name}"
    if o.enableflags & mujoco.mjtEnableBit.mjENBL_OVERRIDE:
        yield "contact override"


def _unsupported(m: mujoco.MjModel, actuators: Sequence[int]) -> Iterator[str]:
    """Features of a model that the routines do not have but a `Model` may have, as phrases."""
    if m.opt.integrator not in (EULER, RK4, IMPLICIT, IMPLICITFAST):
        yield f"integrator {mujoco.mjtIntegrator(m.opt.integrator).name}"
    if m.nflex:
        yield "flexible bodies"
    if np.any(m.tendon_armature):
        yield "tendon armature"
    if np.any(m.tendon_actfrclimited):
        yield "tendon force limits"
    own = np.array(actuators, dtype=int)
    joints = m.actuator_trnid[own[np.isin(m.actuator_trntype[own], _JOINT_TRANSMISSIONS)], 0]
    if not set(m.jnt_type[joints]) <= _SCALAR_JOINTS:
        yield "actuators on ball or free joints"


def _pairs(m: mujoco.MjModel) -> dict[str, np.ndarray]:
    """Pairs of geoms that MuJoCo's filters leave, with mixed parameters; explicit pairs first."""
    rows = [*_explicit_pairs(m), *_filtered_pairs(m)] if not _disabled(m, _Disable.mjDSBL_CONTACT) else []
    columns = list(zip(*rows, strict=True)) if rows else [()] * 9
    names = ("geom1", "geom2", "dim", "margin", "gap", "friction", "solref", "solreffriction", "solimp")
    widths = (None, None, None, None, None, 5, 2, 2, 5)
    tables = {}
    for name, width, values in zip(names, widths, columns, strict=True):
        kind = np.int64 if name in ("geom1", "geom2", "dim") else float
        tables[f"pair_{name}"] = np.array(values, kind).reshape((-1, width) if width else -1)
    return tables


def _explicit_pairs(m: mujoco.MjModel) -> Iterator[tuple]:
    for i in range(m.npair):
        a, b = _ascending(m, m.pair_geom1[i], m.pair_geom2[i])
        yield (
            a,
            b,
            m.pair_dim[i],
            m.pair_margin[i],
            m.pair_gap[i],
            m.pair_friction[i],
            m.pair_solref[i],
            m.pair_solreffriction[i],
            m.pair_solimp[i],
        )


def _ascending(m: mujoco.MjModel, a: int, b: int) -> tuple[int, int]:
    return (int(b), int(a)) if m.geom_type[a] > m.geom_type[b] else (int(a), int(b))


def _filtered_pairs(m: mujoco.MjModel) -> Iterator[tuple]:
    """Pairs by contact types and affinities, without those of one body, parent and child, or excluded ones."""
    weld, parent = m.body_weldid, m.body_weldid[m.body_parentid]
    excluded = set(m.exclude_signature.tolist())
    explicit = {frozenset(p) for p in zip(m.pair_geom1.tolist(), m.pair_geom2.tolist(), strict=True)}
    filter_parent = not _disabled(m, _Disable.mjDSBL_FILTERPARENT)
    contype, conaffinity = m.geom_contype, m.geom_conaffinity
    colliding = np.flatnonzero(contype | conaffinity)
    for i, a in enumerate(colliding):
        others = colliding[i + 1 :]
        one, w1 = m.geom_bodyid[a], weld[m.geom_bodyid[a]]
        w2 = weld[m.geom_bodyid[others]]
        wanted = ((contype[a] & conaffinity[others]) | (contype[others] & conaffinity[a])) != 0
        wanted &= w1 != w2
        if filter_parent and w1:
            wanted &= (w2 == 0) | ((parent[w2] != w1) & (w2 != parent[w1]))
        for b in others[wanted]:
            two = m.geom_bodyid[b]
            if (min(one, two) << 16) + max(one, two) in excluded or frozenset((int(a), int(b))) in explicit:
                continue
            if {m.geom_type[a], m.geom_type[b]} <= {0, 1}:
                continue
            yield _mix(m, *_ascending(m, int(a), int(b)))


def _mix(m: mujoco.MjModel, a: int, b: int) -> tuple:
    """Parameters of a contact of two geoms: of the one with priority, else mixed by `solmix`; margins and gaps add."""
    margin, gap = m.geom_margin[a] + m.geom_margin[b], m.geom_gap[a] + m.geom_gap[b]
    priority = m.geom_priority[a] - m.geom_priority[b]
    if priority:
        g = a if priority > 0 else b
        friction, solref, solimp, dim = m.geom_friction[g], m.geom_solref[g], m.geom_solimp[g], m.geom_condim[g]
    else:
        dim = max(m.geom_condim[a], m.geom_condim[b])
        friction = np.maximum(m.geom_friction[a], m.geom_friction[b])
        w = _mixing(m.geom_solmix[a], m.geom_solmix[b])
        is_standard = m.geom_solref[a][0] > 0 and m.geom_solref[b][0] > 0
        mixed = w * m.geom_solref[a] + (1 - w) * m.geom_solref[b]
        solref = mixed if is_standard else np.minimum(m.geom_solref[a], m.geom_solref[b])
        solimp = w * m.geom_solimp[a] + (1 - w) * m.geom_solimp[b]
    friction = np.maximum(friction[[0, 0, 1, 2, 2]], 1e-5)
    return a, b, dim, margin, gap, friction, solref, np.zeros(2), solimp


def _mixing(a: float, b: float) -> float:
    tiny = 1e-15
    if a >= tiny and b >= tiny:
        return a / (a + b)
    return 0.5 if a < tiny and b < tiny else float(a >= tiny)


def _equalities(m: mujoco.MjModel, rows: Sequence[int], tendons: Sequence[int]) -> dict[str, np.ndarray]:
    on = np.isin(np.arange(m.neq), rows)
    on &= m.eq_active0.astype(bool) & (not _disabled(m, _Disable.mjDSBL_EQUALITY))
    one, two = m.eq_obj1id[on].astype(np.int64), m.eq_obj2id[on].astype(np.int64)
    sites = m.eq_objtype[on] == mujoco.mjtObj.mjOBJ_SITE
    data = np.array(m.eq_data[on], float)
    for i in np.flatnonzero(sites):  # connect and weld by sites: points and frames of the bodies that carry them
        a, b = one[i], two[i]
        if m.eq_type[on][i] == 0:
            data[i, 0:3], data[i, 3:6] = m.site_pos[a], m.site_pos[b]
        else:
            data[i, 3:6], data[i, 0:3] = m.site_pos[a], m.site_pos[b]
            back = np.array([1, -1, -1, -1]) * m.site_quat[b]
            mujoco.mju_mulQuat(data[i, 6:10], m.site_quat[a], back)
        one[i], two[i] = m.site_bodyid[a], m.site_bodyid[b]
    own = m.eq_type[on] == mujoco.mjtEq.mjEQ_TENDON
    for ids in (one, two):
        ids[own] = [tendons.index(i) if i >= 0 else -1 for i in ids[own]]
    solref, solimp = np.array(m.eq_solref[on], float), np.array(m.eq_solimp[on], float)
    return {
        "eq_type": m.eq_type[on].astype(np.int64),
        "eq_obj1id": one,
        "eq_obj2id": two,
        "eq_data": data,
        "eq_solref": solref,
        "eq_solimp": solimp,
    }


def _tendons(m: mujoco.MjModel, rows: Sequence[int]) -> dict[str, np.ndarray]:
    """Wraps of fixed tendons in ascending order; the first two are the coefficients zero and one."""
    joints, coefficients, first, count = [-1, -1], [0.0, 1.0], [], []
    for a, n in zip(m.tendon_adr[list(rows)], m.tendon_num[list(rows)], strict=True):
        wraps: dict[int, float] = {}
        for i in range(a, a + n):
            wraps[int(m.wrap_objid[i])] = wraps.get(int(m.wrap_objid[i]), 0.0) + float(m.wrap_prm[i])
        first.append(len(joints))
        count.append(len(wraps))
        for j in sorted(wraps, key=lambda j: m.jnt_dofadr[j]):
            joints.append(j)
            coefficients.append(wraps[j])
    return {
        "tendon_adr": np.array(first, np.int64),
        "tendon_num": np.array(count, np.int64),
        "wrap_jntid": np.array(joints, np.int64),
        "wrap_coef": np.array(coefficients),
    }


def _actuators(m: mujoco.MjModel, rows: Sequence[int], tendons: Sequence[int]) -> dict[str, np.ndarray]:
    own = np.array(rows, dtype=int)
    unlimited = np.array([-np.inf, np.inf])
    clamps = m.actuator_ctrllimited[own].astype(bool) & (not _disabled(m, _Disable.mjDSBL_CLAMPCTRL))
    limited = m.actuator_forcelimited[own].astype(bool)
    gain, bias = np.array(m.actuator_gainprm[own, :3], float), np.array(m.actuator_biasprm[own, :3], float)
    gain[m.actuator_gaintype[own] == mujoco.mjtGain.mjGAIN_FIXED, 1:] = 0
    bias[m.actuator_biastype[own] == mujoco.mjtBias.mjBIAS_NONE] = 0
    on_tendon = m.actuator_trntype[own] == mujoco.mjtTrn.mjTRN_TENDON
    target = m.actuator_trnid[own, 0].astype(np.int64)
    target[on_tendon] = [tendons.index(i) for i in target[on_tendon]]
    return {
        "actuator_trntype": on_tendon.astype(np.int64),
        "actuator_trnid": target,
        "actuator_gear": np.array(m.actuator_gear[own, 0], float),
        "actuator_ctrlrange": np.where(clamps[:, None], m.actuator_ctrlrange[own], unlimited),
        "actuator_forcerange": np.where(limited[:, None], m.actuator_forcerange[own], unlimited),
        "actuator_gainprm": gain,
        "actuator_biasprm": bias,
    }
