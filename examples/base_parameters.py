"""Combinations of masses and inertias that the motion of a robot can identify."""

from importlib import resources

import jax
import jax.numpy as jnp

import truesim as ts
from truesim.physics.dynamics import base_parameters, regressor
from truesim.physics.dynamics.regressor import INERTIAL_PARAMETERS

jax.config.update("jax_enable_x64", True)

model = ts.load(resources.files("truesim") / "files" / "robots" / "arm.xml")
samples = jax.random.normal(jax.random.key(0), (40, 3, model.nv))
Y = jax.vmap(lambda s: regressor(model, *s))(samples)
base = base_parameters(jnp.concatenate(Y))

names = [f"{body}.{parameter}" for body in model.bodies.names for parameter in INERTIAL_PARAMETERS]
print(f"{len(base.independent)} of {len(names)} parameters can be identified, in these combinations:")
for text in base.describe(names):
    print("  ", text)
