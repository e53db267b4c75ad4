"""Measurements of truesim on scenes with contact; masses are inputs of every kernel."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.ours import as_numpy, share
from benchmarks.scenes import Scene, hit_chain, resting_cube, standing_quadruped
from benchmarks.timing import Measured, best_seconds, elapsed
from truesim import native
from truesim.files.robots.load import loads
from truesim.physics.contact import AbstractContact, CompliantContact, RigidContact
from truesim.physics.model import paths
from truesim.physics.model.model import Model
from truesim.physics.simulation import Simulator, State, rollout


@dataclass(frozen=True)
class ContactRollouts:
    """Time of a rollout with contact, per step and batch element."""

    scene: Callable[[], Scene]
    contact: Callable[[Model], AbstractContact]
    batch: int = 1024
    steps: int = 100
    gradient: bool = False
    """True for the gradient of a loss with respect to masses, initial state and commands."""

    def __call__(self, patience: float) -> Measured:
        """Measure the time per step and batch element."""
        scene = self.scene()
        model = loads(scene.xml)
        for geom in scene.elastic:
            model = paths.write(model, f"geoms/{geom}.restitution", np.ones(()))
        simulator = as_numpy(Simulator.of(model, contact=self.contact(model)))
        q, command = np.array(scene.q, dtype=float), np.tile(np.array(scene.command), (self.steps, 1))
        example = simulator.model.bodies.mass, q, np.array(scene.v), command
        batch = example[0], np.tile(q, (self.batch, 1)), scene.velocities(self.batch), command

        def ends(mass: Any, q: Any, v: Any, commands: Any) -> Any:
            changed = eqx.tree_at(lambda s: s.model.bodies.mass, simulator, mass)
            path = rollout(changed, State(q, v, jnp.zeros(())), commands, keep=lambda state, _: state.q)[1]
            return jnp.sum(path**2), path[-1, 2]

        function = jax.value_and_grad(ends, argnums=(0, 1, 2, 3), has_aux=True) if self.gradient else ends
        compiled: list[Callable] = []
        compilation = elapsed(lambda: compiled.append(native.compile(function, *example)))
        found = compiled[0](*batch)
        scene.check(found[0][1] if self.gradient else found[1])
        seconds = best_seconds(lambda: compiled[0](*batch), patience)
        return share(Measured(seconds, compilation), self.batch * self.steps)


GRADIENT_BATCH = 64
"""Batch size of gradients."""


MEASUREMENTS: dict[str, Callable[[float], Measured]] = {
    "cube": ContactRollouts(resting_cube, RigidContact.of),
    "quadruped": ContactRollouts(standing_quadruped, RigidContact.of),
    "quadruped compliant": ContactRollouts(standing_quadruped, CompliantContact.of),
    "loss": ContactRollouts(standing_quadruped, RigidContact.of, GRADIENT_BATCH),
    "gradient": ContactRollouts(standing_quadruped, RigidContact.of, GRADIENT_BATCH, gradient=True),
    "chain": ContactRollouts(hit_chain, RigidContact.of, steps=300),
}
