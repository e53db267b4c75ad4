"""Contact points by MuJoCo's own collision functions, with their derivatives by the motion of the two surfaces.

The functions run on the host, once per instance: all pairs of shapes are found exactly as MuJoCo finds them. No search
is differentiated: `contact_motion` says how a point moves with its two bodies.
"""

import copy
import functools
import threading
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import mujoco
import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.typing import Array, Float
from truesim.math.spatial.rotation import normalize
from truesim.math.spatial.transform import Pose
from truesim.physics.constraints.contact_motion import ContactTangent, contact_tangent
from truesim.physics.constraints.contacts import ContactSlots
from truesim.physics.dynamics import body_poses
from truesim.physics.model.model import Model

WRITTEN = (
    ("body_pos", 1),
    ("body_quat", 1),
    ("jnt_pos", 0),
    ("jnt_axis", 0),
    ("geom_pos", 0),
    ("geom_quat", 0),
    ("geom_size", 0),
    ("geom_margin", 0),
    ("geom_gap", 0),
    ("pair_margin", 0),
    ("pair_gap", 0),
)
"""MuJoCo's arrays that decide where geoms are and touch, and the first row that belongs to a `Model`."""


class HostCollider:
    """MuJoCo's collision detection for one file, with geometry that may differ from the file's."""

    def __init__(self, compiled: mujoco.MjModel):
        self.model = copy.copy(compiled)
        self.model.body_sameframe[:] = 0  # poses may change: no shortcuts
        self.model.geom_sameframe[:] = 0
        self.model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_MIDPHASE)
        self.data = mujoco.MjData(self.model)
        self.explicit = {
            tuple(sorted(pair)): k for k, pair in enumerate(zip(compiled.pair_geom1, compiled.pair_geom2, strict=True))
        }
        self.lock = threading.Lock()

    def __call__(self, capacity: int, dtype: Any, *bits: np.ndarray) -> tuple[np.ndarray, ...]:
        """Contact points as the fields of `ContactSlots`; numbers come and go as their bits.

        Args:
            capacity: Number of slots.
            dtype: Type of the numbers.
            bits: Configuration, reference coordinates, and the arrays of `WRITTEN`.
        """
        q, ref, *geometry = (np.ascontiguousarray(x).view(dtype).reshape(np.shape(x)[:-1]) for x in bits)
        with self.lock:
            self._write(ref, geometry)
            self.data.qpos[:] = q
            mujoco.mj_kinematics(self.model, self.data)
            mujoco.mj_comPos(self.model, self.data)
            mujoco.mj_collision(self.model, self.data)
            return self._slots(capacity, dtype)

    def _write(self, ref: np.ndarray, geometry: list[np.ndarray]) -> None:
        m, resized = self.model, False
        m.qpos0[:] = ref
        for (name, first), value in zip(WRITTEN, geometry, strict=True):
            if name.endswith("quat"):
                value = value / np.linalg.norm(value, axis=1, keepdims=True)
            resized = resized or (name == "geom_size" and not np.array_equal(m.geom_size, value))
            getattr(m, name)[first:] = value
        for g in range(m.ngeom) if resized else ():
            _resize(m, g)

    def _slots(self, capacity: int, dtype: Any) -> tuple[np.ndarray, ...]:
        contacts = self.data.contact
        found = min(self.data.ncon, capacity)
        geoms, explicit = np.full((capacity, 2), -1, np.int32), np.full(capacity, -1, np.int32)
        distance, position = np.ones(capacity, dtype), np.zeros((capacity, 3), dtype)
        frame = np.tile(np.eye(3, dtype=dtype), (capacity, 1, 1))
        geoms[:found], distance[:found] = contacts.geom[:found], contacts.dist[:found]
        position[:found], frame[:found] = contacts.pos[:found], contacts.frame[:found].reshape(-1, 3, 3)
        if self.explicit:
            explicit[:found] = [self.explicit.get(tuple(sorted(pair)), -1) for pair in geoms[:found].tolist()]
        overflow = np.array(max(self.data.ncon - capacity, 0), np.int32)
        placed = (x[..., None].view(np.uint32) for x in (distance, position, frame))
        return geoms, explicit, *placed, overflow


def _resize(m: mujoco.MjModel, g: int) -> None:
    """Bounds of a geom after a change of its size; meshes and planes have none that depend on it."""
    kind, size = mujoco.mjtGeom(m.geom_type[g]), m.geom_size[g]
    half = {
        mujoco.mjtGeom.mjGEOM_SPHERE: (size[0], size[0], size[0]),
        mujoco.mjtGeom.mjGEOM_CAPSULE: (size[0], size[0], size[0] + size[1]),
        mujoco.mjtGeom.mjGEOM_CYLINDER: (size[0], size[0], size[1]),
        mujoco.mjtGeom.mjGEOM_ELLIPSOID: tuple(size),
        mujoco.mjtGeom.mjGEOM_BOX: tuple(size),
    }.get(kind)
    if half is None:
        return
    m.geom_aabb[g, 3:] = half
    reach = {mujoco.mjtGeom.mjGEOM_CAPSULE: size[0] + size[1], mujoco.mjtGeom.mjGEOM_ELLIPSOID: max(half)}
    m.geom_rbound[g] = size[0] if kind == mujoco.mjtGeom.mjGEOM_SPHERE else reach.get(kind, np.linalg.norm(half))


@functools.lru_cache(maxsize=32)
def _collider(compiled: mujoco.MjModel) -> HostCollider:
    return HostCollider(compiled)


def detect(model: Model, q: Float[Array, " nq"], capacity: int) -> ContactSlots:
    """Contact points at a configuration, differentiable in the configuration and in the geometry.

    Args:
        model: The robot, loaded from a file.
        q: Configuration.
        capacity: Number of slots.
    """
    if model.source is None or model.source.compiled is None:
        raise TruesimError("This model did not come from a file: MuJoCo's collision functions need its compiled model.")
    return _detect((model, q), capacity)


@eqx.filter_custom_jvp
def _detect(inputs: tuple, capacity: int) -> ContactSlots:
    model, q = inputs
    geoms, contacts = model.geoms, model.contacts
    values = (
        *(model.bodies.position, model.bodies.orientation, model.joints.position, model.joints.axis),
        *(geoms.position, geoms.orientation, geoms.size, geoms.margin, geoms.gap, contacts.margin, contacts.gap),
    )
    real, words = q.dtype, q.dtype.itemsize // 4
    integers, numbers = (functools.partial(jax.ShapeDtypeStruct, dtype=kind) for kind in (jnp.int32, jnp.uint32))
    shapes = (
        *(integers((capacity, 2)), integers((capacity,))),
        *(numbers((capacity, *shape, words)) for shape in ((), (3,), (3, 3))),
        integers(()),
    )
    call = functools.partial(_collider(model.source.compiled), capacity, real)
    inputs = (q, _reference(model), *values)
    found = jax.pure_callback(call, shapes, *(_bits(x, real) for x in inputs), vmap_method="sequential")
    touching, explicit, distance, position, frame, overflow = found
    return ContactSlots(touching, explicit, _real(distance, real), _real(position, real), _real(frame, real), overflow)


def _bits(x: Array, real: Any) -> Array:
    """Bits of numbers: a callback runs in a thread of its own, where JAX may not know of 64-bit numbers."""
    words = jax.lax.bitcast_convert_type(jnp.asarray(x, real), jnp.uint32)
    return words if words.ndim > jnp.ndim(x) else words[..., None]


def _real(bits: Array, real: Any) -> Array:
    return jax.lax.bitcast_convert_type(bits if real.itemsize == 8 else bits[..., 0], real)


@_detect.def_jvp
def _detect_jvp(primals: tuple, tangents: tuple) -> tuple[ContactSlots, ContactSlots]:
    """Motion of the contact points with the surfaces of their geoms."""
    ((model, q), capacity), (perturbations, _) = primals, tangents
    slots = _detect((model, q), capacity)

    def placed(inputs: tuple) -> tuple[Pose, Array]:
        model, q = inputs
        return geom_poses(model, q), jnp.asarray(model.geoms.size)

    (poses, size), changes = eqx.filter_jvp(placed, ((model, q),), (perturbations,))
    zeros = jax.tree.map(jnp.zeros_like, (poses, size))
    moved = jax.tree.map(lambda x, dx: x if dx is None else dx, zeros, changes, is_leaf=lambda x: x is None)
    change = contact_tangent(model.geoms.shapes, slots, (poses, size), moved)
    return slots, _as_tangent(change)


def _as_tangent(change: ContactTangent) -> ContactSlots:
    return ContactSlots(None, None, change.distance, change.position, change.frame, None)  # type: ignore[arg-type]


def _reference(model: Model) -> Float[Array, " nq"]:
    """Coordinates at which hinges and slides are in the pose of the file; MuJoCo reads no others."""
    ref = jnp.zeros(model.nq)
    links = [link for link in model.topology.links if link.joint >= 0 and link.kind.nq == 1]
    if not links:
        return ref
    at = np.array([link.q_start for link in links])
    return ref.at[at].set(jnp.asarray(model.joints.ref)[np.array([link.joint for link in links])])


def geom_poses(model: Model, q: Float[Array, " nq"]) -> Pose:
    """Pose of every geom in the world, stacked over geoms."""
    bodies = body_poses(model, q)
    with_world = jax.tree.map(lambda x, one: jnp.concatenate([x, one[None]]), bodies, Pose.identity())
    carried = jax.tree.map(lambda x: x[np.array(model.geoms.bodies)], with_world)
    own = jax.vmap(lambda p, o: Pose.from_quaternion(p, normalize(o)))(
        jnp.asarray(model.geoms.position), jnp.asarray(model.geoms.orientation)
    )
    return jax.vmap(Pose.__matmul__)(carried, own)
