"""Tables that follow from the structure of a model: ancestors, chains of degrees of freedom, functions of pairs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from truesim.physics.routines.layout import (
    BALL_JOINT,
    FREE_JOINT,
    IMPLICITFAST,
    MESH,
    PLANE,
    SLIDE_JOINT,
    SPHERE,
    TENDON_TRANSMISSION,
)
from truesim.physics.routines.shapes import FOREIGN, FUNCTION_OF_TYPES
from truesim.physics.routines.tables import StepTables

Derived = dict[str, np.ndarray]


@dataclass
class DofChains:
    """Lists of degrees of freedom that a constraint acts on, each stored once."""

    related: np.ndarray
    tree: np.ndarray
    numbers: dict[tuple, int] = field(default_factory=dict)
    lists: list[tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[int]]] = field(default_factory=list)

    def number(self, dofs: Sequence[int], sign: Sequence[int], first: Sequence[int], second: Sequence[int]) -> int:
        """Number of a chain; columns are ascending degrees of freedom and what the constraint knows of each."""
        key = (tuple(dofs), tuple(sign), tuple(first), tuple(second))
        if key not in self.numbers:
            self.numbers[key] = len(self.lists)
            self.lists.append(key)
        return self.numbers[key]

    def tables(self) -> Derived:
        """The lists, one behind another."""
        lengths = [len(dofs) for dofs, *_ in self.lists]
        columns = [
            np.concatenate([np.asarray(c[i], np.int64) for c in self.lists] or [np.zeros(0, np.int64)])
            for i in range(4)
        ]
        coupled = [not self.related[np.ix_(dofs, dofs)].all() for dofs, *_ in self.lists]
        trees = [self.tree[list(dofs)] if len(dofs) else np.array([-1]) for dofs, *_ in self.lists]
        names = ("chain_dof", "chain_sign", "chain_first", "chain_second")
        return {
            **dict(zip(names, columns, strict=True)),
            "chain_adr": np.cumsum([0, *lengths])[: len(lengths)],
            "chain_num": np.array(lengths, np.int64),
            "chain_coupled": np.array(coupled, np.int64),
            "chain_tree1": np.array([t.min() for t in trees], np.int64),
            "chain_tree2": np.array([t.max() for t in trees], np.int64),
        }


def derive(tables: StepTables, addresses: Mapping[tuple[int, int], int]) -> tuple[dict[str, int], Derived]:
    """Derived sizes and tables. `addresses` are MuJoCo's collision functions by geom types."""
    s, nv = tables.structure, tables.sizes["nv"]
    ancestors = _ancestors(s["dof_parentid"])
    related = np.zeros((nv, nv), bool)
    for d, above in enumerate(ancestors):
        related[d, [d, *above]] = related[[d, *above], d] = True
    tree = np.array([above[-1] if above else d for d, above in enumerate(ancestors)], np.int64)
    tree = np.unique(tree, return_inverse=True)[1] if nv else tree
    words = max(1, -(-nv // 64))
    pattern = np.zeros((nv, words), np.uint64)
    for d, above in enumerate(ancestors):
        for a in above:
            pattern[d, a // 64] |= np.uint64(1) << np.uint64(a % 64)
    chains = DofChains(related, tree)
    friction = np.flatnonzero(s["dof_frictional"])
    used = np.unique(np.concatenate([s["pair_geom1"], s["pair_geom2"]])).astype(np.int64)
    found: Derived = {
        "dof_rotates": _rotates(tables),
        "dof_related": related.astype(np.int64),
        "dof_treeid": tree,
        "ancestor": np.array([a for above in ancestors for a in above], np.int64),
        "ancestor_adr": np.cumsum([0, *map(len, ancestors)])[:nv],
        "ancestor_num": np.array([len(a) for a in ancestors], np.int64),
        "tree_pattern": pattern.view(np.int64),
        "friction_dof": friction,
        "used_geom": used,
        "free_jnt": _standalone_free_joints(tables),
        **_wraps(tables),
        **_pair_functions(tables, addresses),
    }
    found |= _chains(tables, chains, found["wrap_dofadr"])
    found |= chains.tables()
    sizes = {
        "words": words,
        "nfriction": len(friction),
        "nused": len(used),
        "ntree": int(tree.max()) + 1 if nv else 0,
        "nfree": len(found["free_jnt"]),
        "has_gravcomp": int(np.any(tables.parameters["body_gravcomp"])),
    }
    return sizes, found


def _ancestors(parent: np.ndarray) -> list[list[int]]:
    """Ancestors of every degree of freedom, the nearest first."""
    found: list[list[int]] = []
    for p in parent:
        found.append([] if p < 0 else [int(p), *found[p]])
    return found


def _rotates(tables: StepTables) -> np.ndarray:
    s = tables.structure
    kind = s["jnt_type"][s["dof_jntid"]]
    offset = np.arange(len(kind)) - s["jnt_dofadr"][s["dof_jntid"]]
    return ~((kind == SLIDE_JOINT) | ((kind == FREE_JOINT) & (offset < 3))).astype(bool)


def _standalone_free_joints(tables: StepTables) -> np.ndarray:
    """Free joints of bodies that carry no joints, where the integrator is `implicitfast`."""
    s = tables.structure
    if tables.sizes["integrator"] != IMPLICITFAST:
        return np.zeros(0, np.int64)
    carrying = set(s["dof_parentid"].tolist())
    return np.array(
        [j for j, t in enumerate(s["jnt_type"]) if t == FREE_JOINT and s["jnt_dofadr"][j] + 5 not in carrying], np.int64
    )


def body_dofs(tables: StepTables) -> list[list[int]]:
    """Ascending degrees of freedom that move each body."""
    s = tables.structure
    found: list[list[int]] = [[]]
    own: list[list[int]] = [[] for _ in range(tables.sizes["nbody"])]
    for d, b in enumerate(s["dof_bodyid"]):
        own[b].append(d)
    for b in range(1, tables.sizes["nbody"]):
        found.append(sorted([*found[s["body_parentid"][b]], *own[b]]))
    return found


def _wraps(tables: StepTables) -> Derived:
    s = tables.structure
    joint = s["wrap_jntid"]
    is_tendon = s["actuator_trntype"] == TENDON_TRANSMISSION
    target = np.where(is_tendon, s["actuator_trnid"], 0)
    adr, num = (np.r_[s[name], 0] for name in ("tendon_adr", "tendon_num"))
    return {
        "wrap_dofadr": np.where(joint < 0, 0, s["jnt_dofadr"][joint]) if len(s["jnt_dofadr"]) else 0 * joint,
        "wrap_qposadr": np.where(joint < 0, 0, s["jnt_qposadr"][joint]) if len(s["jnt_qposadr"]) else 0 * joint,
        "actuator_wrapadr": np.where(is_tendon, adr[target], 0),
        "actuator_wrapnum": np.where(is_tendon, num[target], 0),
    }


def _pair_functions(tables: StepTables, addresses: Mapping[tuple[int, int], int]) -> Derived:
    s = tables.structure
    kinds = list(zip(s["geom_type"][s["pair_geom1"]].tolist(), s["geom_type"][s["pair_geom2"]].tolist(), strict=True))
    function = np.array([FUNCTION_OF_TYPES.get(kind, FOREIGN) for kind in kinds], np.int64)
    address = [0 if f else addresses.get(kind, 0) for f, kind in zip(function, kinds, strict=True)]
    boxes = [
        not f and a not in (PLANE, SPHERE) and b != SPHERE and b <= MESH
        for f, (a, b) in zip(function, kinds, strict=True)
    ]
    return {
        "pair_function": function,
        "pair_address": np.array(address, np.int64),
        "pair_boxes": np.array(boxes, np.int64),
    }


def _chains(tables: StepTables, chains: DofChains, wrap_dof: np.ndarray) -> Derived:
    """DofChains of pairs, ball joints, equalities and tendons."""
    s = tables.structure
    moved = body_dofs(tables)
    bodies = s["geom_bodyid"]

    def contact(b1: int, b2: int) -> int:
        one, two = set(moved[b1]), set(moved[b2])
        dofs = sorted(one ^ two)  # those that move both alike drop out
        sign = [1 if d in two else -1 for d in dofs]
        return chains.number(dofs, sign, [0] * len(dofs), [0] * len(dofs))

    def both(b1: int, b2: int) -> int:
        dofs = sorted({*moved[b1], *moved[b2]})
        return chains.number(
            dofs, [0] * len(dofs), [int(d in moved[b1]) for d in dofs], [int(d in moved[b2]) for d in dofs]
        )

    known: dict[tuple[int, int], int] = {}
    pair_bodies = zip(bodies[s["pair_geom1"]].tolist(), bodies[s["pair_geom2"]].tolist(), strict=True)
    pair = [known[key] if key in known else known.setdefault(key, contact(*key)) for key in pair_bodies]
    joint = [
        _row_chain(chains, {int(d) + i: 1 for i in range(3)}, {}) if t == BALL_JOINT else -1
        for t, d in zip(s["jnt_type"], s["jnt_dofadr"], strict=True)
    ]
    tendons = [
        {int(wrap_dof[n]): n for n in range(a, a + c)} for a, c in zip(s["tendon_adr"], s["tendon_num"], strict=True)
    ]
    equality = []
    for kind, one, two in zip(s["eq_type"], s["eq_obj1id"], s["eq_obj2id"], strict=True):
        if kind < 2:
            equality.append(both(one, two))
            continue
        columns = [{} if i < 0 else tendons[i] if kind == 3 else {int(s["jnt_dofadr"][i]): 1} for i in (one, two)]
        equality.append(_row_chain(chains, *columns))
    return {
        "pair_chain": np.array(pair, np.int64),
        "jnt_chain": np.array(joint, np.int64),
        "eq_chain": np.array(equality, np.int64),
        "tendon_chain": np.array([_row_chain(chains, t, {}) for t in tendons], np.int64),
    }


def _row_chain(chains: DofChains, first: Mapping[int, int], second: Mapping[int, int]) -> int:
    """Chain of a row whose entries are coefficients, given by number; number 0 is the coefficient zero."""
    dofs = sorted({*first, *second})
    return chains.number(dofs, [0] * len(dofs), [first.get(d, 0) for d in dofs], [second.get(d, 0) for d in dofs])
