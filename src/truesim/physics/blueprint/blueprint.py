"""Blueprint: networks within the physics, the ports that they read and the ports that they change."""

import dataclasses
import fnmatch
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.errors import TruesimError, unknown_name
from truesim.core.tap import Port
from truesim.physics.augmentation.heads import HEADS, AbstractHead
from truesim.physics.augmentation.learned import JOINT_INERTIA, LearnedPhysics, PortNetwork
from truesim.physics.augmentation.memory import PREVIOUS
from truesim.physics.augmentation.networks import MLP, AbstractRecipe, AbstractRecurrent, Constant, double
from truesim.physics.blueprint import ports
from truesim.physics.simulation.integrators import Implicit
from truesim.physics.simulation.joint_models.base import FRICTION_BOUND
from truesim.physics.simulation.simulator import INERTIA_SCALE, Simulator

MODES = ("residual", "replace", "scale")
RECURRENT = ("gru", "lagged")
"""Kinds of networks with a state."""
TIMESTEP_TOLERANCE = 1e-3
"""Relative difference of time steps up to which they count as equal; larger accepts more."""
SHARING_MODES = ("shared", "each", "whole")


@dataclasses.dataclass(frozen=True)
class Rule:
    """A network at one port.

    With y the network's output: `residual` adds it to the value, `replace` puts it in the value's place, `scale`
    multiplies the value by `1 + y`.
    """

    output: str
    """Port that it changes."""
    inputs: tuple[str, ...] = ()
    """Ports that it reads; `previous <port>` is the value of the previous step."""
    network: Any = dataclasses.field(default_factory=MLP)
    """A recipe (`MLP`, `GRU`, `Constant`), or any module that maps a vector to a vector."""
    mode: str = "residual"
    sharing: str = "shared"
    """`shared`: one network serves every row. `each`: every row has one of its own. `whole`: one sees all at once."""
    names: tuple[str, ...] = ("*",)
    """Joints, bodies, actuators or pairs of geoms that it acts on; `*` stands for any text."""
    head: str | None = None
    """`dissipative`, `conservative` or `kinetic`: a physical property that holds whatever its weights are."""
    name: str = ""
    """Name of the rule; the output by default."""
    scales: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Typical magnitude of an input [its unit]; 1 by default."""
    size: float = 1.0
    """Typical magnitude of the network's output [the port's unit]."""
    penalty: float = 100.0
    """R: weight of the squared changes of its weights, relative to squared residuals in units of their noise."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name or self.output)
        object.__setattr__(self, "output", ports.current_name(self.output))
        object.__setattr__(self, "inputs", tuple(ports.current_name(name) for name in self.inputs))
        object.__setattr__(self, "scales", {ports.current_name(name): s for name, s in self.scales.items()})
        object.__setattr__(self, "names", tuple(self.names))
        for kind, value, valid in (("mode", self.mode, MODES), ("sharing", self.sharing, SHARING_MODES)):
            if value not in valid:
                raise unknown_name(kind, value, valid)
        if self.head is not None and self.head not in HEADS:
            raise unknown_name("head", self.head, HEADS)
        for name in self.scales:
            if name not in self.inputs:
                raise unknown_name(f"input of the rule {self.name} to scale", name, set(self.inputs))
        if not self.penalty >= 0:
            raise TruesimError(f"The penalty of the rule {self.name} is {self.penalty:g}; it must not be negative.")
        if not self.size > 0 or any(not s > 0 for s in self.scales.values()):
            raise TruesimError(
                f"The sizes in the rule {self.name} are {self.size:g}, {dict(self.scales)}; they must be above zero."
            )


@dataclasses.dataclass(frozen=True)
class Blueprint:
    """Rules, in the order in which they act."""

    rules: tuple[Rule, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", tuple(self.rules))
        names = [rule.name for rule in self.rules]
        if len(set(names)) < len(names):
            raise TruesimError(f"Two rules are named {max(names, key=names.count)!r}; give one of them a name.")

    def build(self, simulator: Simulator) -> LearnedPhysics:
        """Build the networks for a simulator; a mistake in a rule raises an error with the valid choices."""
        networks = tuple(_built(simulator, rule) for rule in self.rules)
        late = dict.fromkeys(
            x.removeprefix(PREVIOUS) for rule in self.rules for x in rule.inputs if x.startswith(PREVIOUS)
        )
        return LearnedPhysics(networks, tuple((name, ports.shape(simulator, ports.port(name))) for name in late))


def _built(simulator: Simulator, rule: Rule) -> PortNetwork:
    output = ports.port(rule.output)
    ports.check(simulator, output)
    _check_step(simulator, rule)
    _check_output(simulator, rule, output)
    rows = _rows(simulator, rule, output)
    inputs = [_input(simulator, rule, name, output) for name in rule.inputs]
    head = None if rule.head is None else HEADS[rule.head]
    if head is not None:
        _check_head(simulator, rule, output, head)
    beside = tuple(p.of != output.of for p in inputs)
    if rule.sharing == "whole":
        features = sum(
            p.width * len(ports.names(simulator, p) if b else rows) for p, b in zip(inputs, beside, strict=True)
        )
        size = output.width * len(rows)
    else:
        features, size = sum(p.width for p in inputs), output.width
    outputs = size if head is None else head.outputs(size)
    network = PortNetwork(
        net=_network(rule, features, outputs, len(rows)),
        name=rule.name,
        output=output.name,
        inputs=rule.inputs,
        mode=rule.mode,
        sharing=rule.sharing,
        rows=tuple(rows),
        every=len(rows) == len(ports.names(simulator, output)),
        beside=beside,
        scales=tuple(float(rule.scales.get(name, 1.0)) for name in rule.inputs),
        size=float(rule.size),
        head=head,
        velocity=output.velocity if rule.head == "dissipative" else None,
    )
    late = any(name.startswith(PREVIOUS) for name in rule.inputs)
    if (network.recurrent or late) and output in (INERTIA_SCALE, *ports.MEASURED):
        raise TruesimError(f"{output.name} is not computed within a step: a network there cannot have memory.")
    return network


def _check_step(simulator: Simulator, rule: Rule) -> None:
    """Refuse a network whose memory counts steps of another length."""
    step = rule.network.step if isinstance(rule.network, AbstractRecipe) else None
    own = float(simulator.timestep)
    if step is not None and abs(own / step - 1) > TIMESTEP_TOLERANCE:
        raise TruesimError(
            f"The network {rule.name} was made for steps of {step:g} s; the simulator's are {own:g} s."
            " Set the time step of the robot, or train a network for this one."
        )


def _check_output(simulator: Simulator, rule: Rule, output: Port) -> None:
    if not output.writable:
        valid = ", ".join(p.name for p in ports.available(simulator) if p.writable)
        raise TruesimError(f"{output.name} is part of the state and cannot be changed. Valid: {valid}.")
    if output.name in simulator.joint_model.solved and rule.mode != "residual":
        solver = type(simulator.joint_model).__name__
        raise TruesimError(
            f"{solver} finds {output.name} together with the acceleration: it takes a residual, not {rule.mode!r}. "
            "Set the joints' own friction (limits) to zero, or use SmoothJointModel."
        )


def _rows(simulator: Simulator, rule: Rule, output: Port) -> list[int]:
    known = ports.names(simulator, output)
    for pattern in rule.names:
        if not any(fnmatch.fnmatchcase(name, pattern) for name in known):
            raise unknown_name(f"row of {output.name}", pattern, set(known))
    rows = [i for i, name in enumerate(known) if any(fnmatch.fnmatchcase(name, p) for p in rule.names)]
    if output == FRICTION_BOUND:
        rows = _rough(simulator, rule, known, rows)
    culled = output.of == "contacts" and simulator.contact is not None and simulator.contact.detector.culls
    if culled and (len(rows) < len(known) or rule.sharing == "each"):
        raise TruesimError("Contact points that are culled have no fixed pair: use one shared network for all of them.")
    return rows


def _rough(simulator: Simulator, rule: Rule, known: tuple[str, ...], rows: list[int]) -> list[int]:
    """Rows that have dry friction."""
    rough = simulator.joint_model.rough(simulator.model)
    found = [d for d in rows if d in rough]
    if not found:
        raise TruesimError(
            f"The joints {', '.join(rule.names)} of the rule {rule.name} have no dry friction; those that have some: "
            f"{', '.join(dict.fromkeys(known[d] for d in rough))}. A frictionloss above zero, or a free one, gives it."
        )
    return found


def _input(simulator: Simulator, rule: Rule, name: str, output: Port) -> Port:
    """Port that a rule reads, checked."""
    late, found = name.startswith(PREVIOUS), ports.port(name.removeprefix(PREVIOUS))
    ports.check(simulator, found)
    earlier = [p for p in ports.available(simulator) if rule.sharing == "whole" or p.of == output.of]
    if found.of != output.of and rule.sharing != "whole":
        valid = ", ".join(p.name for p in earlier)
        raise TruesimError(
            f"{found.name} has a row for each of the {found.of}, {output.name} for each of the {output.of}: in "
            f"the rule {rule.name} only the sharing 'whole' can read it. Valid for {rule.sharing!r}: {valid}."
        )
    if late:
        return _kept(simulator, found)
    earlier = [p for p in earlier if ports.precedes(simulator, p, output)]
    if found not in earlier:
        valid = ", ".join(p.name for p in earlier)
        raise TruesimError(
            f"{found.name} is not known yet where {output.name} is computed. "
            f"Valid: {valid}, and values of the step before, such as {PREVIOUS + found.name!r}."
        )
    return found


def _kept(simulator: Simulator, port: Port) -> Port:
    """Port whose value is kept from step to step, checked."""
    if port in (*ports.MEASURED, JOINT_INERTIA, INERTIA_SCALE) or port.name in simulator.joint_model.solved:
        raise TruesimError(f"{port.name} is not kept from step to step: {PREVIOUS + port.name!r} has no value.")
    return port


def _check_head(simulator: Simulator, rule: Rule, output: Port, head: AbstractHead) -> None:
    if rule.mode != "residual":
        raise TruesimError(f"A {head.name} head is a residual; the rule {rule.name} says {rule.mode!r}.")
    if head.inputs is not None and rule.inputs != head.inputs:
        raise TruesimError(
            f"A {head.name} head reads {', '.join(head.inputs)} and nothing else; the rule {rule.name} reads "
            f"{', '.join(rule.inputs) or 'nothing'}."
        )
    if isinstance(rule.network, AbstractRecurrent) or getattr(rule.network, "kind", "") in RECURRENT:
        raise TruesimError(f"A {head.name} head takes no recurrent network.")
    writable = [p for p in ports.available(simulator) if p.writable]
    if head.name == "dissipative" and output.velocity is None:
        valid = ", ".join(p.name for p in writable if p.velocity is not None)
        raise TruesimError(f"{output.name} is no force: nothing says what power it has. Valid: {valid}.")
    if head.name == "conservative" and (output.of != "dofs" or output.velocity is None):
        valid = ", ".join(p.name for p in writable if p.of == "dofs" and p.velocity is not None)
        raise TruesimError(f"A potential of the joints' positions is a torque of the joints. Valid: {valid}.")
    if (head.name == "kinetic") != (output == JOINT_INERTIA):
        raise TruesimError(f"The port {JOINT_INERTIA.name} and the kinetic head belong together.")
    if head.name == "kinetic":
        _check_kinetic(simulator)


def _check_kinetic(simulator: Simulator) -> None:
    """Refuse simulators that compute the mass matrix by themselves."""
    if simulator.model.nq != simulator.model.nv:
        raise TruesimError(f"{JOINT_INERTIA.name} is for robots with hinges and slides only.")
    rigid = simulator.impulse_contact is not None
    if simulator.joint_model.solved or rigid or isinstance(simulator.integrator, Implicit):
        raise TruesimError(
            f"{JOINT_INERTIA.name} cannot act where friction, limits or contact are solved as constraints, nor with the"
            " integrator 'implicit'; use SmoothJointModel and another integrator."
        )


def _network(rule: Rule, inputs: int, outputs: int, rows: int) -> eqx.Module:
    """Network of a rule with these sizes, checked; one for each row if the rule says so."""
    if not inputs and not isinstance(rule.network, Constant):
        raise TruesimError(f"The rule {rule.name} reads nothing; name inputs, or use a Constant network.")
    if isinstance(rule.network, AbstractRecipe):
        silent = rule.mode != "replace"
        network = rule.network.make(inputs, outputs, silent=silent)
    else:
        network = double(rule.network)
    _check_sizes(rule, network, inputs, outputs)
    if rule.sharing != "each":
        return network
    return jax.tree.map(lambda x: np.stack([x] * rows) if eqx.is_inexact_array(x) else x, network)


def _check_sizes(rule: Rule, network: Any, inputs: int, outputs: int) -> None:
    """Refuse a network whose inputs or outputs do not have the sizes of its ports."""
    x = jnp.zeros(inputs)
    try:
        if isinstance(network, AbstractRecurrent):
            given = eqx.filter_eval_shape(network, x, jnp.zeros(network.hidden))[0].shape
        else:
            given = eqx.filter_eval_shape(network, x).shape
    except (TypeError, ValueError) as error:
        read = ", ".join(rule.inputs)
        raise TruesimError(
            f"The network of the rule {rule.name} does not take {inputs} numbers ({read}): {str(error).splitlines()[0]}"
        ) from None
    if given != (outputs,):
        raise TruesimError(
            f"The network of the rule {rule.name} gives an array of shape {given}; "
            f"{rule.output} needs ({outputs},)" + (f" for a {rule.head} head." if rule.head else ".")
        )
