"""Derivatives of Runge-Kutta steps: the chain rule through four accelerations, on NumPy arrays of a batch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from truesim.physics.routines.engine import Engine
from truesim.physics.routines.integrate import RUNGE_KUTTA_STAGES
from truesim.physics.simulation.displacements import Displacements, crossing

STAGE_WEIGHTS = (1 / 6, *(weight / 6 for _, weight in RUNGE_KUTTA_STAGES))
"""Weight of each stage in the step."""
Blocks = list[tuple[slice, np.ndarray]]
"""Matrices of the rotation vectors; the identity for all other coordinates."""
Pulled = tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, np.ndarray]]
"""Rows of derivatives of an acceleration by displacement, velocity, control and tables."""
PullAcceleration = Callable[[Sequence[np.ndarray], np.ndarray], Pulled]
"""From a state `(q, v, acceleration, control)` and cotangents (batch, count, nv) to their rows, (batch, count, ...)."""


@dataclass(frozen=True)
class _Stage:
    """State of one evaluation, and derivatives of how it was reached and of its rate."""

    state: list[np.ndarray]
    step: np.ndarray
    """Time from the start of the step [s], (batch or 1, 1)."""
    by_start: Blocks
    by_turn: Blocks
    rate_by_velocity: Blocks
    rate_by_turn: Blocks


@dataclass(frozen=True)
class Stages:
    """The four evaluations of Runge-Kutta steps of a batch."""

    stages: tuple[_Stage, ...]
    timestep: np.ndarray
    by_start: Blocks
    """Derivative of the displacement after the step by one before it."""
    by_turn: Blocks
    """Derivative of the displacement after the step by that of the step."""

    @classmethod
    def of(
        cls,
        engine: Engine,
        space: Displacements,
        states: Sequence[np.ndarray],
        timestep: np.ndarray,
        tables: dict[str, np.ndarray],
        threads: int,
    ) -> "Stages":
        """Evaluate the stages of steps from `(q, v, acceleration, control)`."""
        q, v, start, u = (np.asarray(x) for x in states)
        rate, found = v, []
        rates, acceleration = np.zeros_like(v), np.zeros_like(v)
        for part, weight in ((0.0, 1.0), *RUNGE_KUTTA_STAGES):
            step = part * timestep
            turn = step * rate
            at, reached_v = space.integrate(q, turn), v + step * acceleration
            acceleration = engine.forward(at, reached_v, start, u, threads=threads, parameters=tables).qacc
            rate, by_velocity, by_turn = _rate(space, turn, reached_v)
            turned = space.after_turn(turn)
            reached = [(part, m) for part, m, _ in turned], [(part, m) for part, _, m in turned]
            found.append(_Stage([at, reached_v, start, u], step, *reached, by_velocity, by_turn))
            rates = rates + weight / 6 * rate
        turned = space.after_turn(timestep * rates)
        return cls(tuple(found), timestep, [(at, m) for at, m, _ in turned], [(at, m) for at, _, m in turned])

    def pull(self, cotangents: tuple[np.ndarray, np.ndarray], accelerations: PullAcceleration) -> Pulled:
        """Cotangents of displacement, velocity, control and tables before the step from those after it."""
        to_displacement, to_velocity = cotangents
        h, nothing = self.timestep, np.zeros_like(to_velocity)
        to_rate = h * _transposed(self.by_turn, to_displacement)
        displacement, velocity = _transposed(self.by_start, to_displacement), np.array(to_velocity)
        control: Any = 0.0
        tables: dict[str, Any] = {}
        rate_later, acceleration_later = nothing, nothing
        for stage, weight in zip(reversed(self.stages), reversed(STAGE_WEIGHTS), strict=True):
            to_this_rate = weight * to_rate + rate_later
            own = accelerations(stage.state, (weight * h * to_velocity + acceleration_later)[:, None])
            by_q, by_v, by_u = (x[:, 0] for x in own[:3])
            control, to_v = control + by_u, by_v + _transposed(stage.rate_by_velocity, to_this_rate)
            tables = {name: tables.get(name, 0.0) + x[:, 0] for name, x in own[3].items()}
            to_turn = _across(stage.rate_by_turn, to_this_rate) + _transposed(stage.by_turn, by_q)
            displacement, velocity = displacement + _transposed(stage.by_start, by_q), velocity + to_v
            rate_later, acceleration_later = stage.step * to_turn, stage.step * to_v
        return displacement, velocity, control, tables

    def jacobian(self, accelerations: PullAcceleration) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        """Jacobians of the steps by `[dq, dv]`, by the control, and by tables or directions of them."""
        batch, nv = self.stages[0].state[1].shape
        unit = np.broadcast_to(np.eye(nv), (batch, nv, nv))
        rows = [accelerations(stage.state, unit) for stage in self.stages]
        names, nu = list(rows[0][3]), rows[0][2].shape[-1]
        widths = [np.prod(rows[0][3][n].shape[2:], dtype=int) for n in names]
        size = 2 * nv + nu + sum(widths)
        dq, dv = np.zeros((2, batch, nv, size))
        dq[..., :nv], dv[..., nv : 2 * nv] = unit, unit
        d_rate, d_acceleration, rates, accelerations_sum = dv, np.zeros_like(dv), 0.0, 0.0
        for stage, (by_q, by_v, by_u, by_tables), weight in zip(self.stages, rows, STAGE_WEIGHTS, strict=True):
            step = stage.step[..., None]
            d_turn = step * d_rate
            here_q = _applied(stage.by_start, dq) + _applied(stage.by_turn, d_turn)
            here_v = dv + step * d_acceleration
            d_acceleration = by_q @ here_q + by_v @ here_v
            d_acceleration[..., 2 * nv : 2 * nv + nu] += by_u
            at = 2 * nv + nu
            for name, width in zip(names, widths, strict=True):
                d_acceleration[..., at : at + width] += by_tables[name].reshape(batch, nv, width)
                at += width
            d_rate = _applied(stage.rate_by_velocity, here_v) + _only(stage.rate_by_turn, d_turn)
            rates, accelerations_sum = rates + weight * d_rate, accelerations_sum + weight * d_acceleration
        h = self.timestep.reshape(-1, 1, 1)
        after = _applied(self.by_start, dq) + _applied(self.by_turn, h * rates)
        J = np.concatenate([after, dv + h * accelerations_sum], axis=1)
        cuts = np.cumsum([2 * nv, nu, *widths])[:-1]
        A, B, *others = np.split(J, cuts, axis=2)
        return A, B, dict(zip(names, others, strict=True))


def _rate(space: Displacements, turn: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, Blocks, Blocks]:
    """`dexp^-1(turn) v` of every rotation, and its derivatives by v and by the turn."""
    rate = np.array(v)
    by_velocity, by_turn = [], []
    for _, at in space.quaternions:
        d, w = turn[:, at], v[:, at]
        D, W = crossing(d), crossing(w)
        once = np.cross(d, w)
        rate[:, at] = w + once / 2 + np.cross(d, once) / 12
        by_velocity.append((at, np.eye(3) + D / 2 + D @ D / 12))
        by_turn.append((at, -W / 2 - (crossing(once) + D @ W) / 12))
    return rate, by_velocity, by_turn


def _applied(blocks: Blocks, x: np.ndarray) -> np.ndarray:
    """Block-diagonal matrices times matrices (batch, nv, columns)."""
    found = np.array(x)
    for at, matrix in blocks:
        found[:, at] = matrix @ x[:, at]
    return found


def _only(blocks: Blocks, x: np.ndarray) -> np.ndarray:
    """The same with zeros for all other coordinates."""
    found = np.zeros_like(x)
    for at, matrix in blocks:
        found[:, at] = matrix @ x[:, at]
    return found


def _transposed(blocks: Blocks, x: np.ndarray) -> np.ndarray:
    """Transposed block-diagonal matrices times vectors (batch, nv)."""
    found = np.array(x)
    for at, matrix in blocks:
        found[:, at] = np.einsum("bij,bi->bj", matrix, x[:, at])
    return found


def _across(blocks: Blocks, x: np.ndarray) -> np.ndarray:
    """Transposed `_only`."""
    found = np.zeros_like(x)
    for at, matrix in blocks:
        found[:, at] = np.einsum("bij,bi->bj", matrix, x[:, at])
    return found
