"""The ports of a simulator, in the order in which a step computes them, and what has a row in each."""

from collections.abc import Callable

from truesim.actuators.forces import COMMAND, FORCE, LENGTH, MOTOR_TORQUE, SPEED
from truesim.contact.base import DEPTH, FRICTION_COEFFICIENT
from truesim.contact.compliant import FRICTION_FORCE, NORMAL_FORCE, SLIP
from truesim.contact.compliant import VELOCITY as CONTACT_VELOCITY
from truesim.core.errors import TruesimError, unknown_name
from truesim.core.tap import Port
from truesim.data import position_columns, sensor_columns
from truesim.simulate.augment.learned import INERTIA
from truesim.simulate.equation import BODY_VELOCITY, CORIOLIS, GRAVITY, POSITION, TORQUE, VELOCITY, WRENCH
from truesim.simulate.joint_laws.base import FRICTION, FRICTION_BOUND, LIMIT
from truesim.simulate.passive import DAMPING, SPRING
from truesim.simulate.sensors import ENCODER_POSITION, ENCODER_VELOCITY, READING
from truesim.simulate.simulator import INERTIA_SCALE, VELOCITY_CHANGE, Simulator

STATE = (POSITION, VELOCITY, BODY_VELOCITY)
"""What is known before anything is computed."""
CONTACT = (DEPTH, FRICTION_COEFFICIENT, CONTACT_VELOCITY, SLIP, NORMAL_FORCE, FRICTION_FORCE)
READINGS = (READING, ENCODER_POSITION, ENCODER_VELOCITY)
"""What is computed when sensors are read, from the state and from what actuators do."""
PORTS = (
    *STATE,
    INERTIA_SCALE,
    *(COMMAND, LENGTH, SPEED, FORCE, MOTOR_TORQUE),
    *(SPRING, DAMPING, FRICTION_BOUND, FRICTION, LIMIT, GRAVITY, CORIOLIS, WRENCH, TORQUE, INERTIA),
    *CONTACT,
    VELOCITY_CHANGE,
    *READINGS,
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


def port(name: str) -> Port:
    """The port of this name."""
    for known in PORTS:
        if known.name == name:
            return known
    raise unknown_name("port", name, [known.name for known in PORTS])


def names(simulator: Simulator, port: Port) -> tuple[str, ...]:
    """What each row of a port belongs to; several rows may belong to the same joint or pair."""
    return ROWS[port.of](simulator)


def shape(simulator: Simulator, port: Port) -> tuple[int, ...]:
    """Shape of a port's value."""
    rows = len(names(simulator, port))
    return (rows, port.width) if port.components else (rows,)


def available(simulator: Simulator) -> tuple[Port, ...]:
    """The ports that have any row in this simulator."""
    return tuple(p for p in PORTS if absence(simulator, p) is None)


def absence(simulator: Simulator, port: Port) -> str | None:
    """Why a port has no value in this simulator; None if it has one."""
    if port in CONTACT:
        if simulator.contact is None:
            return "the simulator has no contact"
        if port not in simulator.contact.ports:
            law = type(simulator.contact).__name__
            return f"{law} finds it together with the step; ContactCompliant computes it before"
        if port.components and max((p.dimension for p in simulator.contact.detector.pairs), default=0) < 3:
            return "all contacts are without friction"
    if port == FRICTION_BOUND and not simulator.joint_law.rough(simulator.model):
        return "no joint has dry friction that the joint law finds"
    if not names(simulator, port):
        return f"the robot has no {port.of}"
    return None


def check(simulator: Simulator, port: Port) -> None:
    """Refuses a port that has no value in this simulator, and says why."""
    if (reason := absence(simulator, port)) is not None:
        valid = ", ".join(p.name for p in available(simulator))
        raise TruesimError(f"The port {port.name} has no value here: {reason}. Valid: {valid}.")


def precedes(simulator: Simulator, port: Port, output: Port) -> bool:
    """Whether a port's value is known where another is computed; its own, as physics has it, is."""
    if port == INERTIA or port.name in simulator.joint_law.solved:
        return False
    if output in READINGS or port == INERTIA_SCALE:  # these are not part of the same evaluation
        return port in STATE or port == output
    rigid = simulator.contact is not None and not simulator.contact.is_smooth

    def place(port: Port) -> float:
        """Friction that is solved comes just before what the integrator adds, rigid contact last in a step."""
        if port == FRICTION_BOUND and FRICTION.name in simulator.joint_law.solved:
            return PORTS.index(VELOCITY_CHANGE) - 0.5
        return PORTS.index(port) + len(PORTS) * (rigid and port in CONTACT)

    return port not in READINGS and place(port) <= place(output)
