"""Names and shapes of everything the routines read and write.

`STRUCTURE` and `PARAMETERS` are the two halves of a model, in the names, shapes and units of `mjModel`; the structure
decides about loops and branches, parameters never do, so that each may differ between instances. `DERIVED` tables are
computed from the structure. Shapes are products of sizes and numbers.
"""

from truesim.native.loops.layout import Layout

FREE_JOINT, BALL_JOINT, SLIDE_JOINT, HINGE_JOINT = range(4)
"""Joint types."""
PLANE, HFIELD, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH = range(8)
"""Geom types."""
CONNECT, WELD, JOINT_EQUALITY, TENDON_EQUALITY = range(4)
"""Types of equality constraints."""
PYRAMIDAL_CONE, ELLIPTIC_CONE = range(2)
EULER, RK4, IMPLICIT, IMPLICITFAST = range(4)
"""Integrators."""
JOINT_TRANSMISSION, TENDON_TRANSMISSION = range(2)
EQUALITY_BLOCK, FRICTION_BLOCK, UNILATERAL_BLOCK, ELLIPTIC_BLOCK = range(4)
"""Kinds of constraint blocks."""

MODEL_SIZES = ("nq", "nv", "nu", "nbody", "njnt", "ngeom", "npair", "neq", "ntendon", "nwrap")
OPTION_SIZES = (
    *("cone", "integrator", "iterations", "ls_iterations", "refsafe", "implicit_damping"),
    *("warm", "islands", "actuation"),
)
"""Options that are integers."""

STRUCTURE = {
    **dict.fromkeys(("body_parentid", "body_jntadr", "body_jntnum"), "nbody"),
    **dict.fromkeys(("jnt_type", "jnt_qposadr", "jnt_dofadr", "jnt_limited", "jnt_springy", "jnt_actgravcomp"), "njnt"),
    **dict.fromkeys(("dof_parentid", "dof_jntid", "dof_bodyid", "dof_frictional"), "nv"),
    **dict.fromkeys(("geom_bodyid", "geom_type"), "ngeom"),
    **dict.fromkeys(("pair_geom1", "pair_geom2", "pair_dim"), "npair"),
    **dict.fromkeys(("eq_type", "eq_obj1id", "eq_obj2id"), "neq"),
    **dict.fromkeys(("tendon_adr", "tendon_num", "tendon_limited", "tendon_frictional"), "ntendon"),
    "wrap_jntid": "nwrap",
    **dict.fromkeys(("actuator_trntype", "actuator_trnid"), "nu"),
}
"""Integer arrays of a model.

Pairs are those that MuJoCo's filters leave, with geom types in ascending order; equalities are the active ones. The
wraps of a fixed tendon have ascending, distinct degrees of freedom; wraps 0 and 1 are the coefficients zero and one.
"""

PARAMETERS = {
    **dict.fromkeys(("body_pos", "body_ipos"), ("nbody", 3)),
    "body_inertia": ("nbody", 6),
    "body_quat": ("nbody", 4),
    **dict.fromkeys(("body_mass", "body_gravcomp"), ("nbody",)),
    "body_invweight0": ("nbody", 2),
    **dict.fromkeys(("qpos0", "qpos_spring"), ("nq",)),
    **dict.fromkeys(("jnt_pos", "jnt_axis"), ("njnt", 3)),
    **dict.fromkeys(("jnt_stiffness", "jnt_margin"), ("njnt",)),
    **dict.fromkeys(("jnt_range", "jnt_solref"), ("njnt", 2)),
    "jnt_solimp": ("njnt", 5),
    **dict.fromkeys(("dof_armature", "dof_damping", "dof_frictionloss", "dof_invweight0"), ("nv",)),
    **dict.fromkeys(("dof_solref", "dof_actfrcrange"), ("nv", 2)),
    "dof_solimp": ("nv", 5),
    **dict.fromkeys(("geom_pos", "geom_size"), ("ngeom", 3)),
    "geom_quat": ("ngeom", 4),
    "geom_rbound": ("ngeom",),
    "geom_aabb": ("ngeom", 6),
    **dict.fromkeys(("pair_margin", "pair_gap"), ("npair",)),
    **dict.fromkeys(("pair_solref", "pair_solreffriction"), ("npair", 2)),
    **dict.fromkeys(("pair_solimp", "pair_friction"), ("npair", 5)),
    "eq_data": ("neq", 12),
    "eq_solref": ("neq", 2),
    "eq_solimp": ("neq", 5),
    **dict.fromkeys(("tendon_range", "tendon_lengthspring", "tendon_solref_lim", "tendon_solref_fri"), ("ntendon", 2)),
    **dict.fromkeys(("tendon_solimp_lim", "tendon_solimp_fri"), ("ntendon", 5)),
    **dict.fromkeys(("tendon_margin", "tendon_stiffness", "tendon_damping", "tendon_frictionloss"), ("ntendon",)),
    **dict.fromkeys(("tendon_invweight0", "tendon_length0"), ("ntendon",)),
    "wrap_coef": ("nwrap",),
    "actuator_gear": ("nu",),
    **dict.fromkeys(("actuator_ctrlrange", "actuator_forcerange"), ("nu", 2)),
    **dict.fromkeys(("actuator_gainprm", "actuator_biasprm"), ("nu", 3)),
    **dict.fromkeys(("timestep", "impratio", "tolerance", "ls_tolerance"), (1,)),
    "gravity": (3,),
}
"""Real arrays of a model.

The inertia of a body is about its center of mass along the axes of its frame: xx, yy, zz, xy, xz, yz. Ranges that a
file does not limit are infinite. The force of an actuator with control u, transmission length l and
velocity v is `(g0 + g1 l + g2 v) u + b0 + b1 l + b2 v`, clipped.
"""

DERIVED_SIZES = ("words", "nfriction", "nused", "ntree", "nfree", "has_gravcomp")
CAPACITIES = ("slot_capacity", "block_capacity", "row_capacity", "jacobian_capacity")
DERIVED = (
    *("dof_rotates", "dof_related", "dof_treeid", "ancestor", "ancestor_adr", "ancestor_num", "tree_pattern"),
    *(
        "chain_adr",
        "chain_num",
        "chain_coupled",
        "chain_dof",
        "chain_sign",
        "chain_first",
        "chain_second",
        "chain_tree1",
        "chain_tree2",
    ),
    *("pair_chain", "jnt_chain", "eq_chain", "tendon_chain", "pair_function", "pair_address", "pair_boxes"),
    *("friction_dof", "used_geom", "wrap_dofadr", "wrap_qposadr", "actuator_wrapadr", "actuator_wrapnum"),
    "free_jnt",
)

INTEGERS = {
    **dict.fromkeys(("slot_count", "block_count", "row_count", "jacobian_count", "block_dof_count", "limit_count"), 1),
    **dict.fromkeys(("overflow", "coupled", "dof_low", "dof_high"), 1),
    "foreign_address": 5,
    "slot_pair": "slot_capacity",
    **dict.fromkeys(
        ("block_kind", "block_dim", "block_nd", "block_rowadr", "block_jacadr", "block_dofadr", "block_chain"),
        "block_capacity",
    ),
    "block_dofs": "jacobian_capacity",
    "limit_dof": ("njnt", 2),
    "pattern": ("nv", "words"),
    **dict.fromkeys(("fill_adr", "fill_num"), "nv"),
    "fill": ("nv", "nv"),
}

WORK = {
    "qpos": "nq",
    **dict.fromkeys(("qvel", "warmstart", "qacc", "tau", "bias", "Ma", "Mv", "grad", "search", "qfrc_actuator"), "nv"),
    **dict.fromkeys(("qfrc_gravcomp", "dof_clamped", "dof_inside"), "nv"),
    **dict.fromkeys(("tau_all", "qacc_all", "qacc_result", "Ma_result", "grad_result"), "nv"),
    "qacc_smooth": "nv",
    "stage_qpos": "nq",
    **dict.fromkeys(("stage_qvel", "stage_rate", "stage_rates", "stage_accelerations"), "nv"),
    **dict.fromkeys(("tree_label", "tree_constrained"), "ntree"),
    "free_result": ("nfree", 6),
    **dict.fromkeys(("ctrl", "actuator_derivative"), "nu"),
    "origin": 3,
    "xpos": ("nbody", 3),
    "xquat": ("nbody", 4),
    "xmat": ("nbody", 9),
    "xanchor": ("njnt", 3),
    **dict.fromkeys(("cdof", "cdof_dot"), ("nv", 6)),
    **dict.fromkeys(("cinert", "crb"), ("nbody", 10)),
    **dict.fromkeys(("cvel", "cacc", "cfrc", "cgrav", "dvel", "dacc", "dfrc"), ("nbody", 6)),
    **dict.fromkeys(("M", "H"), ("nv", "nv")),
    **dict.fromkeys(("ten_length", "ten_velocity"), "ntendon"),
    "gpos": ("ngeom", 3),
    "gmat": ("ngeom", 9),
    "point": 11,
    "contact": 49,
    "hit": (50, 11),
    **dict.fromkeys(("slot_touching", "slot_dist"), "slot_capacity"),
    "slot_pos": ("slot_capacity", 3),
    "slot_frame": ("slot_capacity", 9),
    **dict.fromkeys(("row_D", "row_aref", "row_jar", "row_other", "row_Jv", "row_force", "row_scale"), "row_capacity"),
    **dict.fromkeys(("row_loss", "row_bound", "row_D_all", "row_loss_all", "row_bound_all"), "row_capacity"),
    "jacobian": "jacobian_capacity",
    "block_mu": "block_capacity",
    "block_W": ("block_capacity", 36),
    "block_line": ("block_capacity", 9),
    **dict.fromkeys(
        ("friction_D", "friction_bound", "friction_loss", "friction_aref", "friction_jar", "friction_other"),
        "nfriction",
    ),
    **dict.fromkeys(("friction_D_all", "friction_bound_all", "friction_loss_all"), "nfriction"),
    **dict.fromkeys(("limit_D", "limit_sign", "limit_aref", "limit_jar", "limit_other", "limit_D_all"), ("njnt", 2)),
    "line_start": 3,
    "line_point": 4,
    **dict.fromkeys(("newton_scale", "newton_active", "newton_improvement", "newton_step"), 1),
    **dict.fromkeys(("newton_iterations", "newton_points"), 1),
}
"""Workspace of a tile: vectors of one number per lane."""

LAYOUT = Layout(
    sizes=(*MODEL_SIZES, *OPTION_SIZES, *DERIVED_SIZES, *CAPACITIES),
    tables=(*STRUCTURE, *DERIVED),
    parameters=tuple(PARAMETERS),
    integers=tuple(INTEGERS),
    work=tuple(WORK),
)
