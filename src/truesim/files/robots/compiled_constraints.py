"""Contact pairs, equality constraints and fixed tendons of a compiled MuJoCo model."""

import mujoco
import numpy as np

from truesim.files.robots.compiled_names import names_of
from truesim.files.robots.supported import simulated_tendons
from truesim.physics.model.constraints import Contacts, Equalities, Tendons

EQUALITY_KINDS = {
    mujoco.mjtEq.mjEQ_CONNECT: "connect",
    mujoco.mjtEq.mjEQ_WELD: "weld",
    mujoco.mjtEq.mjEQ_JOINT: "joint",
    mujoco.mjtEq.mjEQ_TENDON: "tendon",
}


def compiled_contacts(m: mujoco.MjModel) -> Contacts:
    """Explicit contact pairs; an unnamed one is named after its two geoms."""
    geoms = names_of(m, mujoco.mjtObj.mjOBJ_GEOM, m.ngeom, "geom")
    given = [mujoco.mj_id2name(m, mujoco.mjtObj.mjOBJ_PAIR, i) for i in range(m.npair)]
    pairs = [(int(a), int(b)) for a, b in zip(m.pair_geom1, m.pair_geom2, strict=True)]
    return Contacts(
        friction=m.pair_friction.copy(),
        restitution=np.zeros(m.npair),
        margin=m.pair_margin.copy(),
        gap=m.pair_gap.copy(),
        solref=m.pair_solref.copy(),
        solreffriction=m.pair_solreffriction.copy(),
        solimp=m.pair_solimp.copy(),
        names=tuple(name or f"{geoms[a]}-{geoms[b]}" for name, (a, b) in zip(given, pairs, strict=True)),
        geoms=tuple(pairs),
        dimensions=tuple(int(x) for x in m.pair_dim),
        excluded=tuple((int(x >> 16) - 1, int(x & 0xFFFF) - 1) for x in m.exclude_signature),
        parents_touch=bool(m.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_FILTERPARENT),
    )


def simulated_equalities(m: mujoco.MjModel) -> list[int]:
    """Indices of the active constraints between bodies, joints or fixed tendons."""
    placed, tendons = (mujoco.mjtObj.mjOBJ_BODY, mujoco.mjtObj.mjOBJ_SITE), {-1, *simulated_tendons(m)}

    def holds(i: int) -> bool:
        kind = mujoco.mjtEq(m.eq_type[i])
        if kind == mujoco.mjtEq.mjEQ_TENDON:
            return {int(m.eq_obj1id[i]), int(m.eq_obj2id[i])} <= tendons
        return kind == mujoco.mjtEq.mjEQ_JOINT or (kind in EQUALITY_KINDS and mujoco.mjtObj(m.eq_objtype[i]) in placed)

    return [i for i in range(m.neq) if m.eq_active0[i] and holds(i)]


def compiled_equalities(m: mujoco.MjModel) -> Equalities:
    """Simulated equality constraints; `find_unsimulated` lists the others."""
    kept = simulated_equalities(m)
    names = names_of(m, mujoco.mjtObj.mjOBJ_EQUALITY, m.neq, "equality")
    anchor, orientation = np.zeros((len(kept), 2, 3)), np.tile(np.eye(4)[0], (len(kept), 1))
    coefficients, objects = np.zeros((len(kept), 5)), []
    tendons = {-1: -1, **{old: new for new, old in enumerate(simulated_tendons(m))}}
    for k, i in enumerate(kept):
        kind, data = EQUALITY_KINDS[mujoco.mjtEq(m.eq_type[i])], m.eq_data[i]
        first, second = int(m.eq_obj1id[i]), int(m.eq_obj2id[i])
        if kind in ("joint", "tendon"):
            coefficients[k] = data[:5]
            objects.append((first, second) if kind == "joint" else (tendons[first], tendons[second]))
        elif m.eq_objtype[i] == mujoco.mjtObj.mjOBJ_SITE:
            anchor[k], orientation[k] = m.site_pos[[first, second]], _between(m, first, second)
            objects.append((int(m.site_bodyid[first]) - 1, int(m.site_bodyid[second]) - 1))
        else:
            anchor[k] = (data[3:6], data[:3]) if kind == "weld" else (data[:3], data[3:6])
            orientation[k] = data[6:10] if kind == "weld" else orientation[k]
            objects.append((first - 1, second - 1))
    return Equalities(
        anchor=anchor,
        orientation=orientation,
        coefficients=coefficients,
        torque_scale=np.where(m.eq_type[kept] == mujoco.mjtEq.mjEQ_WELD, m.eq_data[kept, 10], 1.0),
        solref=m.eq_solref[kept],
        solimp=m.eq_solimp[kept],
        names=tuple(names[i] for i in kept),
        kinds=tuple(EQUALITY_KINDS[mujoco.mjtEq(m.eq_type[i])] for i in kept),
        objects=tuple(objects),
    )


def compiled_tendons(m: mujoco.MjModel) -> Tendons:
    """Fixed tendons; `find_unsimulated` lists the others."""
    kept = simulated_tendons(m)
    names = names_of(m, mujoco.mjtObj.mjOBJ_TENDON, m.ntendon, "tendon")
    coefficients = np.zeros((len(kept), m.njnt))
    for k, i in enumerate(kept):
        path = slice(m.tendon_adr[i], m.tendon_adr[i] + m.tendon_num[i])
        np.add.at(coefficients[k], m.wrap_objid[path], m.wrap_prm[path])
    spring_off = bool(m.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_SPRING)
    damper_off = bool(m.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_DAMPER)
    return Tendons(
        coefficients=coefficients,
        stiffness=m.tendon_stiffness[kept] * (not spring_off),
        spring_length=m.tendon_lengthspring[kept],
        damping=m.tendon_damping[kept] * (not damper_off),
        armature=m.tendon_armature[kept],
        frictionloss=m.tendon_frictionloss[kept],
        range=m.tendon_range[kept],
        margin=m.tendon_margin[kept],
        force_range=m.tendon_actfrcrange[kept],
        solreffriction=m.tendon_solref_fri[kept],
        solimpfriction=m.tendon_solimp_fri[kept],
        solreflimit=m.tendon_solref_lim[kept],
        solimplimit=m.tendon_solimp_lim[kept],
        names=tuple(names[i] for i in kept),
        limited=tuple(bool(m.tendon_limited[i]) for i in kept),
        force_limited=tuple(bool(m.tendon_actfrclimited[i]) for i in kept),
        coupled=tuple(bool(m.tendon_armature[i] > 0) for i in kept),
    )


def _between(m: mujoco.MjModel, first: int, second: int) -> np.ndarray:
    """Orientation of the second body in the first when the frames of two sites coincide."""
    back, product = np.zeros(4), np.zeros(4)
    mujoco.mju_negQuat(back, m.site_quat[second])
    mujoco.mju_mulQuat(product, m.site_quat[first], back)
    return product
