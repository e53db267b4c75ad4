"""Compliant cubes that are compared: analytic friction, and a network in its place.

All have the same normal force, `x^n max(k + d s, 0)`, whose three numbers are free. Analytic friction is one of the
library's friction models with its own parameters. The network replaces the port `contact.friction_force`; its inputs
are slip, normal force and depth of one contact, and all contacts share it.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from experiments.cube_throw.scene import FRICTION, SUBSTEPS, TIMESTEP
from truesim.core.typing import Array, Float
from truesim.physics.blueprint import MLP, Blueprint, Rule
from truesim.physics.contact import CompliantContact
from truesim.physics.contact.models.friction_models import MIN_SLIP_SPEED, AbstractFrictionModel
from truesim.physics.model.model import Model
from truesim.physics.simulation import Simulator

NORMAL = {"contact_stiffness": (2e4, 1e3, 1e7), "contact_damping": (2e4, 1e2, 1e8), "contact_exponent": (1.5, 1.0, 3.0)}
"""Start and bounds of the normal force's numbers [SI units]."""
SLIDING = {"transition_speed": (0.05, 1e-3, 1.0), "breakaway": (1.1, 1.0, 2.0)}
"""The same of friction's [m/s and 1]."""
COEFFICIENT = (FRICTION, 0.1, 2.0)
INPUTS = ("contact.slip", "contact.normal_force", "contact.depth")
SPEED, FORCE, DEPTH, KNEE = 0.1, 100.0, 0.01, 0.05
"""Typical sizes: slip [m/s], normal force [N], overlap [m], speed at which friction is developed [m/s]."""

HIDDEN, WIDEST = 4, 6.0
"""Size of the network's hidden layer, and bound of its weights."""


class IsotropicFriction(eqx.Module):
    """Friction opposite to the slip, bounded by a learned fraction of the normal force, so that it is dissipative.

    `f = -c f_n tanh(s / s_0) slip / s` where a network gives the coefficient c and the speed s_0 as functions of slip
    speed s, normal force f_n and overlap; with all weights zero they are constants.
    """

    net: eqx.Module

    def __call__(self, x: Float[Array, "4"]) -> Float[Array, "2"]:
        """Force along two tangents [N], from slip [m/s], normal force [N] and overlap [m]."""
        slip, normal, depth = x[:2], jnp.maximum(x[2], 0.0), jnp.maximum(x[3], 0.0)
        speed = jnp.sqrt(slip @ slip + MIN_SLIP_SPEED**2)
        seen = jnp.stack([jnp.log1p(speed / SPEED), jnp.log1p(normal / FORCE), jnp.log1p(depth / DEPTH)])
        coefficient, knee = jnp.exp(self.net(seen))
        return -FRICTION * coefficient * normal * jnp.tanh(speed / (KNEE * knee)) / speed * slip


class Compliant(NamedTuple):
    """A family of compliant cubes, one for each vector of numbers."""

    simulator: Callable[[Float[Array, " size"]], Simulator]
    start: Float[np.ndarray, " size"]
    low: Float[np.ndarray, " size"]
    high: Float[np.ndarray, " size"]
    names: tuple[str, ...]
    """Names of the parameters with a logarithmic scale, which come first."""


def analytic(model: Model, friction: AbstractFrictionModel) -> Compliant:
    """Analytic friction: coefficient, transition speed, breakaway, and the friction model's own parameters."""
    fields = {**NORMAL, **SLIDING}
    own, friction_of = ravel_pytree(friction)
    positive = np.array([*fields.values(), COEFFICIENT, *((x, x / 4, 4 * x) for x in np.asarray(own, float))])
    bare = _bare(model, friction)

    def simulator(numbers: Array) -> Simulator:
        values = jnp.exp(numbers)
        n = len(fields)
        coefficients = jnp.asarray(model.geoms.friction).at[:, 0].set(values[n])
        changed = eqx.tree_at(lambda m: m.geoms.friction, _with(model, fields, values[:n]), coefficients)
        contact = eqx.tree_at(lambda c: c.friction_model, bare.contact, friction_of(values[n + 1 :]))
        return eqx.tree_at(lambda s: (s.model, s.contact), bare, (changed, contact))

    names = (*fields, "friction", *(f"{type(friction).__name__} {k + 1}" for k in range(len(own))))
    return Compliant(simulator, *np.log(positive).T, names)


def learned(model: Model, seed: int = 0) -> Compliant:
    """Friction by a network with one hidden layer whose output is initially zero: Coulomb friction."""
    network = IsotropicFriction(MLP([HIDDEN], seed=seed).make(len(INPUTS), 2, silent=True))
    bare = _bare(model).augmented(Blueprint([Rule("contact.friction_force", INPUTS, network, mode="replace")]))
    weights = np.asarray(bare.learned.weights(0), float)
    start, low, high = np.log(np.array([*NORMAL.values()])).T

    def simulator(numbers: Array) -> Simulator:
        changed = _with(model, NORMAL, jnp.exp(numbers[: len(NORMAL)]))
        return bare.with_parts(changed, bare.learned.with_weights(0, numbers[len(NORMAL) :]))

    wide = np.full(len(weights), WIDEST)
    bounds = [np.concatenate(pair) for pair in ((start, weights), (low, -wide), (high, wide))]
    return Compliant(simulator, *bounds, tuple(NORMAL))


def as_network(model: Model, numbers: Float[np.ndarray, "6"], seed: int) -> Float[np.ndarray, " size"]:
    """Parameters of a network that reproduces Brown's model with these parameters, without breakaway."""
    start = learned(model, seed).start.copy()
    transition, _, coefficient = np.exp(numbers[len(NORMAL) :])
    start[: len(NORMAL)] = numbers[: len(NORMAL)]
    start[-2:] = np.log([coefficient / FRICTION, transition / 4 / KNEE])
    return start


def _bare(model: Model, friction: AbstractFrictionModel | None = None) -> Simulator:
    contact = CompliantContact.of(model, friction_model=friction)
    return Simulator.of(model, contact=contact, timestep=TIMESTEP / SUBSTEPS)


def _with(model: Model, fields: dict, values: Float[Array, " fields"]) -> Model:
    """The same numbers for all geoms."""
    everywhere = tuple(jnp.full(len(model.geoms.names), value) for value in values)
    return eqx.tree_at(lambda m: tuple(getattr(m.geoms, name) for name in fields), model, everywhere)
