"""From a candidate to a rule that is ready for training."""

import dataclasses

import numpy as np

from truesim.core.typing import Float
from truesim.identify.suggest.candidates import Candidate
from truesim.identify.suggest.probe import Passage
from truesim.identify.suggest.rank import Ranked
from truesim.identify.suggest.track import Track
from truesim.simulate import MLP, Blueprint, Constant, Rule
from truesim.simulate.augment import ports
from truesim.simulate.augment.memory import PREVIOUS
from truesim.simulate.augment.networks import AbstractRecipe

DIGITS = 2
"""Of sizes in a blueprint."""


@dataclasses.dataclass(frozen=True)
class Form:
    """What kind of network learns a kind of disturbance."""

    network: AbstractRecipe
    head: str | None = None
    sharing: str = "each"
    inputs: bool = True
    """Whether it reads the candidate's inputs."""


FORMS = {
    "viscous damping": Form(MLP(hidden=(), bias=False)),
    "dry friction": Form(MLP(hidden=(12,))),
    "friction under load": Form(MLP(hidden=(8,))),
    "linear spring": Form(MLP(hidden=())),
    "spring": Form(MLP(hidden=(8,)), head="conservative"),
    "stop": Form(MLP(hidden=(8,))),
    "drag": Form(MLP(hidden=(8,)), head="dissipative"),
    "lag": Form(MLP(hidden=(), bias=False)),
    "motor curve": Form(MLP(hidden=(8,))),
    "friction": Form(MLP(hidden=(8,)), sharing="shared"),
    "normal force": Form(MLP(hidden=(8,)), sharing="shared"),
    "encoder error": Form(MLP(hidden=(8,)), sharing="whole"),
}
"""By the candidate's kind; terms that are wrong by a factor have a constant each."""
FACTOR = Form(Constant(), inputs=False)


def rule(track: Track, passage: Passage, found: Ranked, torque: float) -> Rule:
    """The rule of a candidate.

    Args:
        track: The track.
        passage: What passed the ports along it.
        found: The candidate, with the rows that matter.
        torque: Typical size of the disturbance [N m or N, or of a reading].
    """
    candidate, simulator = found.candidate, track.problem.simulator
    form = FORMS.get(candidate.kind, FACTOR)
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
        size=1.0 if not form.inputs else _rounded(torque / _leverage(passage, candidate)),
    )


def blueprint(rules: list[Rule]) -> Blueprint:
    """A blueprint of one rule each."""
    return Blueprint(tuple(rules))


def _size(values: Float[np.ndarray, "..."]) -> float:
    return _rounded(float(np.sqrt(np.mean(values**2))))


def _leverage(passage: Passage, candidate: Candidate) -> float:
    """Torque that one unit of the port makes."""
    J = passage.torque.get(candidate.port)
    return 1.0 if J is None else max(float(np.sqrt(np.mean(J[J != 0] ** 2))) if np.any(J) else 0.0, 1e-6)


def _rounded(x: float) -> float:
    return float(f"{x:.{DIGITS}g}") if x > 0 else 1.0
