"""Sensitivity of an arm's final configuration to all masses and dampings, in one forward-mode pass."""

from importlib import resources

import equinox as eqx
import jax
import jax.numpy as jnp

import truesim as ts

jax.config.update("jax_enable_x64", True)

model = ts.load(resources.files("truesim") / "files" / "robots" / "arm.xml")
simulator = ts.Simulator.of(model)
commands = jnp.tile(jnp.array([0.9, 0.7, 0.9, 0.4]), (250, 1))


def end(mass: jax.Array, damping: jax.Array) -> jax.Array:
    """Joint angles after half a second."""
    changed = eqx.tree_at(lambda s: (s.model.bodies.mass, s.model.joints.damping), simulator, (mass, damping))
    state, _ = ts.rollout(changed, simulator.initial_state(), commands)
    return state.q


by_mass, by_damping = jax.jit(jax.jacfwd(end, argnums=(0, 1)))(model.bodies.mass, model.joints.damping)
for name, column in zip(model.bodies.names, by_mass.T, strict=True):
    print(f"one kilogram more in {name:10s} turns the joints by", *(f"{1e3 * x:+8.2f}" for x in column), "mrad")
for name, column in zip(model.joints.names, by_damping.T, strict=True):
    print(f"one N m s/rad more in {name:9s} turns the joints by", *(f"{1e3 * x:+8.2f}" for x in column), "mrad")
