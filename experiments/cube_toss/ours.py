"""The cube in truesim: rigid contact with restitution; all tosses and candidates are one batch of a kernel."""

from collections.abc import Sequence
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from experiments.cube_toss.search import Number, Values
from experiments.cube_toss.tosses import GRAVITY, RATE, Tosses
from truesim import native
from truesim.core.typing import Array, Float
from truesim.files.robots import load
from truesim.math.spatial.rotation import quaternion_exp
from truesim.physics.contact import RigidContact
from truesim.physics.model import paths
from truesim.physics.model.model import Model
from truesim.physics.simulation import Simulator, State

SUBSTEPS = 3
"""Number of simulation steps per frame."""
CONTACT = (
    Number("friction", 0.17, 0.03, 0.05, 0.5),
    Number("restitution", 0.1, 0.08, 0.0, 0.6),
    Number("half side", 0.0512, 4e-4, 0.0495, 0.0525),
    Number("rounding", 1.5e-3, 1e-3, 1e-5, 6e-3),
    Number("smoothing", 1e-4, 2.0, 1e-7, 2e-2, ratio=True),
)
"""Numbers of contact; edges are rounded by the margin of a smaller box."""
PLACES = (
    *(Number(f"table tilt {k}", 0.0, 3e-3, -0.02, 0.02) for k in "xy"),
    Number("table height", 0.0, 3e-4, -2e-3, 2e-3),
    *(Number(f"cube turn {k}", 0.0, 4e-3, -0.03, 0.03) for k in "xyz"),
    *(Number(f"cube shift {k}", 0.0, 3e-4, -3e-3, 3e-3) for k in "xyz"),
    Number("inertia", 1.0, 0.05, 0.75, 1.35, ratio=True),
)
"""Pose of the table, pose of the cube in the tracked frame, and inertia relative to the file."""
NUMBERS = (*CONTACT, *PLACES)


class Ours:
    """Simulates tosses with candidates of the numbers."""

    def __init__(self, rig: Path, frames: int):
        model = load(rig)
        model = paths.write(model, "gravity", np.array([0.0, 0.0, -GRAVITY]))
        contact = RigidContact.of(model, bounces=True)

        def run(numbers: Array, q: Array, v: Array) -> Array:
            simulator = _simulator(model, contact, numbers)
            constants = simulator.constants()

            def frame(state: State, _: None) -> tuple[State, Array]:
                step = lambda _, state: simulator.step(state, jnp.zeros(0), constants)[0]  # noqa: E731
                return jax.lax.fori_loop(0, SUBSTEPS, step, state), state.q

            return jax.lax.scan(frame, State(q, v, jnp.zeros(())), None, length=frames)[1]

        with jax.enable_x64(True):
            self.kernel = native.compile(run, np.zeros(len(NUMBERS)), np.zeros(7), np.zeros(6))

    def __call__(self, candidates: Sequence[Values], tosses: Tosses) -> Float[np.ndarray, "candidates tosses frames 7"]:
        """Simulate every toss with every candidate; numbers that a candidate does not name keep their start."""
        numbers = np.array([[c.get(n.name, n.start) for n in NUMBERS] for c in candidates])
        batch = np.repeat(numbers, len(tosses), axis=0)
        states = (np.tile(x, (len(candidates), 1)) for x in (tosses.q, tosses.v))
        return self.kernel(batch, *states).reshape(len(candidates), *tosses.frames.shape)


def _simulator(model: Model, contact: RigidContact, numbers: Float[Array, " numbers"]) -> Simulator:
    named = {n.name: numbers[k] for k, n in enumerate(NUMBERS)}

    def three(what: str) -> Array:
        return jnp.stack([named.get(f"{what} {k}", jnp.zeros(())) for k in "xyz"])

    side = named["half side"] - named["rounding"]
    values = {
        "geoms/cube.size": jnp.full(3, side),
        "geoms/cube.margin": named["rounding"],
        "geoms/cube.position": three("cube shift"),
        "geoms/cube.orientation": quaternion_exp(three("cube turn")),
        "geoms/table.position": jnp.zeros(3).at[2].set(named["table height"]),
        "geoms/table.orientation": quaternion_exp(three("table tilt")),
        "geoms/cube.restitution": named["restitution"],
        "bodies/cube.inertia": jnp.asarray(model.bodies.inertia[0]) * named["inertia"],
    } | {f"geoms/{geom}.friction": jnp.zeros(3).at[0].set(named["friction"]) for geom in ("cube", "table")}
    for path, value in values.items():
        model = paths.write(model, path, value)
    return Simulator.of(
        model,
        contact=eqx.tree_at(lambda c: c.smoothing, contact, named["smoothing"]),
        timestep=1 / RATE / SUBSTEPS,
    )
