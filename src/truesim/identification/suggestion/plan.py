"""Blueprint rule of a candidate, ready for training."""

import dataclasses

import numpy as np

from truesim.core.typing import Float
from truesim.identification.suggestion.candidates import Candidate
from truesim.identification.suggestion.kinds import DisturbanceKind
from truesim.identification.suggestion.probe import PortValues
from truesim.identification.suggestion.rank import RankedCandidate
from truesim.identification.suggestion.track import Track
from truesim.physics.augmentation.memory import PREVIOUS
from truesim.physics.augmentation.networks import AbstractRecipe
from truesim.physics.blueprint import MLP, Constant, Rule, ports

SCALE_DIGITS = 2
"""Significant digits of scales in a blueprint."""


@dataclasses.dataclass(frozen=True)
class NetworkForm:
    """Network that learns a kind of disturbance."""

    network: AbstractRecipe
    head: str | None = None
    sharing: str = "each"
    inputs: bool = True
    """True if the network reads the inputs of the candidate."""


NETWORK_FORMS = {
    DisturbanceKind.VISCOUS_DAMPING: NetworkForm(MLP(hidden=(), bias=False)),
    DisturbanceKind.JOINT_FRICTION: NetworkForm(MLP(hidden=(12,))),
    DisturbanceKind.LOADED_FRICTION: NetworkForm(MLP(hidden=(8,))),
    DisturbanceKind.LINEAR_SPRING: NetworkForm(MLP(hidden=())),
    DisturbanceKind.SPRING: NetworkForm(MLP(hidden=(8,)), head="conservative"),
    DisturbanceKind.JOINT_LIMIT: NetworkForm(MLP(hidden=(8,))),
    DisturbanceKind.DRAG: NetworkForm(MLP(hidden=(8,)), head="dissipative"),
    DisturbanceKind.LAG: NetworkForm(MLP(hidden=(), bias=False)),
    DisturbanceKind.MOTOR_CURVE: NetworkForm(MLP(hidden=(8,))),
    DisturbanceKind.CONTACT_FRICTION: NetworkForm(MLP(hidden=(8,)), sharing="shared"),
    DisturbanceKind.NORMAL_FORCE: NetworkForm(MLP(hidden=(8,)), sharing="shared"),
    DisturbanceKind.ENCODER_ERROR: NetworkForm(MLP(hidden=(8,)), sharing="whole"),
}
"""Network by kind of disturbance."""
FACTOR_FORM = NetworkForm(Constant(), inputs=False)
"""Network of terms that are wrong by a factor."""


def rule(track: Track, passage: PortValues, found: RankedCandidate, torque: float) -> Rule:
    """Rule of a candidate.

    Args:
        track: The track.
        passage: Values of the ports along it.
        found: The candidate with its relevant rows.
        torque: Root mean square of the disturbance [N m or N, or the unit of a measurement].
    """
    candidate, simulator = found.candidate, track.problem.simulator
    form = NETWORK_FORMS.get(candidate.kind, FACTOR_FORM)
    names = ports.names(simulator, ports.port(candidate.port))
    sharing = form.sharing
    everything = len(found.names) == len(set(names)) or sharing == "whole"
    if candidate.port.startswith("contact."):
        culls = simulator.contact is not None and simulator.contact.detector.culls
        sharing, everything = "shared", everything or culls
    if len(found.names) == 1 and not everything:
        sharing = "shared"
    inputs = candidate.inputs if form.inputs else ()
    return Rule(
        output=candidate.port,
        inputs=inputs,
        network=form.network,
        mode=candidate.mode,
        sharing=sharing,
        names=("*",) if everything else found.names,
        head=form.head,
        scales={name: _size(passage.values[name.removeprefix(PREVIOUS)]) for name in inputs},
        size=1.0 if not form.inputs else _round(torque / _leverage(passage, candidate)),
    )


def _size(values: Float[np.ndarray, "..."]) -> float:
    return _round(float(np.sqrt(np.mean(values**2))))


def _leverage(passage: PortValues, candidate: Candidate) -> float:
    """Torque of one unit of the port."""
    J = passage.torque.get(candidate.port)
    return 1.0 if J is None else max(float(np.sqrt(np.mean(J[J != 0] ** 2))) if np.any(J) else 0.0, 1e-6)


def _round(x: float) -> float:
    return float(f"{x:.{SCALE_DIGITS}g}") if x > 0 else 1.0
