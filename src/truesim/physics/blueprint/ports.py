"""Ports of a simulator, in the order in which a step computes them, and the names of their rows."""

from collections.abc import Callable

from truesim.core.errors import TruesimError, unknown_name
from truesim.core.tap import Port
from truesim.physics.actuators.forces import COMMAND, FORCE, LENGTH, MOTOR_TORQUE, SPEED
from truesim.physics.augmentation.learned import JOINT_INERTIA
from truesim.physics.augmentation.memory import PREVIOUS
from truesim.physics.contact.base import DEPTH, FRICTION_COEFFICIENT
from truesim.physics.contact.models.compliant import CONTACT_VELOCITY, FRICTION_FORCE, NORMAL_FORCE, SLIP
from truesim.physics.model.columns import position_columns, sensor_columns
from truesim.physics.simulation.equation_of_motion import (
    BODY_VELOCITY,
    CORIOLIS,
    GRAVITY,
    POSITION,
    TORQUE,
    VELOCITY,
    WRENCH,
)
from truesim.physics.simulation.joint_models.base import FRICTION, FRICTION_BOUND, LIMIT
from truesim.physics.simulation.passive import DAMPING, SPRING
from truesim.physics.simulation.sensors import ENCODER_POSITION, ENCODER_VELOCITY, MEASUREMENT
from truesim.physics.simulation.simulator import INERTIA_SCALE, VELOCITY_CHANGE, Simulator

STATE = (POSITION, VELOCITY, BODY_VELOCITY)
"""Ports of the state, known before anything is computed."""
CONTACT = (DEPTH, FRICTION_COEFFICIENT, CONTACT_VELOCITY, SLIP, NORMAL_FORCE, FRICTION_FORCE)
MEASURED = (MEASUREMENT, ENCODER_POSITION, ENCODER_VELOCITY)
"""Ports that are computed when sensors are read."""
PORTS = (
    *STATE,
    INERTIA_SCALE,
    *(COMMAND, LENGTH, SPEED, FORCE, MOTOR_TORQUE),
    *(SPRING, DAMPING, FRICTION_BOUND, FRICTION, LIMIT, GRAVITY, CORIOLIS, WRENCH, TORQUE, JOINT_INERTIA),
    *CONTACT,
    VELOCITY_CHANGE,
    *MEASURED,
)
"""Every port, in the order of a step."""


def _dofs(simulator: Simulator) -> tuple[str, ...]:
    model = simulator.model
    return tuple(
        model.joints.names[link.joint] for link in model.topology.links if link.joint >= 0 for _ in range(link.kind.nv)
    )


def _contacts(simulator: Simulator) -> tuple[str, ...]:
    if simulator.contact is None:
        return ()
    detector, geoms = simulator.contact.detector, simulator.model.geoms.names
    if detector.culls:
        return ("",) * detector.capacity
    pairs = ["-".join(geoms[g] for g in pair.geoms) for pair in detector.pairs]
    return tuple(pairs[k] for k in detector.pair_of_point())


ROWS: dict[str, Callable[[Simulator], tuple[str, ...]]] = {
    "dofs": _dofs,
    "actuators": lambda simulator: simulator.model.actuators.names,
    "bodies": lambda simulator: simulator.model.bodies.names,
    "contacts": _contacts,
    "channels": lambda simulator: tuple(
        sensor.name for sensor in simulator.model.sensors.declared for _ in sensor_columns(sensor)
    ),
    "coordinates": lambda simulator: tuple(column.split("/")[1] for column in position_columns(simulator.model)),
}
"""Name of every row of a port: joints, actuators, bodies, pairs of geoms, sensors."""


FORMER_NAMES = {"sensor.reading": MEASUREMENT.name}
"""Former names of ports, which blueprint files may still use."""


def current_name(name: str) -> str:
    """Name of a port, or of its previous value, in place of a former one."""
    late = PREVIOUS if name.startswith(PREVIOUS) else ""
    return late + FORMER_NAMES.get(name.removeprefix(late), name.removeprefix(late))


def port(name: str) -> Port:
    """Port of this name; former names still work."""
    for known in PORTS:
        if known.name == current_name(name):
            return known
    raise unknown_name("port", name, [known.name for known in PORTS])


def names(simulator: Simulator, port: Port) -> tuple[str, ...]:
    """Name of the object of each row; several rows may belong to the same joint or pair."""
    return ROWS[port.of](simulator)


def shape(simulator: Simulator, port: Port) -> tuple[int, ...]:
    """Shape of a port's value."""
    rows = len(names(simulator, port))
    return (rows, port.width) if port.components else (rows,)


def available(simulator: Simulator) -> tuple[Port, ...]:
    """Ports that have a value in this simulator."""
    return tuple(p for p in PORTS if absence(simulator, p) is None)


def absence(simulator: Simulator, port: Port) -> str | None:
    """Reason why a port has no value in this simulator; None if it has one."""
    if port in CONTACT:
        if simulator.contact is None:
            return "the simulator has no contact"
        if port not in simulator.contact.ports:
            solver = type(simulator.contact).__name__
            return f"{solver} finds it together with the step; CompliantContact computes it before"
        if port.components and max((p.dimension for p in simulator.contact.detector.pairs), default=0) < 3:
            return "all contacts are without friction"
    if port == FRICTION_BOUND and not simulator.joint_model.rough(simulator.model):
        return "no joint has dry friction that the joint model solves"
    if not names(simulator, port):
        return f"the robot has no {port.of}"
    return None


def check(simulator: Simulator, port: Port) -> None:
    """Refuse a port that has no value in this simulator, with the reason."""
    if (reason := absence(simulator, port)) is not None:
        valid = ", ".join(p.name for p in available(simulator))
        raise TruesimError(f"The port {port.name} has no value here: {reason}. Valid: {valid}.")


def precedes(simulator: Simulator, port: Port, output: Port) -> bool:
    """True if a port's value is known where another is computed; its own physical value is."""
    if port == JOINT_INERTIA or port.name in simulator.joint_model.solved:
        return False
    if output in MEASURED or port == INERTIA_SCALE:  # these are not part of the same evaluation
        return port in STATE or port == output
    rigid = simulator.impulse_contact is not None

    def place(port: Port) -> float:
        """Friction that is solved comes just before what the integrator adds, rigid contact last in a step."""
        if port == FRICTION_BOUND and FRICTION.name in simulator.joint_model.solved:
            return PORTS.index(VELOCITY_CHANGE) - 0.5
        return float(PORTS.index(port) + len(PORTS) * (rigid and port in CONTACT))

    return port not in MEASURED and place(port) <= place(output)
