"""Steps of the file's constraint model as one call inside `jit` and `vmap`."""

import dataclasses
import weakref

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from truesim import native
from truesim.core.errors import TruesimError
from truesim.core.tracing import is_traced
from truesim.core.typing import Array, Float
from truesim.native.runtime.primitive import bind
from truesim.native.runtime.threads import scoped_threads
from truesim.physics.routines.engine import Engine
from truesim.physics.simulation.backend import is_plain
from truesim.physics.simulation.rollout_program import RolloutProgram
from truesim.physics.simulation.simulator import Simulator
from truesim.physics.simulation.state import State
from truesim.physics.simulation.step_adjoint import WITHOUT_DERIVATIVE
from truesim.physics.simulation.step_derivatives import StepDerivatives
from truesim.physics.simulation.table_parameters import traced_tables
from truesim.physics.simulation.table_step import engine_digest, engine_of


class StepRoutine(eqx.Module):
    """Routines that simulate steps of a simulator with `MujocoContact`, as one native call inside `jit` and `vmap`.

        routine = StepRoutine.of(simulator.replace({"bodies/base.mass": mass, "geoms/foot.friction": friction}))
        state, states = routine.rollout(state, commands)

    Inside `jax.jit`, values of the simulator may be traced, and under `jax.vmap` each batch element has its own: a
    batch is one call, several elements at once in vector registers, over as many threads as `native.use_threads`
    says. Make the routine where the values are known, outside of loops over time: what the routines need of them
    (mixed contact parameters, inverse weights) is computed there, once. The precision is that of JAX.

    Derivatives in both modes are exact: by the implicit function theorem with the factors of the solver, in state,
    commands and traced values. A small kernel is compiled for them when they are first taken.
    """

    tables: dict[str, Array]
    """Parameters of the routines that depend on traced values, by name."""
    timestep: Float[Array, ""]
    """[s]"""
    derivatives: StepDerivatives = eqx.field(static=True)
    digest: str = eqx.field(static=True)

    @classmethod
    def of(cls, simulator: Simulator) -> "StepRoutine":
        """Routines of a simulator; raises `TruesimError` with the reason if they cannot simulate it."""
        engine = engine_of(simulator)
        if isinstance(engine, str):
            raise TruesimError(f"The routines cannot simulate this simulator: {engine}.")
        tables = traced_tables(simulator, engine)
        return cls(tables, jnp.asarray(simulator.timestep), _derivatives(engine, simulator), engine_digest(simulator))

    @property
    def engine(self) -> Engine:
        """The routines."""
        return self.derivatives.engine

    def rollout(self, state: State, commands: Float[Array, "steps nu"]) -> tuple[State, State]:
        """Last state, and all states after a step, under commands that are each held over one time step.

        Args:
            state: Initial state, from `Simulator.initial_state`.
            commands: One row per time step; repeat a row for a control step of several time steps.
        """
        commands = jnp.asarray(commands, self.engine.dtype)
        program = self._program(len(commands)).program()
        q, v, acceleration, _ = bind(program, self._inputs(state, commands), scoped_threads())
        time = state.time + self.timestep * jnp.arange(1.0, len(commands) + 1)
        last = dataclasses.replace(state, q=q[-1], v=v[-1], time=time[-1], acceleration=acceleration[-1])
        return last, State(q, v, time)

    def linearize(
        self, state: State, command: Float[Array, " nu"]
    ) -> tuple[State, Float[Array, "nx nx"], Float[Array, "nx nu"]]:
        """State after a step, and the Jacobians A and B of `simulation.linearize`.

        They follow from the implicit function theorem with the solver's factors: exact, and without a compiled
        function of the size of the Jacobian. No further derivative can be taken.
        """
        commands = jnp.asarray(command, self.engine.dtype)[None]
        inputs = jax.lax.stop_gradient(self._inputs(state, commands))
        q, v, acceleration, A, B = bind(self._program(1).jacobian(), inputs, scoped_threads())
        after = dataclasses.replace(state, q=q, v=v, time=state.time + self.timestep, acceleration=acceleration)
        return after, A, B

    def _program(self, steps: int) -> RolloutProgram:
        return RolloutProgram(self.derivatives, self.digest, tuple(sorted(self.tables)), steps)

    def _inputs(self, state: State, commands: Array) -> list[Array]:
        start = jnp.zeros(self.engine.sizes["nv"]) if state.acceleration is None else state.acceleration
        states = [jnp.asarray(x, self.engine.dtype) for x in (state.q, state.v, start)]
        return [*states, commands, *(self.tables[name] for name in sorted(self.tables))]


_known: "weakref.WeakKeyDictionary[Engine, StepDerivatives]" = weakref.WeakKeyDictionary()


def _derivatives(engine: Engine, simulator: Simulator) -> StepDerivatives:
    """Derivatives of an engine, the same object for the same engine."""
    if engine not in _known:
        held = jax.tree.map(lambda x: np.zeros(x.shape) if is_traced(x) else np.asarray(x), simulator)
        _known[engine] = StepDerivatives(engine, held)
    return _known[engine]


def differentiable_routine(simulator: Simulator) -> StepRoutine | None:
    """Routines that stand for steps of this simulator here, derivatives included; None if there are none.

    Inside a function that is compiled as a whole, and where values are traced by which the routines do not
    differentiate, the definition in JAX stays.
    """
    if simulator.constraint_contact is None or native.compiling() or is_plain():
        return None
    engine = engine_of(simulator)
    if isinstance(engine, str):
        return None
    routine = StepRoutine.of(simulator)
    return None if set(routine.tables) & set(WITHOUT_DERIVATIVE) else routine
