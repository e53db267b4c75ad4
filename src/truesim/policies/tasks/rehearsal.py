"""Cheaper physics of a legged robot, in which training begins: only its feet touch the floor, by implicit contact.

A time step is a few linear solves without the search for active constraints, which takes most of the time of MuJoCo's
constraint model. What is learned there holds in MuJoCo already; the rest of training is done with the file's contact.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from truesim.physics.contact.detection import Detector
from truesim.physics.contact.models.compliant import with_compliance
from truesim.physics.contact.models.implicit_compliant import ImplicitCompliantContact
from truesim.physics.model.model import Model
from truesim.physics.simulation import Simulator

SINKING = 0.035
"""Depth to which feet sink under the standing robot, as a part of its height; larger is softer."""
DAMPING_RATE = 1.5
"""Damping of contact over its stiffness [s/m]: force grows by this part for each m/s of approach."""
SOLVES = 2
"""Linear solves of a time step; more follow friction more exactly."""


def rehearsal_simulator(simulator: Simulator, feet: tuple[int, ...], height: float) -> Simulator | None:
    """The robot with implicit compliant contact of its feet; None if they touch nothing that does not move.

    Args:
        simulator: The robot.
        feet: Geoms of the feet.
        height: Height of the standing robot [m].
    """
    model = simulator.model
    weight = float(np.sum(model.bodies.mass)) * float(jnp.linalg.norm(jnp.asarray(model.gravity)))
    stiffness = weight / len(feet) / (SINKING * height)
    soft = with_compliance(
        model, contact_stiffness=stiffness, contact_damping=DAMPING_RATE * stiffness, contact_exponent=1.0
    )
    contact = ImplicitCompliantContact.of(soft, iterations=SOLVES)
    pairs = tuple(pair for pair in contact.detector.pairs if _is_foot_on_floor(soft, pair.geoms, feet))
    if not pairs:
        return None
    detector = Detector(pairs, sum(pair.points for pair in pairs))
    contact = eqx.tree_at(lambda c: c.detector, contact, detector)
    return Simulator.of(soft, timestep=float(simulator.timestep), contact=contact)


def _is_foot_on_floor(model: Model, geoms: tuple[int, int], feet: tuple[int, ...]) -> bool:
    """True for a pair of a foot and a geom of the world."""
    first, second = geoms
    bodies = model.geoms.bodies
    return (first in feet and bodies[second] < 0) or (second in feet and bodies[first] < 0)
