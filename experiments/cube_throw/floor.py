"""Lower bound on the error of any friction model: the friction of every contact is free in every step.

Each contact adds to the friction model's force its normal force times two free numbers, new in every step of the
compliant model. Every output of a network at this port has this form: with the same normal force, no network can have
a lower cost than the minimum found here. Derivatives of one step are chained, `X <- A X + B`.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from experiments.cube_throw.models import Compliant
from experiments.cube_throw.scene import SUBSTEPS
from experiments.cube_throw.windows import Windows
from truesim import native
from truesim.core.typing import Array, Float
from truesim.physics.blueprint import Blueprint, Rule
from truesim.physics.simulation import State

FIRST = 1e-4
"""Damping of the first iteration."""


class FreeFriction(eqx.Module):
    """Friction as free fractions of the normal forces."""

    shares: Float[Array, "contacts 2"]

    def __call__(self, normal: Float[Array, " contacts"]) -> Float[Array, " forces"]:
        """Forces along two tangents of every contact [N]."""
        return jnp.ravel(self.shares * normal[:, None])


class FreeSteps:
    """One step of a compliant cube with free friction, and its derivatives; windows are batch elements."""

    def __init__(self, family: Compliant, contacts: int = 8):
        free = FreeFriction(np.zeros((contacts, 2)))
        rule = Rule("contact.friction_force", ("contact.normal_force",), free, sharing="whole")
        learned = Blueprint([rule]).build(family.simulator(family.start))
        self.inputs = 2 * contacts

        def step(numbers: Array, x: Array, u: Array) -> Array:
            simulator = family.simulator(numbers)
            simulator = simulator.with_parts(simulator.model, learned.with_weights(0, u))
            after = simulator.step(State(x[:7], x[7:], jnp.zeros(())), jnp.zeros(0), simulator.constants())[0]
            return jnp.concatenate([after.q, after.v])

        def along(numbers: Array, x: Array, u: Array, dx: Array, du: Array) -> tuple[Array, Array]:
            return jax.jvp(lambda x, u: step(numbers, x, u), (x, u), (dx, du))

        x, u = np.zeros(13), np.zeros(self.inputs)
        with jax.enable_x64(True):
            self._along = native.compile(along, family.start, x, u, x, u)

    def motion(self, numbers: np.ndarray, windows: Windows, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Configurations after every step of the reference, and their derivatives by all of u."""
        count, steps = windows.motion.shape[:2]
        x, X, basis = np.hstack([windows.q, windows.v]), np.zeros((count, 13, u[0].size)), np.eye(13 + self.inputs)
        dx, du = (np.tile(b, (count, 1)) for b in (basis[:, :13], basis[:, 13:]))
        motion, derivatives = [], []
        for k in range(steps * SUBSTEPS):
            at = (np.repeat(a, len(basis), axis=0) for a in (x, u[:, k]))
            after, tangent = self._along(np.tile(numbers, (len(dx), 1)), *at, dx, du)
            x, AB = after[:: len(basis)], tangent.reshape(count, len(basis), 13).transpose(0, 2, 1)
            X = AB[:, :, :13] @ X
            X[:, :, k * self.inputs : (k + 1) * self.inputs] += AB[:, :, 13:]
            if (k + 1) % SUBSTEPS == 0:
                motion.append(x[:, :7])
                derivatives.append(X[:, :7])
        return np.stack(motion, 1), np.concatenate(derivatives, 1)

    def floor(
        self, numbers: Float[np.ndarray, " size"], windows: Windows, iterations: int = 20
    ) -> Float[np.ndarray, "windows steps 7"]:
        """Configurations with optimal friction: Levenberg-Marquardt in each window, started at the friction model's."""
        count, steps = windows.motion.shape[:2]
        u = np.zeros((count, steps * SUBSTEPS, self.inputs))
        move, cost, damping = np.zeros_like(u), np.full(count, np.inf), np.full(count, FIRST)
        kept, r, J = (
            np.zeros_like(windows.motion),
            np.zeros((count, 7 * steps)),
            np.zeros((count, 7 * steps, u[0].size)),
        )
        for _ in range(iterations):
            motion, derivatives = self.motion(numbers, windows, u + move)
            new = (motion - windows.motion).reshape(count, -1)
            better = np.sum(new**2, 1) / 2 < cost
            u[better] += move[better]
            kept[better], r[better], J[better] = motion[better], new[better], derivatives[better]
            cost, damping = np.sum(r * r, 1) / 2, damping * np.where(better, 0.2, 4.0)
            among = J @ J.transpose(0, 2, 1) + damping[:, None, None] * np.eye(r.shape[1])
            move = -(J.transpose(0, 2, 1) @ np.linalg.solve(among, r[:, :, None])).reshape(u.shape)
        return kept
