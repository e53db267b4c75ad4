"""`truesim demo`: a robot, a motion, and its derivative in every mass."""

import time
from importlib import resources
from pathlib import Path
from typing import Annotated

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from truesim.dynamics import body_poses
from truesim.formats import load
from truesim.model.model import Model
from truesim.report.sensitivity import sensitivity_figure
from truesim.simulate import Simulator, State, rollout

SECONDS = 2.0
GOAL = np.array([0.9, 0.7, 0.9, 0.4])
"""Where the servos are sent [rad]."""


def demo(out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("out/demo")) -> None:
    """Simulate a built-in arm, differentiate where its tip ends with respect to every mass, and draw it."""
    console = Console(highlight=False, soft_wrap=True)
    with resources.as_file(resources.files("truesim") / "robots" / "arm.xml") as path:
        model = load(path)
    console.print(f"The built-in arm has {len(model.bodies.names)} bodies and {model.nv} joints with position servos.")
    start = time.perf_counter()
    motion, derivative = _motion_and_derivative(model)
    seconds = time.perf_counter() - start
    console.print(
        f"Simulated {SECONDS:g} s and differentiated it in every mass: {seconds:.1f} s, compilation included."
    )
    console.print(_table(model, derivative))
    tip = np.asarray(_tip(model, motion))
    figure = sensitivity_figure(tip, _skeletons(model, motion), model.bodies.names, derivative)
    out.mkdir(parents=True, exist_ok=True)
    page = out / "arm.html"
    figure.write_html(page, include_plotlyjs=True, default_height="95vh")
    console.print(f"The picture is in {page} (open it in a browser).")


def _motion_and_derivative(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Configurations over time, and the tip's end position by mass [mm/kg]."""
    simulator = Simulator.of(model)
    commands = jnp.tile(GOAL, (round(SECONDS / float(simulator.timestep)), 1))

    def end(mass: jax.Array) -> tuple[jax.Array, jax.Array]:
        changed = eqx.tree_at(lambda s: s.model.bodies.mass, simulator, mass)
        final, q = rollout(changed, State.at_rest(model), commands, keep=lambda state, info: state.q)
        return _tip(changed.model, final.q[None])[0], q

    jacobian = jax.jit(jax.jacfwd(end, has_aux=True))
    derivative, q = jacobian(jnp.asarray(model.bodies.mass))
    return np.asarray(q), 1000 * np.asarray(derivative)


def _tip(model: Model, q: jax.Array | np.ndarray) -> jax.Array:
    """Position of the site `tip` at each configuration [m]."""
    site = model.site("tip")
    body = model.sites.bodies[site]

    def position(q: jax.Array) -> jax.Array:
        poses = body_poses(model, q)
        return poses.translation[body] + poses.rotation[body] @ model.sites.position[site]

    return jax.vmap(position)(jnp.asarray(q))


def _skeletons(model: Model, q: np.ndarray, count: int = 7) -> np.ndarray:
    """Joints and tip at a few places evenly along the tip's path [m]."""
    tip = np.asarray(_tip(model, q))
    travelled = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(tip, axis=0), axis=1))])
    chosen = np.searchsorted(travelled, np.linspace(0, travelled[-1], count)).clip(max=len(q) - 1)
    joints = jax.vmap(lambda q: body_poses(model, q).translation)(jnp.asarray(q[chosen]))
    return np.concatenate([joints, tip[chosen, None]], axis=1)


def _table(model: Model, derivative: np.ndarray) -> Table:
    table = Table(
        "body", r"mass \[kg]", "end x", "end y", "end z", title=r"End position of the tip by mass \[mm/kg]", box=None
    )
    for name, mass, column in zip(model.bodies.names, model.bodies.mass, derivative.T, strict=True):
        table.add_row(name, f"{mass:.2f}", *(f"{value:+.3f}" for value in column))
    return table
