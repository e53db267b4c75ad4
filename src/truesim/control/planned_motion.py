"""Plans: the motion that an optimization found, with its feedback, its cost by term, and the reason why it ended."""

import dataclasses
from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np

from truesim.control.options import STATUS_SENTENCES, PlanStatus
from truesim.core.typing import Array, Float
from truesim.physics.model.columns import command_columns, position_columns, velocity_columns
from truesim.physics.model.model import Model
from truesim.physics.simulation import State
from truesim.physics.simulation.linearize import displacement


@dataclasses.dataclass(frozen=True)
class Plan:
    """A planned motion. Commands hold from their knot to the next; the last knot has none."""

    model: Model
    time: Float[np.ndarray, " knots"]
    """[s]"""
    q: Float[np.ndarray, "knots nq"]
    v: Float[np.ndarray, "knots nv"]
    commands: Float[np.ndarray, "steps nu"]
    gains: Float[np.ndarray, "steps nu nx"]
    """Feedback of the command by the state, in its tangent space."""
    gradient: Float[np.ndarray, "steps nu"]
    """Derivative of the cost, with the multipliers of limits, by each command."""
    costs: Mapping[str, float]
    """Cost of each term."""
    violations: Mapping[str, float]
    """Largest violation of each limit [units of its quantity]."""
    design: Mapping[str, float]
    """Numbers of the robot that were optimized, by path [SI units]."""
    status: PlanStatus
    iterations: int

    @property
    def cost(self) -> float:
        """Sum of all terms."""
        return float(sum(self.costs.values()))

    @property
    def converged(self) -> bool:
        """True if the plan is a local minimum within all limits."""
        return self.status is PlanStatus.CONVERGED

    @property
    def message(self) -> str:
        """The reason for which the optimization ended, in one sentence."""
        sentence = STATUS_SENTENCES[self.status]
        if self.status is PlanStatus.LIMITS_VIOLATED:
            worst = max(self.violations, key=lambda name: self.violations[name])
            return f"{sentence[:-1]}: {worst} by {self.violations[worst]:.3g}."
        return sentence

    def state(self, knot: int) -> State:
        """State of a knot."""
        return State(jnp.asarray(self.q[knot]), jnp.asarray(self.v[knot]), jnp.asarray(self.time[knot]))

    def feedback(self, knot: int, state: State) -> Float[Array, " nu"]:
        """Command at a knot for a state near the plan: `u + K dx`. Works inside `jit`; commands are not bounded."""
        nx = 2 * self.model.nv
        change = displacement(self.model, State(state.q, state.v, state.time), self.state(knot))
        return jnp.asarray(self.commands[knot]) + jnp.asarray(self.gains[knot][:, :nx]) @ change

    def columns(self) -> dict[str, Float[np.ndarray, " knots"]]:
        """Columns of a log: commands to play, and the planned motion; the last command is repeated."""
        model = self.model
        names = ["time", *command_columns(model), *position_columns(model), *velocity_columns(model)]
        commands = np.concatenate([self.commands, self.commands[-1:]])
        values = np.concatenate([self.time[:, None], commands, self.q, self.v], axis=1)
        return dict(zip(names, values.T, strict=True))
