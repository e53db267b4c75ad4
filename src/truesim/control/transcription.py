"""A task as functions of flat arrays: step, costs and limits at a knot, and their derivatives on the tangent space.

A state is one vector `z` of all numbers of a `State`. Small changes of it are `dx = [dq, dv, dm, dh]`: configuration
(in its tangent space) and velocity, memory of networks, and past commands that delayed actuators have yet to receive.
Numbers that are optimized with the motion are a vector `p`; all other numbers that may change without compiling anew
are a vector `theta` and one row for each knot.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from truesim import native
from truesim.control.quantities import Knot
from truesim.control.servos import servo_bounds, servo_forces
from truesim.control.task import Cost, Limit, Task, at_first_knot, is_time_varying
from truesim.core.errors import TruesimError
from truesim.core.typing import Array, Float
from truesim.physics.contact import RigidContact
from truesim.physics.simulation import Simulator, State
from truesim.physics.simulation.linearize import displacement, perturb, tangent_size

SMOOTHING = "contact.smoothing"
"""Path of the smoothing of rigid contact, which derivatives may take larger than motions."""


class TermValues(NamedTuple):
    """Costs and limits at one knot."""

    residuals: Float[Array, " rows"]
    """Scaled so that the augmented cost is half the sum of their squares."""
    costs: Float[Array, " terms"]
    """Cost of each term."""
    limited: Float[Array, " limits"]
    """Quantities that limits bound."""


class Expansion(NamedTuple):
    """Expansion of step and cost at a knot: `dx' = A [dx, dp] + B du`, gradients and Gauss-Newton Hessians."""

    A: Float[Array, "nx n"]
    B: Float[Array, "nx nu"]
    lx: Float[Array, " n"]
    lu: Float[Array, " nu"]
    lxx: Float[Array, "n n"]
    lux: Float[Array, "nu n"]
    luu: Float[Array, "nu nu"]


class Transcription:
    """Functions of one task, to be compiled; `sizes` of its vectors, and `pack` to fill them."""

    def __init__(self, task: Task, inputs: Sequence[str] = ()):
        """Prepare the functions.

        Args:
            task: The task; its structure is fixed, its numbers may change.
            inputs: Paths of numbers of the robot that may change without compiling anew.
        """
        self.simulator: Simulator = jax.tree.map(_double, task.simulator)
        self.steps, self.design = task.steps, tuple(task.design)
        self.smooths = isinstance(self.simulator.contact, RigidContact)
        self.inputs = (*inputs, SMOOTHING) if self.smooths else tuple(inputs)
        for path in self.inputs:
            if path in self.design:
                raise TruesimError(f"{path} is designed with the motion; it cannot be an input as well.")
        model = self.simulator.model
        self.servo_forces = servo_forces(self.simulator)
        """Range of the force of each servo; None if their bounds do not move with the state."""
        state = self.simulator.initial_state()
        flat, state_of = ravel_pytree(state)
        self.state_of: Callable[[Array], State] = lambda z: state_of(jnp.asarray(z))
        self.nz, self.nu, self.np = flat.size, model.nu, len(self.design)
        self._remembered = tangent_size(state)
        self._past = 0 if state.history is None else (len(state.history.values) - 1) * self.nu
        self.nx = self._remembered + self._past
        n = self.nx + self.np
        shapes = [(self.nx, n), (self.nx, self.nu), (n,), (self.nu,), (n, n), (self.nu, n), (self.nu, self.nu)]
        ends = np.cumsum([0] + [int(np.prod(shape)) for shape in shapes])
        self._places = [(slice(a, b), shape) for a, b, shape in zip(ends[:-1], ends[1:], shapes, strict=True)]
        self.expansion_size = int(ends[-1])
        """Length of the vector of an expansion."""
        self._tree = jax.tree.flatten((dict(task.costs), dict(task.limits)), is_leaf=is_time_varying)[1]
        self._shapes = [_shape(x) for x in _leaves(task)]
        self._varies = [is_time_varying(x) for x in _leaves(task)]
        self.limits = {end: self._limit_sizes(task, end) for end in (False, True)}
        self.term_names = tuple(sorted(task.costs))
        self.theta_size = len(self.pack(task)[0])
        """Length of `theta`."""
        fixed = not self.design and not [path for path in self.inputs if path != SMOOTHING]
        fixed = fixed and self.simulator.constraint_contact is None  # the routines have their own
        self._constants = _constants(self.simulator) if fixed else None

    def pack(self, task: Task) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of a task of the same structure: `theta`, and one row for each knot."""
        leaves = _leaves(task)
        if [_shape(x) for x in leaves] != self._shapes or [is_time_varying(x) for x in leaves] != self._varies:
            raise TruesimError("The tasks of one call must have the same costs, limits and numbers of knots.")
        constant = [np.ravel(x) for x in leaves if not is_time_varying(x)]
        given = [np.ravel(task.simulator.read(path)) for path in self.inputs]
        rows = [np.reshape(x.values, (self.steps + 1, -1)) for x in leaves if is_time_varying(x)]
        theta = np.concatenate([np.zeros(0), *constant, *given])
        return theta.astype(float), np.concatenate([np.zeros((self.steps + 1, 0)), *rows], axis=1).astype(float)

    def simulator_at(self, p: Array, theta: Array) -> Simulator:
        """The simulator with designed numbers and inputs."""
        values: dict[str, Any] = dict(zip(self.design, p, strict=True))
        end = theta.shape[0]
        for path in reversed(self.inputs):
            shape = np.shape(self.simulator.read(path))
            size = int(np.prod(shape))
            values[path] = theta[end - size : end].reshape(shape)
            end -= size
        return self.simulator.replace(values) if values else self.simulator

    def step(self, z: Array, u: Array, p: Array, theta: Array, timestep: Array | None = None) -> Array:
        """State after a step, of the simulator's length by default."""
        simulator = self.simulator_at(p, theta)
        if timestep is not None:
            simulator = dataclasses.replace(simulator, timestep=timestep)
        constants = simulator.constants() if self._constants is None else self._constants
        return ravel_pytree(simulator.step(self.state_of(z), u, constants)[0])[0]

    def moved(self, z: Array, dx: Array) -> Array:
        """The state after a small change."""
        state = perturb(self.simulator.model, self.state_of(z), dx[: self._remembered])
        if self._past:
            history = state.history
            past = dx[self._remembered :].reshape(-1, self.nu)
            values = history.values + jnp.concatenate([jnp.zeros((1, self.nu)), past])  # type: ignore[union-attr]
            state = dataclasses.replace(state, history=dataclasses.replace(history, values=values))  # type: ignore[type-var]
        return ravel_pytree(state)[0]

    def change(self, z: Array, start: Array) -> Array:
        """The small change from `start` to `z`: the inverse of `moved`."""
        new, old = self.state_of(z), self.state_of(start)
        dx = displacement(self.simulator.model, new, old)
        if new.history is None or old.history is None:
            return dx
        past = new.history.values[1:] - old.history.values[1:]
        return jnp.concatenate([dx, past.ravel()])

    def bounds(self, z: Array, p: Array, theta: Array, low: Array, high: Array) -> tuple[Array, Array]:
        """Bounds of the commands at a state, within given ones."""
        if self.servo_forces is None:
            return low, high
        state, model = self.state_of(z), self.simulator_at(p, theta).model
        return servo_bounds(model, self.servo_forces, state.q, state.v, low, high)

    def bound_derivatives(
        self, z: Array, p: Array, theta: Array, low: Array, high: Array
    ) -> tuple[Float[Array, "nu n"], Float[Array, "nu n"]]:
        """Derivatives of `bounds` by changes of the state and of the designed numbers."""

        def changed(d: Array) -> Array:
            return jnp.concatenate(self.bounds(self.moved(z, d[: self.nx]), p + d[self.nx :], theta, low, high))

        J = _jacobian(changed, self.nx + self.np)
        return J[: self.nu], J[self.nu :]

    def terms(self, z: Array, u: Array, p: Array, theta: Array, row: Array, *, final: bool) -> TermValues:
        """Costs and limits at a knot; `row` holds its time-varying numbers, multipliers and their stiffness."""
        simulator = self.simulator_at(p, theta)
        knot = Knot(simulator, self.state_of(z), u)
        costs, limits = self._terms(theta, row)
        scale = jnp.ones(()) if final else jnp.sqrt(jnp.asarray(simulator.timestep))
        residuals: list[Array] = [jnp.zeros(0)]
        values: list[Array] = []
        limited: list[Array] = [jnp.zeros(0)]
        for term in costs.values():
            if _counts(term, final):
                r = scale * jnp.sqrt(jnp.asarray(term.weight)) * term.quantity(knot)
                residuals.append(r)
                values.append(0.5 * (r @ r))
            else:
                values.append(jnp.zeros(()))
        multipliers = row[row.shape[0] - 1 - sum(self.limits[final].values()) : -1] if self.limits[final] else row[:0]
        for name, size in self.limits[final].items():
            value = limits[name].quantity(knot)
            limited.append(value)
            shift = multipliers[:size] / row[-1]
            multipliers = multipliers[size:]
            residuals.append(scale * jnp.sqrt(row[-1]) * outside(value + shift, limits[name]))
        return TermValues(jnp.concatenate(residuals), jnp.stack(values), jnp.concatenate(limited))

    def expand(
        self, z: Array, u: Array, after: Array, p: Array, theta: Array, row: Array
    ) -> tuple[Float[Array, " size"], Float[Array, " nx"]]:
        """Expansion at a knot before the last as one vector, and its defect relative to the next state, `after`."""
        nx, nu, n = self.nx, self.nu, self.nx + self.np
        arrived = self.step(z, u, p, theta)

        def changed(d: Array) -> Array:
            moved, du, dp = self.moved(z, d[:nx]), d[n:], d[nx:n]
            step = self.change(self.step(moved, u + du, p + dp, theta), arrived)
            return jnp.concatenate([step, self.terms(moved, u + du, p + dp, theta, row, final=False).residuals])

        J = _jacobian(changed, n + nu)
        r = self.terms(z, u, p, theta, row, final=False).residuals
        expansion = Expansion(J[:nx, :n], J[:nx, n:], *_gauss_newton(r, J[nx:], n))
        return ravel_pytree(expansion)[0], self.change(arrived, after)

    def expand_cost(self, z: Array, u: Array, p: Array, theta: Array, row: Array) -> Float[Array, " rest"]:
        """The part of `expand`'s vector behind A and B: gradients and Hessians of the cost at a knot."""
        nx, n = self.nx, self.nx + self.np

        def residuals(d: Array) -> Array:
            moved = self.moved(z, d[:nx])
            return self.terms(moved, u + d[n:], p + d[nx:n], theta, row, final=False).residuals

        r = self.terms(z, u, p, theta, row, final=False).residuals
        return ravel_pytree(_gauss_newton(r, _jacobian(residuals, n + self.nu), n))[0]

    def unpack(self, vector: Array) -> Expansion:
        """Expansion from its vector."""
        return Expansion(*(vector[at].reshape(shape) for at, shape in self._places))

    def expand_end(self, z: Array, p: Array, theta: Array, row: Array) -> tuple[Array, Array]:
        """Gradient and Gauss-Newton Hessian of the final cost."""
        u = jnp.zeros(self.nu)

        def changed(d: Array) -> Array:
            return self.terms(self.moved(z, d[: self.nx]), u, p + d[self.nx :], theta, row, final=True).residuals

        R = _jacobian(changed, self.nx + self.np)
        return R.T @ self.terms(z, u, p, theta, row, final=True).residuals, R.T @ R

    def _terms(self, theta: Array, row: Array) -> tuple[dict[str, Cost], dict[str, Limit]]:
        """Costs and limits with the numbers of a knot."""
        leaves, at, here = [], 0, 0
        for shape, varies in zip(self._shapes, self._varies, strict=True):
            size = int(np.prod(shape))
            leaves.append((row[here : here + size] if varies else theta[at : at + size]).reshape(shape))
            at, here = (at, here + size) if varies else (at + size, here)
        return jax.tree.unflatten(self._tree, leaves)

    def _limit_sizes(self, task: Task, final: bool) -> dict[str, int]:
        """Sizes of the limits at running knots or at the last one."""
        knot = Knot(self.simulator, self.simulator.initial_state(), jnp.zeros(self.nu))
        here = {name: term for name, term in task.limits.items() if _counts(term, final)}
        return {name: len(jax.eval_shape(at_first_knot(term).quantity, knot)) for name, term in here.items()}


def _constants(simulator: Simulator) -> Any:
    """Constants of the simulator, by a kernel: JAX alone would compile every single operation."""
    return native.compile(Simulator.constants, simulator)(simulator)


def outside(value: Array, limit: Limit) -> Array:
    """Part of a value that lies outside of a limit, signed."""
    return value - jnp.clip(value, jnp.asarray(limit.low), jnp.asarray(limit.high))


def limit_bounds(task: Task, final: bool) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds of all limited quantities at running knots or at the last one."""
    knot = Knot(task.simulator, task.initial_state(), jnp.zeros(task.simulator.model.nu))
    low, high = [np.zeros(0)], [np.zeros(0)]
    for term in task.limits.values():
        if _counts(term, final):
            size = len(jax.eval_shape(at_first_knot(term).quantity, knot))
            low.append(np.broadcast_to(np.asarray(term.low, float), (size,)))
            high.append(np.broadcast_to(np.asarray(term.high, float), (size,)))
    return np.concatenate(low), np.concatenate(high)


def _gauss_newton(r: Array, R: Array, n: int) -> tuple[Array, ...]:
    """`lx, lu, lxx, lux, luu` of half the squares of residuals, from their Jacobian by n numbers and the command."""
    Rx, Ru = R[:, :n], R[:, n:]
    return Rx.T @ r, Ru.T @ r, Rx.T @ Rx, Ru.T @ Rx, Ru.T @ Ru


def _counts(term: Cost | Limit, final: bool) -> bool:
    return term.when == "always" or (term.when == "final") == final


def _leaves(task: Task) -> list[Any]:
    return jax.tree.leaves((dict(task.costs), dict(task.limits)), is_leaf=is_time_varying)


def _shape(x: Any) -> tuple[int, ...]:
    return np.shape(x.values)[1:] if is_time_varying(x) else np.shape(x)


def _double(x: Any) -> Any:
    """Floating-point arrays as float64 of NumPy."""
    is_float = hasattr(x, "dtype") and np.issubdtype(x.dtype, np.floating)
    return np.asarray(x, np.float64) if is_float else x


def _jacobian(f: Callable[[Array], Array], size: int) -> Float[Array, "rows size"]:
    """Jacobian at zero of a function of `size` numbers; zero where nothing depends on them."""
    value, columns = native.columns(f, (jnp.zeros(size),), (jnp.eye(size),))
    return jnp.zeros((len(value), size)) if columns is None else jnp.asarray(columns).T
