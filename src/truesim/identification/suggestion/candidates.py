"""Candidate disturbances: for each port its inputs, and a dictionary of functions of these inputs.

Dictionaries are wide enough to show which port and inputs matter, and small enough for cross-validation. Each column
belongs to one row of the port: a joint, a body or a pair of geoms.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from truesim.core import libraries
from truesim.core.typing import Float, Int
from truesim.identification.suggestion import dictionaries
from truesim.identification.suggestion.kinds import DisturbanceKind
from truesim.identification.suggestion.probe import PortValues
from truesim.identification.suggestion.track import Track
from truesim.physics.blueprint import ports
from truesim.physics.dynamics.regressor import INERTIAL_PARAMETERS, inertial_parameters, regressors
from truesim.physics.model.kinds import FREE

LAG_TIMES = (1.5, 3.0, 6.0, 12.0, 25.0)
"""Time constants of a lag, in intervals."""
RESIDUAL_MODE, SCALE_MODE = "residual", "scale"
"""Modes in which a network changes its port: by addition or by a factor."""


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A disturbance as a linear combination of functions of some inputs."""

    port: str
    inputs: tuple[str, ...]
    kind: DisturbanceKind
    names: tuple[str, ...]
    """Rows of the port to which columns belong."""
    owner: Int[np.ndarray, " columns"]
    """Index of the name to which each column belongs."""
    torques: Float[np.ndarray, "segments intervals disturbances columns"] | None
    measurements: Float[np.ndarray, "segments intervals rows columns"] | None = None
    """For a sensor port: addition of each column to the residual."""
    mode: str = RESIDUAL_MODE


CandidateFamily = Callable[[Track, PortValues], Iterator[Candidate]]


def candidates(track: Track, passage: PortValues) -> list[Candidate]:
    """All candidates of a track that have a nonzero column."""
    found = [candidate for family in CANDIDATE_FAMILIES for candidate in family(track, passage)]
    return [c for c in (_drop_zero_columns(c) for c in found) if c is not None]


def _drop_zero_columns(candidate: Candidate) -> Candidate | None:
    given = candidate.torques if candidate.torques is not None else candidate.measurements
    assert given is not None, "a candidate disturbs torques or measurements"
    size = np.sqrt(np.mean(given**2, axis=(0, 1, 2)))
    kept = np.isfinite(size) & (size > 1e-12 * max(size.max(initial=0.0), 1e-12))
    if not kept.any():
        return None
    owner = candidate.owner[kept]
    own = np.unique(owner)
    return dataclasses.replace(
        candidate,
        names=tuple(candidate.names[k] for k in own),
        owner=np.searchsorted(own, owner),
        torques=None if candidate.torques is None else candidate.torques[..., kept] / size[kept],
        measurements=None if candidate.measurements is None else candidate.measurements[..., kept] / size[kept],
    )


def _concatenate(
    columns: Mapping[int, Float[np.ndarray, "segments intervals disturbances own"]],
) -> tuple[np.ndarray, np.ndarray]:
    """Owner of each column, and the concatenated columns of all rows."""
    owner = np.concatenate([np.full(c.shape[-1], k) for k, c in columns.items()])
    return owner, np.concatenate(list(columns.values()), axis=-1)


def _on_joint(track: Track, place: int, values: Float[np.ndarray, "segments intervals own"]) -> np.ndarray:
    """Values as one of the disturbances: torque or friction bound of one degree of freedom."""
    out = np.zeros((*values.shape[:2], track.disturbances, values.shape[-1]))
    out[:, :, place] = values
    return out


def _pad(track: Track, torques: Float[np.ndarray, "segments intervals nv own"]) -> np.ndarray:
    """Torques padded with zeros for all other disturbances."""
    spare = track.disturbances - torques.shape[2]
    return np.pad(torques, ((0, 0), (0, 0), (0, spare), (0, 0)))


def _joint_dofs(track: Track) -> list[int]:
    """Degrees of freedom of all joints but free joints."""
    return [
        d
        for link in track.problem.simulator.model.topology.links
        if link.joint >= 0 and link.kind != FREE
        for d in range(link.v.start, link.v.stop)
    ]


def _joint_candidate(
    track: Track,
    port: str,
    inputs: tuple[str, ...],
    kind: DisturbanceKind,
    columns: Mapping[int, np.ndarray],
    mode: str = RESIDUAL_MODE,
) -> Iterator[Candidate]:
    if columns:
        owner, torques = _concatenate({d: _on_joint(track, d, values) for d, values in columns.items()})
        names = ports.names(track.problem.simulator, ports.port(port))
        yield Candidate(port, inputs, kind, names, owner, torques, mode=mode)


def joints(track: Track, passage: PortValues) -> Iterator[Candidate]:
    """Dampers, joint friction and springs: functions of the velocity or position of a joint."""
    q, v = passage.values["joint.position"], passage.values["joint.velocity"]
    own = _joint_dofs(track)
    speed = ("joint.velocity",)
    yield from _joint_candidate(
        track, "joint.damping_torque", speed, DisturbanceKind.VISCOUS_DAMPING, {d: v[..., [d]] for d in own}
    )
    yield from _joint_candidate(
        track,
        "joint.friction_torque",
        speed,
        DisturbanceKind.JOINT_FRICTION,
        {d: dictionaries.friction_functions(v[..., d]) for d in own},
    )
    place = ("joint.position",)
    for kind, degree in ((DisturbanceKind.LINEAR_SPRING, 1), (DisturbanceKind.SPRING, 5)):
        columns = {d: dictionaries.polynomials(q[..., d], degree) for d in own}
        yield from _joint_candidate(track, "joint.spring_torque", place, kind, columns)


def gears(track: Track, passage: PortValues) -> Iterator[Candidate]:
    """Joint friction that depends on the transmitted load, as in gears (Duclusaud et al. 2025)."""
    motor, load = passage.values["joint.motor_torque"], passage.values["joint.gravity_torque"]
    columns = {}
    for place, d in zip(track.places("joint.friction_bound"), track.friction_dofs, strict=True):
        x = dictionaries.load_functions(motor[..., d], load[..., d], passage.values["joint.velocity"][..., d])
        columns[d] = _on_joint(track, int(place), x)
    if columns:
        owner, bounds = _concatenate(columns)
        inputs = "joint.motor_torque", "joint.gravity_torque", "joint.velocity"
        names = ports.names(track.problem.simulator, ports.port("joint.friction_bound"))
        yield Candidate("joint.friction_bound", inputs, DisturbanceKind.LOADED_FRICTION, names, owner, bounds)


def limits(track: Track, passage: PortValues) -> Iterator[Candidate]:
    """Joint limits."""
    model, q = track.problem.simulator.model, passage.values["joint.position"]
    columns = {}
    for link in model.topology.links:
        if link.joint >= 0 and model.joints.limited[link.joint] and link.kind.nv == 1:
            low, high = np.asarray(model.joints.range[link.joint], float)
            x, near = q[..., link.v.start], 0.05 * (high - low)
            over = [np.maximum(x - (high - near), 0.0), np.maximum(low + near - x, 0.0)]
            columns[link.v.start] = np.stack([f(o) for o in over for f in (lambda o: o, np.square)], axis=-1)
    yield from _joint_candidate(track, "joint.limit_torque", ("joint.position",), DisturbanceKind.JOINT_LIMIT, columns)


def scales(track: Track, passage: PortValues) -> Iterator[Candidate]:
    """Terms of the equation of motion that are wrong by a factor."""
    terms = {
        "joint.gravity_torque": DisturbanceKind.GRAVITY_FACTOR,
        "joint.coriolis_torque": DisturbanceKind.CORIOLIS_FACTOR,
        "joint.motor_torque": DisturbanceKind.MOTOR_FACTOR,
    }
    for port, kind in terms.items():
        value = passage.values[port]
        columns = {d: value[..., [d]] for d in range(value.shape[-1])}
        yield from _joint_candidate(track, port, (port,), kind, columns, mode=SCALE_MODE)


def inertia(track: Track, passage: PortValues) -> Iterator[Candidate]:
    """Mass and inertia of bodies that are wrong by a factor."""
    model, linear = track.problem.model_at(track.theta, track.problem.simulator.model), track.linear
    v_next = np.concatenate([linear.v[:, 1:], track.end[:, None]], axis=1)
    a = (v_next - linear.v) / track.problem.layout.intervals.duration[..., None]
    flat = [x.reshape(-1, x.shape[-1]) for x in (linear.q, linear.v, a)]
    Y = regressors(model, *flat).reshape(*a.shape, -1, len(INERTIAL_PARAMETERS))
    torques = -np.einsum("sidbp,bp->sidb", Y, np.asarray(inertial_parameters(model)))
    names = model.bodies.names
    yield Candidate(
        "body.inertia_scale", (), DisturbanceKind.INERTIA_FACTOR, names, np.arange(len(names)), _pad(track, torques)
    )


def drag(track: Track, passage: PortValues) -> Iterator[Candidate]:
    """Drag of single bodies: force at the center of mass and torque against the velocity."""
    velocity, J = passage.values["body.velocity"], passage.torque["body.wrench"]
    model = track.problem.simulator.model
    columns = {}
    for body in range(velocity.shape[2]):
        wrenches = dictionaries.drag_wrenches(velocity[:, :, body], np.asarray(model.bodies.com[body], float))
        columns[body] = _pad(track, np.einsum("sidc,sick->sidk", J[:, :, :, body], wrenches))
    owner, torques = _concatenate(columns)
    yield Candidate("body.wrench", ("body.velocity",), DisturbanceKind.DRAG, model.bodies.names, owner, torques)


def actuators(track: Track, passage: PortValues) -> Iterator[Candidate]:
    """Actuators that lag, saturate, or lose force with speed."""
    if "actuator.force" not in passage.torque:
        return
    names = track.problem.simulator.model.actuators.names
    force, speed = passage.values["actuator.force"], passage.values["actuator.velocity"]
    for port in ("actuator.command", "actuator.force"):
        value = passage.values[port]
        late = {k: _lag_error(track, value[..., k]) for k in range(len(names))}
        owner, torques = _to_torques(track, passage.torque[port], late)
        yield Candidate(port, (port, f"previous {port}"), DisturbanceKind.LAG, names, owner, torques)
    curves = {k: dictionaries.motor_functions(force[..., k], speed[..., k]) for k in range(len(names))}
    owner, torques = _to_torques(track, passage.torque["actuator.force"], curves)
    yield Candidate(
        "actuator.force", ("actuator.force", "actuator.velocity"), DisturbanceKind.MOTOR_CURVE, names, owner, torques
    )


def contacts(track: Track, passage: PortValues) -> Iterator[Candidate]:
    """Contact friction and contact stiffness."""
    simulator = track.problem.simulator
    if simulator.contact is None:
        return
    names = ports.names(simulator, ports.port("contact.depth"))
    if simulator.impulse_contact is not None:
        places = track.places("contact.friction_coefficient")
        own = len(places)
        ones = np.zeros((*track.linear.q.shape[:2], track.disturbances, own))
        ones[:, :, places, np.arange(own)] = 1.0
        pairs = tuple(dict.fromkeys(names))
        owner = np.array([pairs.index(name) for name in names][:own])
        yield Candidate("contact.friction_coefficient", (), DisturbanceKind.FRICTION_COEFFICIENT, pairs, owner, ones)
        return
    yield from _compliant(track, passage, names)


def _compliant(track: Track, passage: PortValues, names: tuple[str, ...]) -> Iterator[Candidate]:
    pairs = tuple(dict.fromkeys(names))
    own = np.array([pairs.index(name) for name in names])
    normal, values = passage.values["contact.normal_force"], passage.values
    if "contact.friction_force" in passage.torque:
        rubbing, slip = values["contact.friction_force"], values["contact.slip"]
        J = passage.torque["contact.friction_force"]
        for kind, inputs, basis in (
            (DisturbanceKind.CONTACT_FRICTION_FACTOR, ("contact.friction_force",), rubbing[..., None]),
            (
                DisturbanceKind.CONTACT_FRICTION,
                ("contact.slip", "contact.normal_force"),
                dictionaries.contact_friction_forces(slip, normal),
            ),
        ):
            torques = {
                k: np.einsum("sidpc,sipck->sidk", J[..., own == k, :], basis[..., own == k, :, :])
                for k in range(len(pairs))
            }
            owner, columns = _concatenate({k: _pad(track, t) for k, t in torques.items()})
            mode = SCALE_MODE if len(inputs) == 1 else RESIDUAL_MODE
            yield Candidate("contact.friction_force", inputs, kind, pairs, owner, columns, mode=mode)
    J, depth = passage.torque["contact.normal_force"], values["contact.depth"]
    touching = depth > 0
    deep = np.where(touching, depth, 0.0)
    basis = np.stack([normal, deep, deep**2, normal * deep], axis=-1)
    torques = {k: np.einsum("sidp,sipk->sidk", J[..., own == k], basis[..., own == k, :]) for k in range(len(pairs))}
    owner, columns = _concatenate({k: _pad(track, t) for k, t in torques.items()})
    inputs = ("contact.normal_force", "contact.depth")
    yield Candidate("contact.normal_force", inputs, DisturbanceKind.NORMAL_FORCE, pairs, owner, columns)


def encoders(track: Track, passage: PortValues) -> Iterator[Candidate]:
    """Encoder errors as functions of the position: nonlinear scale, eccentricity."""
    rows, simulator = track.problem.rows, track.problem.simulator
    q, columns = passage.values["joint.position"], {}
    names = ports.names(simulator, ports.port("encoder.position"))
    for d, name in enumerate(names if len(names) == q.shape[-1] else ()):
        if f"qpos/{name}" in rows:
            x = q[..., d]
            out = np.zeros((*x.shape, len(rows), 3))
            out[:, :, rows.index(f"qpos/{name}")] = np.stack([x, np.sin(x), np.cos(x)], axis=-1)
            columns[d] = out
    if columns:
        owner, measurements = _concatenate(columns)
        yield Candidate(
            "encoder.position", ("joint.position",), DisturbanceKind.ENCODER_ERROR, names, owner, None, measurements
        )


CANDIDATE_FAMILIES: tuple[CandidateFamily, ...] = (
    joints,
    gears,
    limits,
    scales,
    inertia,
    drag,
    actuators,
    contacts,
    encoders,
)
"""Sources of candidates; a new family is a function in this tuple."""


def _lag_error(track: Track, value: Float[np.ndarray, "segments intervals"]) -> np.ndarray:
    """Difference between a value and its first-order lag, for several time constants."""
    out = np.empty((*value.shape, len(LAG_TIMES)))
    for k, lag in enumerate(LAG_TIMES):
        a = np.exp(-1 / lag)
        mean = 1 - lag * (1 - a)  # of the new value over an interval
        for piece in track.pieces:
            x = value[piece].ravel()
            before = libraries.scipy.signal.lfilter([0, 1 - a], [1, -a], x, zi=[x[0] * a])[0] if len(x) else x
            out[piece, :, k] = ((1 - mean) * (before - x)).reshape(value[piece].shape)
    return out


def _to_torques(
    track: Track, J: Float[np.ndarray, "segments intervals nv rows"], values: Mapping[int, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Torques of the values of a port's rows."""
    return _concatenate({k: _pad(track, J[..., k, None] * x[:, :, None]) for k, x in values.items()})
