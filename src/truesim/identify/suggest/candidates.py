"""Candidates: for each port its natural inputs, and columns of what a function of these could add there.

Columns are a small dictionary, wide enough to tell which port and which inputs matter, narrow enough to be tested on
windows that it was not fitted to. Each column belongs to one row of the port, a joint or a body or a pair of geoms.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping

import numpy as np
from scipy.signal import lfilter

from truesim.core.typing import Float, Int
from truesim.dynamics.regressor import PARAMETERS, inertial_parameters, regressors
from truesim.identify.suggest import dictionaries
from truesim.identify.suggest.probe import Passage
from truesim.identify.suggest.track import Track
from truesim.model.kinds import FREE
from truesim.simulate.augment import ports

LAGS = (1.5, 3.0, 6.0, 12.0, 25.0)
"""Time constants of a lag, in intervals."""
RESIDUAL, SCALE = "residual", "scale"
"""How a network changes its port."""


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A disturbance that is a function of some inputs."""

    port: str
    inputs: tuple[str, ...]
    kind: str
    """What it would be, in words."""
    names: tuple[str, ...]
    """Rows of the port that any column belongs to."""
    owner: Int[np.ndarray, "columns"]
    """Which of the names each column belongs to."""
    torques: Float[np.ndarray, "stretches intervals disturbances columns"] | None
    readings: Float[np.ndarray, "stretches intervals rows columns"] | None = None
    """For a port of readings: what each column adds to the residual."""
    mode: str = RESIDUAL


Family = Callable[[Track, Passage], Iterator[Candidate]]


def candidates(track: Track, passage: Passage) -> list[Candidate]:
    """All candidates of a track; those whose columns are all zero left out."""
    found = [candidate for family in FAMILIES for candidate in family(track, passage)]
    return [c for c in (_without_zeros(c) for c in found) if c is not None]


def _without_zeros(candidate: Candidate) -> Candidate | None:
    given = candidate.torques if candidate.torques is not None else candidate.readings
    assert given is not None, "a candidate disturbs torques or readings"
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
        readings=None if candidate.readings is None else candidate.readings[..., kept] / size[kept],
    )


def _joined(
    columns: Mapping[int, Float[np.ndarray, "stretches intervals disturbances own"]],
) -> tuple[np.ndarray, np.ndarray]:
    """Columns of all rows side by side, and which row each belongs to."""
    owner = np.concatenate([np.full(c.shape[-1], k) for k, c in columns.items()])
    return owner, np.concatenate(list(columns.values()), axis=-1)


def _on_joint(track: Track, place: int, values: Float[np.ndarray, "stretches intervals own"]) -> np.ndarray:
    """Values as one of the disturbances: a torque of one degree of freedom, or its bound of friction."""
    out = np.zeros((*values.shape[:2], track.disturbances, values.shape[-1]))
    out[:, :, place] = values
    return out


def _padded(track: Track, torques: Float[np.ndarray, "stretches intervals nv own"]) -> np.ndarray:
    """Torques with nothing in the place of other disturbances."""
    spare = track.disturbances - torques.shape[2]
    return np.pad(torques, ((0, 0), (0, 0), (0, spare), (0, 0)))


def _guided(track: Track) -> list[int]:
    """Degrees of freedom of joints that a machine has: not those of bodies that float."""
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
    kind: str,
    columns: Mapping[int, np.ndarray],
    mode: str = RESIDUAL,
) -> Iterator[Candidate]:
    if columns:
        owner, torques = _joined({d: _on_joint(track, d, values) for d, values in columns.items()})
        names = ports.names(track.problem.simulator, ports.port(port))
        yield Candidate(port, inputs, kind, names, owner, torques, mode=mode)


def joints(track: Track, passage: Passage) -> Iterator[Candidate]:
    """Dampers, dry friction, springs: functions of a joint's own velocity or position."""
    q, v = passage.values["joint.position"], passage.values["joint.velocity"]
    own = _guided(track)
    speed = ("joint.velocity",)
    yield from _joint_candidate(track, "joint.damping_torque", speed, "viscous damping", {d: v[..., [d]] for d in own})
    yield from _joint_candidate(
        track, "joint.friction_torque", speed, "dry friction", {d: dictionaries.friction(v[..., d]) for d in own}
    )
    place = ("joint.position",)
    for kind, degree in (("linear spring", 1), ("spring", 5)):
        columns = {d: dictionaries.powers(q[..., d], degree) for d in own}
        yield from _joint_candidate(track, "joint.spring_torque", place, kind, columns)


def gears(track: Track, passage: Passage) -> Iterator[Candidate]:
    """Dry friction that grows with what a joint transmits, as that of gears does (Duclusaud et al. 2025)."""
    motor, load = passage.values["joint.motor_torque"], passage.values["joint.gravity_torque"]
    columns = {}
    for place, d in zip(track.places("joint.friction_bound"), track.rough, strict=True):
        x = dictionaries.loaded(motor[..., d], load[..., d], passage.values["joint.velocity"][..., d])
        columns[d] = _on_joint(track, place, x)
    if columns:
        owner, bounds = _joined(columns)
        inputs = "joint.motor_torque", "joint.gravity_torque", "joint.velocity"
        names = ports.names(track.problem.simulator, ports.port("joint.friction_bound"))
        yield Candidate("joint.friction_bound", inputs, "friction under load", names, owner, bounds)


def limits(track: Track, passage: Passage) -> Iterator[Candidate]:
    """Stops that are reached."""
    model, q = track.problem.simulator.model, passage.values["joint.position"]
    columns = {}
    for link in model.topology.links:
        if link.joint >= 0 and model.joints.limited[link.joint] and link.kind.nv == 1:
            low, high = np.asarray(model.joints.range[link.joint], float)
            x, near = q[..., link.v.start], 0.05 * (high - low)
            over = [np.maximum(x - (high - near), 0.0), np.maximum(low + near - x, 0.0)]
            columns[link.v.start] = np.stack([f(o) for o in over for f in (lambda o: o, np.square)], axis=-1)
    yield from _joint_candidate(track, "joint.limit_torque", ("joint.position",), "stop", columns)


def scales(track: Track, passage: Passage) -> Iterator[Candidate]:
    """Terms of the model that are wrong by a factor."""
    terms = {
        "joint.gravity_torque": "gravity by a factor",
        "joint.coriolis_torque": "Coriolis forces by a factor",
        "joint.motor_torque": "motor torque by a factor",
    }
    for port, kind in terms.items():
        value = passage.values[port]
        columns = {d: value[..., [d]] for d in range(value.shape[-1])}
        yield from _joint_candidate(track, port, (port,), kind, columns, mode=SCALE)


def inertia(track: Track, passage: Passage) -> Iterator[Candidate]:
    """Bodies that are heavier or lighter than the model says."""
    model, linear = track.problem.model_at(track.theta, track.problem.simulator.model), track.linear
    v_next = np.concatenate([linear.v[:, 1:], track.end[:, None]], axis=1)
    a = (v_next - linear.v) / track.problem.layout.intervals.duration[..., None]
    flat = [x.reshape(-1, x.shape[-1]) for x in (linear.q, linear.v, a)]
    Y = regressors(model, *flat).reshape(*a.shape, -1, len(PARAMETERS))
    torques = -np.einsum("sidbp,bp->sidb", Y, np.asarray(inertial_parameters(model)))
    names = model.bodies.names
    yield Candidate(
        "body.inertia_scale", (), "mass and inertia by a factor", names, np.arange(len(names)), _padded(track, torques)
    )


def drag(track: Track, passage: Passage) -> Iterator[Candidate]:
    """Drag of one body: its force at the centre of mass, and a torque, against its velocity."""
    velocity, J = passage.values["body.velocity"], passage.torque["body.wrench"]
    model = track.problem.simulator.model
    columns = {}
    for body in range(velocity.shape[2]):
        wrenches = dictionaries.drag(velocity[:, :, body], np.asarray(model.bodies.com[body], float))
        columns[body] = _padded(track, np.einsum("sidc,sick->sidk", J[:, :, :, body], wrenches))
    owner, torques = _joined(columns)
    yield Candidate("body.wrench", ("body.velocity",), "drag", model.bodies.names, owner, torques)


def actuators(track: Track, passage: Passage) -> Iterator[Candidate]:
    """Motors that lag, saturate, or lose force with speed."""
    if "actuator.force" not in passage.torque:
        return
    names = track.problem.simulator.model.actuators.names
    force, speed = passage.values["actuator.force"], passage.values["actuator.velocity"]
    for port in ("actuator.command", "actuator.force"):
        value = passage.values[port]
        late = {k: _lagged(track, value[..., k]) for k in range(len(names))}
        owner, torques = _through(track, passage.torque[port], late)
        yield Candidate(port, (port, f"previous {port}"), "lag", names, owner, torques)
    curved = {k: dictionaries.curved(force[..., k], speed[..., k]) for k in range(len(names))}
    owner, torques = _through(track, passage.torque["actuator.force"], curved)
    yield Candidate("actuator.force", ("actuator.force", "actuator.velocity"), "motor curve", names, owner, torques)


def contacts(track: Track, passage: Passage) -> Iterator[Candidate]:
    """Contact that is rougher or stiffer than the model says."""
    simulator = track.problem.simulator
    if simulator.contact is None:
        return
    names = ports.names(simulator, ports.port("contact.depth"))
    if not simulator.contact.is_smooth:
        places = track.places("contact.friction_coefficient")
        own = len(places)
        ones = np.zeros((*track.linear.q.shape[:2], track.disturbances, own))
        ones[:, :, places, np.arange(own)] = 1.0
        pairs = tuple(dict.fromkeys(names))
        owner = np.array([pairs.index(name) for name in names][:own])
        yield Candidate("contact.friction_coefficient", (), "friction by another coefficient", pairs, owner, ones)
        return
    yield from _compliant(track, passage, names)


def _compliant(track: Track, passage: Passage, names: tuple[str, ...]) -> Iterator[Candidate]:
    pairs = tuple(dict.fromkeys(names))
    own = np.array([pairs.index(name) for name in names])
    normal, values = passage.values["contact.normal_force"], passage.values
    if "contact.friction_force" in passage.torque:
        rubbing, slip = values["contact.friction_force"], values["contact.slip"]
        J = passage.torque["contact.friction_force"]
        for kind, inputs, basis in (
            ("friction by a factor", ("contact.friction_force",), rubbing[..., None]),
            ("friction", ("contact.slip", "contact.normal_force"), dictionaries.rubbing(slip, normal)),
        ):
            torques = {
                k: np.einsum("sidpc,sipck->sidk", J[..., own == k, :], basis[..., own == k, :, :])
                for k in range(len(pairs))
            }
            owner, columns = _joined({k: _padded(track, t) for k, t in torques.items()})
            mode = SCALE if len(inputs) == 1 else RESIDUAL
            yield Candidate("contact.friction_force", inputs, kind, pairs, owner, columns, mode=mode)
    J, depth = passage.torque["contact.normal_force"], values["contact.depth"]
    touching = depth > 0
    deep = np.where(touching, depth, 0.0)
    basis = np.stack([normal, deep, deep**2, normal * deep], axis=-1)
    torques = {k: np.einsum("sidp,sipk->sidk", J[..., own == k], basis[..., own == k, :]) for k in range(len(pairs))}
    owner, columns = _joined({k: _padded(track, t) for k, t in torques.items()})
    inputs = ("contact.normal_force", "contact.depth")
    yield Candidate("contact.normal_force", inputs, "normal force", pairs, owner, columns)


def encoders(track: Track, passage: Passage) -> Iterator[Candidate]:
    """Encoders that are off by a function of the position: a bent scale, an eccentric disc."""
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
        owner, readings = _joined(columns)
        yield Candidate("encoder.position", ("joint.position",), "encoder error", names, owner, None, readings)


FAMILIES: tuple[Family, ...] = (joints, gears, limits, scales, inertia, drag, actuators, contacts, encoders)
"""Where candidates come from; a new one is a function here."""


def _lagged(track: Track, value: Float[np.ndarray, "stretches intervals"]) -> np.ndarray:
    """By how much a value falls behind itself with a first-order lag, for several time constants."""
    out = np.empty((*value.shape, len(LAGS)))
    for k, lag in enumerate(LAGS):
        a = np.exp(-1 / lag)
        mean = 1 - lag * (1 - a)  # of the new value over an interval
        for piece in track.pieces:
            x = value[piece].ravel()
            before = lfilter([0, 1 - a], [1, -a], x, zi=[x[0] * a])[0] if len(x) else x
            out[piece, :, k] = ((1 - mean) * (before - x)).reshape(value[piece].shape)
    return out


def _through(
    track: Track, J: Float[np.ndarray, "stretches intervals nv rows"], values: Mapping[int, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Values of a port's rows as torques."""
    return _joined({k: _padded(track, J[..., k, None] * x[:, :, None]) for k, x in values.items()})
