"""Our side of the scenes with contact; masses are inputs of every kernel."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from truesim import native
from truesim.bench.ours import as_numpy, share
from truesim.bench.scenes import Scene, hit_chain, resting_cube, standing_quadruped
from truesim.bench.timing import Measured, best_seconds, elapsed
from truesim.contact import AbstractContact, ContactComplementarity, ContactCompliant
from truesim.formats.load import loads
from truesim.model import paths
from truesim.model.model import Model
from truesim.simulate import Simulator, State, rollout


@dataclass(frozen=True)
class Rollouts:
    """A step of a rollout with contact, an instance of a batch."""

    scene: Callable[[], Scene]
    contact: Callable[[Model], AbstractContact]
    batch: int = 1024
    steps: int = 100
    gradient: bool = False
    """Whether the gradient of a loss is taken, in masses, first state and commands."""

    def __call__(self, patience: float) -> Measured:
        """The time of a step of an instance."""
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


LANES = 64
"""Instances whose gradient is taken at once."""


MEASUREMENTS: dict[str, Callable[[float], Measured]] = {
    "cube": Rollouts(resting_cube, ContactComplementarity.of),
    "quadruped": Rollouts(standing_quadruped, ContactComplementarity.of),
    "quadruped compliant": Rollouts(standing_quadruped, ContactCompliant.of),
    "loss": Rollouts(standing_quadruped, ContactComplementarity.of, LANES),
    "gradient": Rollouts(standing_quadruped, ContactComplementarity.of, LANES, gradient=True),
    "chain": Rollouts(hit_chain, ContactComplementarity.of, steps=300),
}
