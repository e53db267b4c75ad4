"""Contact forces along a shown motion: normal forces of the simulator's own contact model, as lines in the scene."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.typing import Array, Float
from truesim.files.logs import Log
from truesim.identification.fit import Fit
from truesim.physics.dynamics.kinematics import difference
from truesim.physics.simulation import Simulator
from truesim.scenes.motions import ShownMotion, recorded_motion, simulated_motion

LINE_LENGTH = 0.25
"""Length of the line of the largest force, relative to the size of the scene."""


class ContactForces(NamedTuple):
    """Normal forces at the contact points of every frame; points that do not touch have no force."""

    position: Float[np.ndarray, "frames points 3"]
    """[m]"""
    force: Float[np.ndarray, "frames points 3"]
    """Force along the normal [N]."""

    @property
    def largest(self) -> float:
        """Largest force of all frames [N]."""
        return float(np.linalg.norm(self.force, axis=-1).max(initial=0.0))

    def lines(self, frame: int, size: float) -> Float[np.ndarray, "points 2 3"]:
        """Lines of one frame, from the contact point along the force.

        Args:
            frame: The frame.
            size: Size of the scene [m].
        """
        scale = LINE_LENGTH * size / (self.largest or 1.0)
        begin = self.position[frame]
        return np.stack([begin, begin + scale * self.force[frame]], axis=1).astype(np.float32)


def fit_contact_forces(fit: Fit, key: str) -> ContactForces:
    """Contact forces of the fitted robot in one log.

    Args:
        fit: The fit, with a contact model.
        key: Log, as in the signals of the fit: `train/run0.csv`.
    """
    if fit.simulator.contact is None:
        raise TruesimError("This fit was made without contact: choose a contact model in the check, and run it again.")
    part, _, name = key.partition("/")
    log = next(log for log in (fit.logs if part == "train" else fit.held_out_logs) if log.name == name)
    motion = simulated_motion(fit.model, recorded_motion(fit.model, log), fit.signals, key, "fitted")
    return contact_forces(fit.simulator, motion, commands_at(fit, log, motion.time))


def contact_forces(
    simulator: Simulator, motion: ShownMotion, commands: Float[np.ndarray, "frames nu"]
) -> ContactForces:
    """Normal forces in the step that begins at each frame; velocities are differences of the frames.

    Args:
        simulator: A simulator with contact.
        motion: Configurations over time.
        commands: Commands of the actuators at the frames.
    """

    def forces(q: Array, v: Array, command: Array) -> tuple[Array, Array]:
        _, info = simulator.step(simulator.initial_state(q=q, v=v, command=command), command)
        report = info.contact
        assert report is not None, "the simulator has contact"
        return report.position, report.normal * report.force[:, :1]

    with jax.enable_x64(True):
        q = jnp.asarray(motion.q)
        steps = jnp.asarray(np.diff(motion.time))[:, None]
        v = jax.vmap(lambda after, before: difference(simulator.model, after, before))(q[1:], q[:-1]) / steps
        v = jnp.concatenate([v, v[-1:]])
        position, force = jax.jit(lambda *each: jax.lax.map(lambda now: forces(*now), each))(
            q, v, jnp.asarray(commands)
        )
    known = np.isfinite(force)
    return ContactForces(np.asarray(position), np.where(known, force, 0.0))


def commands_at(fit: Fit, log: Log, time: Float[np.ndarray, " frames"]) -> Float[np.ndarray, "frames nu"]:
    """Commands of a log at other times, each held until the next; zero where the log has none."""
    at = np.clip(np.searchsorted(log.time, time, side="right") - 1, 0, len(log.time) - 1)
    columns = [log.columns.get(f"ctrl/{name}") for name in fit.model.actuators.names]
    held = [np.zeros(len(time)) if column is None else np.nan_to_num(column[at]) for column in columns]
    return np.stack(held, axis=1) if held else np.zeros((len(time), 0))
