"""Contact pairs and equality constraints of a compiled MuJoCo model."""

import mujoco
import numpy as np

from truesim.formats.compiled_names import names_of
from truesim.model.constraints import Contacts, Equalities

EQUALITY_KINDS = {
    mujoco.mjtEq.mjEQ_CONNECT: "connect",
    mujoco.mjtEq.mjEQ_WELD: "weld",
    mujoco.mjtEq.mjEQ_JOINT: "joint",
}


def compiled_contacts(m: mujoco.MjModel) -> Contacts:
    """The explicit pairs; one without a name is called after its two geoms."""
    geoms = names_of(m, mujoco.mjtObj.mjOBJ_GEOM, m.ngeom, "geom")
    given = [mujoco.mj_id2name(m, mujoco.mjtObj.mjOBJ_PAIR, i) for i in range(m.npair)]
    pairs = [(int(a), int(b)) for a, b in zip(m.pair_geom1, m.pair_geom2, strict=True)]
    return Contacts(
        friction=m.pair_friction.copy(),
        restitution=np.zeros(m.npair),
        margin=m.pair_margin.copy(),
        gap=m.pair_gap.copy(),
        names=tuple(name or f"{geoms[a]}-{geoms[b]}" for name, (a, b) in zip(given, pairs, strict=True)),
        geoms=tuple(pairs),
        dimensions=tuple(int(x) for x in m.pair_dim),
        excluded=tuple((int(x >> 16) - 1, int(x & 0xFFFF) - 1) for x in m.exclude_signature),
        parents_touch=bool(m.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_FILTERPARENT),
    )


def simulated_equalities(m: mujoco.MjModel) -> list[int]:
    """Indices of the active constraints between bodies or joints."""
    placed = (mujoco.mjtObj.mjOBJ_BODY, mujoco.mjtObj.mjOBJ_SITE)
    return [
        i
        for i in range(m.neq)
        if m.eq_active0[i]
        and mujoco.mjtEq(m.eq_type[i]) in EQUALITY_KINDS
        and (mujoco.mjtObj(m.eq_objtype[i]) in placed or m.eq_type[i] == mujoco.mjtEq.mjEQ_JOINT)
    ]


def compiled_equalities(m: mujoco.MjModel) -> Equalities:
    """Closed chains and coupled joints; `find_unsimulated` lists the other constraints."""
    kept = simulated_equalities(m)
    names = names_of(m, mujoco.mjtObj.mjOBJ_EQUALITY, m.neq, "equality")
    anchor, orientation = np.zeros((len(kept), 2, 3)), np.tile(np.eye(4)[0], (len(kept), 1))
    coefficients, objects = np.zeros((len(kept), 5)), []
    for k, i in enumerate(kept):
        kind, data = EQUALITY_KINDS[mujoco.mjtEq(m.eq_type[i])], m.eq_data[i]
        first, second = int(m.eq_obj1id[i]), int(m.eq_obj2id[i])
        if kind == "joint":
            coefficients[k] = data[:5]
            objects.append((first, second))
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
        names=tuple(names[i] for i in kept),
        kinds=tuple(EQUALITY_KINDS[mujoco.mjtEq(m.eq_type[i])] for i in kept),
        objects=tuple(objects),
    )


def _between(m: mujoco.MjModel, first: int, second: int) -> np.ndarray:
    """Orientation of the second body in the first when the frames of two sites coincide."""
    back, product = np.zeros(4), np.zeros(4)
    mujoco.mju_negQuat(back, m.site_quat[second])
    mujoco.mju_mulQuat(product, m.site_quat[first], back)
    return product
