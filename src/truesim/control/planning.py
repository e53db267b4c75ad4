"""The whole job: from tasks and guesses to plans."""

import time
from collections.abc import Sequence
from typing import Any, overload

import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from truesim.control.compiled import TaskKernels, bound_structure
from truesim.control.options import PlanOptions
from truesim.control.planned_motion import Plan
from truesim.control.servos import servos
from truesim.control.solver import ProblemBatch
from truesim.control.stages import LimitStages, solve_stages
from truesim.control.task import Task
from truesim.control.transcription import Transcription
from truesim.core.errors import TruesimError
from truesim.core.precision import float64
from truesim.core.typing import Float
from truesim.physics.simulation import State

VIOLATION_WEIGHT = 1e100
"""Weight of violated limits when the best of several starts is chosen: any motion within the limits is better."""
Guess = Float[np.ndarray, "steps nu"] | Plan | None
"""Commands to start from; a plan, whose states may leave gaps that the optimization closes; or None."""


@overload
def plan(  # noqa: D418
    task: Task, *, guess: Guess = ..., options: PlanOptions | None = ..., kernels: TaskKernels | None = ...
) -> Plan:
    """Plan of one task."""


@overload
def plan(  # noqa: D418
    task: Sequence[Task],
    *,
    guess: Any = ...,
    options: PlanOptions | None = ...,
    kernels: TaskKernels | None = ...,
    shared_design: bool = ...,
) -> list[Plan]:
    """Plans of several tasks."""


def plan(
    task: Task | Sequence[Task],
    *,
    guess: Any = None,
    options: PlanOptions | None = None,
    kernels: TaskKernels | None = None,
    shared_design: bool = False,
) -> Plan | list[Plan]:
    """Find the motion that minimizes the costs of a task within its limits.

    Differential dynamic programming with Gauss-Newton Hessians and multiple shooting; bounds of commands are exact,
    other limits are held by an augmented Lagrangian. The result is a local minimum: `options.starts` tries several
    guesses. If the optimization does not converge, the plan says so, and is the best motion that was found.

    Args:
        task: A task, or several of the same structure, which are solved as one batch.
        guess: Commands, one row for each step, or a plan; by default the robot stays as it is. For several tasks, one
            of each.
        options: Tolerances, iterations, starts.
        kernels: Compiled functions of an earlier task of the same structure; they are compiled if None.
        shared_design: True if several tasks share the designed numbers, such as one arm that is to reach many targets.
    """
    options = PlanOptions() if options is None else options
    tasks = [task] if isinstance(task, Task) else list(task)
    if not tasks:
        raise TruesimError("There are no tasks to plan.")
    guesses = [guess] if isinstance(task, Task) else ([None] * len(tasks) if guess is None else list(guess))
    if len(guesses) != len(tasks):
        raise TruesimError(f"There are {len(tasks)} tasks, but {len(guesses)} guesses.")
    deadline = None if options.seconds is None else time.perf_counter() + options.seconds
    with float64():
        kernels = TaskKernels(tasks[0], threads=options.threads) if kernels is None else kernels
        batch, stages = prepare(kernels, tasks, guesses, options, shared_design)
        solve_stages(batch, stages, deadline)
        plans = read_plans(batch, stages, tasks)
    return plans[0] if isinstance(task, Task) else plans


def prepare(
    kernels: TaskKernels, tasks: Sequence[Task], guesses: Sequence[Guess], options: PlanOptions, shared: bool
) -> tuple[ProblemBatch, LimitStages]:
    """The batch of all tasks and starts: `options.starts` problems for each task, one after the other."""
    f, rng = kernels.functions, np.random.default_rng(options.seed)
    if options.smoothing and not f.smooths:
        raise TruesimError("Smoothing is that of rigid contact: Simulator.of(model, contact=RigidContact.of(model)).")
    for task in tasks:
        _check_same(kernels, task, tasks[0])
    packed = [f.pack(task) for task in tasks]
    motions = [
        _guess(kernels, task, guess, k, rng, options)
        for task, guess in zip(tasks, guesses, strict=True)
        for k in range(options.starts)
    ]
    z, u, p = (np.stack(x) for x in zip(*motions, strict=True))
    theta, rows = (np.repeat(np.stack(x), options.starts, axis=0) for x in zip(*packed, strict=True))
    design_bounds = np.array(list(tasks[0].design.values()), float).reshape(-1, 2).T
    batch = ProblemBatch(kernels, (z, u, p), (theta, rows), tasks[0].command_bounds(), design_bounds, options, shared)
    _roll_out(batch, guesses)
    stages = LimitStages(batch, tasks[0])
    batch.restart(np.ones(batch.count, bool))
    if not np.isfinite(batch.cost).any():
        raise TruesimError(_not_finite(stages))
    if not np.isfinite(batch.expansion).all(axis=(1, 2)).any():
        raise TruesimError(
            "The derivatives of the task are not numbers along the initial guess: give another guess, or costs without "
            "roots and norms of zero."
        )
    return batch, stages


def _check_same(kernels: TaskKernels, task: Task, first: Task) -> None:
    f = kernels.functions
    if (task.steps, tuple(task.design)) != (f.steps, f.design) or task.simulator.model.nu != f.nu:
        raise TruesimError("The tasks of one call must have the same robot, number of steps and designed numbers.")
    if not np.array_equal(task.command_bounds(), first.command_bounds()):
        raise TruesimError("The tasks of one call must have the same bounds of commands.")
    if bound_structure(task) != (kernels.moving, kernels.bounded):
        raise TruesimError("The kernels were compiled for a task with other fixed or bounded commands; make new ones.")


def _guess(
    kernels: TaskKernels, task: Task, guess: Guess, k: int, rng: np.random.Generator, options: PlanOptions
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """States, commands and designed numbers to start from; random ones after the first."""
    f = kernels.functions
    low, high = task.command_bounds()
    if isinstance(guess, Plan):
        u, p = guess.commands.copy(), np.array([guess.design.get(path, np.nan) for path in f.design])
    else:
        u, p = np.zeros((f.steps, f.nu)) if guess is None else np.array(guess, float), np.full(f.np, np.nan)
    if u.shape != (f.steps, f.nu):
        raise TruesimError(f"The guess has commands of shape {u.shape}; the task needs ({f.steps}, {f.nu}).")
    own = np.array([float(task.simulator.read(path)) for path in f.design])
    p = np.clip(np.where(np.isfinite(p), p, own), *np.array(list(task.design.values()), float).reshape(-1, 2).T)
    z = np.asarray(ravel_pytree(_full(f, task.initial_state(), u[0]))[0])
    if f.servo_forces is not None:
        at_start = kernels.bounds(z, p, f.pack(task)[0], low, high)
        if guess is None:  # servos exert no force
            u = u + np.where(servos(f.servo_forces), (at_start[0] + at_start[1]) / 2, 0.0)
        low, high = at_start
    if k:
        width = np.where(np.isfinite(high - low), (high - low) / 2, 1.0)
        u = u + options.randomness * width * _smooth_noise(rng, u.shape)
    return np.tile(z, (f.steps + 1, 1)), np.clip(u, *task.command_bounds()), p


def _smooth_noise(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Random commands that change about ten times over the horizon, of unit standard deviation."""
    knots = rng.normal(size=(min(10, shape[0]) + 1, shape[1]))
    at = np.linspace(0, len(knots) - 1, shape[0])
    return np.stack([np.interp(at, np.arange(len(knots)), column) for column in knots.T], axis=1)


def _full(f: Transcription, state: State, command: np.ndarray) -> State:
    """A state with all optional parts, in float64."""
    q, v, time = (jnp.asarray(x, float) for x in (state.q, state.v, state.time))
    state = State(q, v, time, state.history, state.impulses, state.memory)
    return f.simulator.started(state, jnp.asarray(command))


def _roll_out(batch: ProblemBatch, guesses: Sequence[Guess]) -> None:
    """Fill in the states of the guesses: those of a plan, or a simulation of given commands.

    Without a guess, for random starts, or if the simulation diverges, all knots keep the initial state: the
    optimization closes the gaps, and finds more minima than from a simulation of poor commands.
    """
    each = batch.count // len(guesses)
    simulated = batch.simulate() if any(guess is not None for guess in guesses) else batch.z
    for i, guess in enumerate(guesses):
        if guess is not None and np.isfinite(simulated[i * each]).all():
            batch.z[i * each] = simulated[i * each]
        if isinstance(guess, Plan):
            own, nq, nv = slice(i * each, (i + 1) * each), guess.q.shape[1], guess.v.shape[1]
            batch.z[own, 1:, :nq], batch.z[own, 1:, nq : nq + nv] = guess.q[1:], guess.v[1:]


def _not_finite(stages: LimitStages) -> str:
    """Sentence that names the term and the knot at which the cost of the first guess is not a number."""
    costs, limited = stages.evaluate()
    names = stages.batch.kernels.functions.term_names
    for final, values in costs.items():
        bad = np.argwhere(~np.isfinite(values[0]))
        if len(bad):
            place = "the last knot" if final else f"knot {bad[0][0]}"
            return f"The cost {names[bad[0][1]]} is not a number at {place} of the initial guess."
    if not all(np.isfinite(x).all() for x in limited.values()):
        return "A limited quantity is not a number along the initial guess."
    return "The motion of the initial guess is not a number: give another guess, or a smaller time step."


def read_plans(batch: ProblemBatch, stages: LimitStages, tasks: Sequence[Task]) -> list[Plan]:
    """The best plan of every task."""
    costs, limited = stages.evaluate()
    total = sum(x.sum((1, 2)) for x in costs.values())
    assert isinstance(total, np.ndarray)
    allowed = batch.options.violation
    worst = stages.worst(limited)
    score = np.where(worst <= allowed, total, VIOLATION_WEIGHT * worst)
    each = batch.count // len(tasks)
    chosen = [i * each + int(np.nanargmin(score[i * each : (i + 1) * each])) for i in range(len(tasks))]
    batch.settle(np.array(chosen))
    return [_plan(batch, stages, task, k, (costs, limited)) for task, k in zip(tasks, chosen, strict=True)]


def _plan(batch: ProblemBatch, stages: LimitStages, task: Task, k: int, terms: tuple[Any, Any]) -> Plan:
    f, (costs, limited) = batch.kernels.functions, terms
    model = task.simulator.model
    each = {name: float(sum(x[k, :, i].sum() for x in costs.values())) for i, name in enumerate(f.term_names)}
    z = batch.z[k]
    return Plan(
        model=model,
        time=z[:, model.nq + model.nv].copy(),
        q=z[:, : model.nq].copy(),
        v=z[:, model.nq : model.nq + model.nv].copy(),
        commands=batch.u[k].copy(),
        gains=batch.feedback[k][:, :, 1 : f.nx + 1].copy(),
        gradient=batch.gradient[k].copy(),
        costs=each,
        violations=_violations(f, stages, limited, k),
        design=dict(zip(f.design, batch.p[k].tolist(), strict=True)),
        status=batch.status[k],
        iterations=int(batch.iterations[k]),
    )


def _violations(f: Transcription, stages: LimitStages, limited: Any, k: int) -> dict[str, float]:
    """Largest violation of each limit by name."""
    found: dict[str, float] = {}
    for final, values in stages.violations(limited).items():
        at = 0
        for name, size in f.limits[final].items():
            found[name] = max(found.get(name, 0.0), float(values[k, at : at + size].max(initial=0.0)))
            at += size
    return found
