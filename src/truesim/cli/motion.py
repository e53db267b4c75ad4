"""Motion of `truesim simulate`: commands, initial state, simulation in chunks with progress, and the written log."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from truesim.cli.console import messages, results, warn
from truesim.cli.subject import read_subject
from truesim.core.errors import TruesimError, unknown_name
from truesim.core.results import RESULTS, message
from truesim.files.logs import Log, write_log
from truesim.physics.contact import AbstractImpulseContact
from truesim.physics.contact.choose import NONE, contact_named, default_contact
from truesim.physics.dynamics import reference_configuration
from truesim.physics.model.columns import command_columns, position_columns, sensor_columns, velocity_columns
from truesim.physics.model.model import Model
from truesim.physics.simulation import Simulator, SmoothJointModel, State, Trajectory, record
from truesim.physics.simulation.findings import left_out
from truesim.physics.simulation.integrators import INTEGRATORS
from truesim.physics.simulation.measurements import measure
from truesim.physics.simulation.sensors import from_encoders
from truesim.physics.simulation.table_step import reason_against

NO_KEYFRAME = "none"
"""Name that stands for the reference configuration instead of a keyframe."""
CHUNKS = 50
"""Parts of a long motion; more parts update the progress more often and respond to Ctrl-C sooner."""


def make_simulator(
    robot: Path,
    floating_base: bool,
    contact: str | None,
    smoothing: float | None,
    timestep: float | None,
    integrator: str | None,
    smooth: bool,
) -> Simulator:
    """The simulator of a robot file, or of the folder of a fit with its networks.

    Args:
        robot: Robot file or folder of a fit.
        floating_base: Whether the root link of a URDF has a free joint.
        contact: Name of the contact model, if any.
        smoothing: Smoothing of rigid contact, if given.
        timestep: Time step [s]; the file's if not given.
        integrator: Name of the integrator; the file's if not given.
        smooth: Whether joint friction and limits are smooth.
    """
    if integrator is not None and integrator not in INTEGRATORS:
        raise unknown_name("integrator", integrator, INTEGRATORS)
    if timestep is not None and not timestep > 0:
        raise TruesimError(f"--timestep must be positive, not {timestep:g}.")
    subject = read_subject(robot, floating_base)
    model = subject.model
    if not model.nv:
        raise TruesimError(f"{robot.name} has no joints: nothing moves. It may be a part that other files include.")
    if contact is None and smoothing is None and subject.fit is None:
        contact = default_contact(model)
    options = subject.options_for((), None, None, contact, smoothing)
    contact_model = contact_named(model, options.contact, smoothing=options.smoothing)
    if smooth and isinstance(contact_model, AbstractImpulseContact):
        raise TruesimError("Rigid contact has its own joint friction and limits: give --smooth or --contact rigid.")
    for sentence in left_out(model, contact=contact_model is not None or options.contact == NONE):
        warn(messages(), sentence)
    simulator = Simulator.of(
        model,
        timestep=timestep,
        integrator=None if integrator is None else INTEGRATORS[integrator],
        joint_model=SmoothJointModel.of(model) if smooth else None,
        contact=contact_model,
    )
    return simulator if options.blueprint is None else simulator.augmented(options.blueprint)


def count_steps(simulator: Simulator, seconds: float) -> int:
    """Number of steps of a motion that lasts `seconds` [s]."""
    timestep = float(simulator.timestep)
    if round(seconds / timestep) < 1:
        raise TruesimError(f"--seconds {seconds:g} is shorter than one time step ({timestep:g} s).")
    return round(seconds / timestep)


class Start(NamedTuple):
    """Initial state of a motion, and the commands that are held where no log gives any."""

    state: State
    command: np.ndarray


def choose_start(simulator: Simulator, keyframe: str | None, log: Log | None) -> Start:
    """Start at the first sample of a log, at a keyframe, or in the reference configuration; prints which keyframe.

    Args:
        simulator: The simulator.
        keyframe: Name of a keyframe, `none`, or None for the file's first one.
        log: Log to start from, if any.
    """
    model = simulator.model
    if log is not None and keyframe is None:
        return Start(_logged_state(model, log), np.zeros(model.nu))
    if log is not None:
        raise TruesimError("Give --keyframe or --start-from-log, not both.")
    if keyframe == NO_KEYFRAME or (keyframe is None and not model.keyframes):
        return Start(State(reference_configuration(model), jnp.zeros(model.nv), jnp.zeros(())), np.zeros(model.nu))
    key = model.keyframes[0] if keyframe is None else model.keyframe(keyframe)
    which = "the first keyframe of the file" if keyframe is None else "the keyframe"
    results().print(f"Starts at {which}, {escape(repr(key.name))}, with its controls.")
    return Start(State(jnp.asarray(key.q), jnp.asarray(key.v), jnp.asarray(key.time)), key.command)


def simulate_motion(simulator: Simulator, steps: int, controls: Log | None, start: Start) -> tuple[Trajectory, int]:
    """Simulate with progress on standard error; returns the trajectory and the number of steps that were made.

    Args:
        simulator: The simulator.
        steps: Number of steps to make.
        controls: Log with commands, if any; the start's command is held otherwise.
        start: Initial state and command.
    """
    time = np.arange(steps) * float(simulator.timestep)
    return _run(simulator, start.state, _commands(simulator.model, controls, time, start.command))


def write_motion(out: Path, simulator: Simulator, trajectory: Trajectory) -> None:
    """Write a trajectory as a log, with measurements of all sensors."""
    write_log(out, _columns(simulator, trajectory))


def _commands(model: Model, log: Log | None, time: np.ndarray, held: np.ndarray) -> np.ndarray:
    """Controls at each step; the held ones where there is no log or no column for an actuator."""
    commands = np.tile(held, (len(time), 1))
    if log is None or not model.nu:
        return commands
    given = [name for name in log.columns if name.startswith("ctrl/")]
    expected = command_columns(model)
    for name in given:
        if name not in expected:
            raise unknown_name("actuator column", name, expected)
    if not given:
        raise TruesimError(f"{log.name} has no column ctrl/<actuator>; expected some of {', '.join(expected)}.")
    for name in given:
        if missing := int(np.sum(~log.present([name]))):
            raise TruesimError(f"{name} of {log.name} has {missing} missing values: fill or remove them first.")
    commands[:, [expected.index(name) for name in given]] = log.hold(given, time + log.time[0])
    return commands


def _logged_state(model: Model, log: Log) -> State:
    q = [log.column(name)[0] for name in position_columns(model)]
    v = [log.columns[name][0] if name in log.columns else 0.0 for name in velocity_columns(model)]
    if not np.all(np.isfinite([*q, *v])):
        raise TruesimError(f"The first sample of {log.name} has missing values: start the log at a complete sample.")
    return State(*from_encoders(model, jnp.array(q), jnp.array(v)), jnp.zeros(()))


def _run(simulator: Simulator, state: State, commands: np.ndarray) -> tuple[Trajectory, int]:
    """Simulate in chunks with progress; after an interruption, the part so far."""
    chunk = max(1, -(-len(commands) // CHUNKS))
    steps = len(commands)
    padded = np.concatenate([commands, np.repeat(commands[-1:], -steps % chunk, axis=0)])
    by_tables = simulator.constraint_contact is not None and reason_against(simulator) is None
    parameters_fixed = functools.partial(record, simulator, diagnostics=not by_tables)  # constants: the smallest kernel
    advance: Callable[..., Trajectory] = parameters_fixed if by_tables else jax.jit(parameters_fixed)
    state = simulator.started(state, jnp.asarray(commands[0]))
    pieces: list[Trajectory] = []
    with Progress(TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn(), console=messages()) as bar:
        task = bar.add_task("compiling", total=len(padded) // chunk)
        try:
            for part in np.split(padded, len(padded) // chunk):
                piece = jax.block_until_ready(advance(state, part))
                pieces.append(jax.tree.map(np.asarray, piece))
                state = piece.end
                bar.update(task, advance=1, description="simulating")
                if not np.all(np.isfinite(piece.q[-1])):
                    break
        except KeyboardInterrupt:
            if not pieces:
                raise
    done = min(steps, len(pieces) * chunk)
    return _joined(pieces, done), done


def _joined(pieces: list[Trajectory], steps: int) -> Trajectory:
    """One trajectory of `steps + 1` samples; the last sample of a piece is the first of the next."""
    info = jax.tree.map(lambda *x: np.concatenate(x)[:steps], *(piece.info for piece in pieces))
    signals = [(p.time, p.q, p.v, p.command, p.sensors) for p in pieces]
    time, q, v, command, sensors = jax.tree.map(
        lambda *x: np.concatenate([*(a[:-1] for a in x[:-1]), x[-1]])[: steps + 1], *signals
    )
    return Trajectory(time, q, v, command, sensors, info, pieces[-1].end)


def _columns(simulator: Simulator, trajectory: Trajectory) -> dict[str, np.ndarray]:
    """Columns of the log by the naming convention: measurements with the errors and delays of the sensors."""
    model = simulator.model
    declared = [column for sensor in model.sensors.declared for column in sensor_columns(sensor)]
    read = np.asarray(measure(model, trajectory, simulator=simulator)).T
    columns = dict(zip([*declared, *position_columns(model), *velocity_columns(model)], read, strict=True))
    order = [*position_columns(model), *velocity_columns(model), *command_columns(model), *declared]
    columns.update(zip(command_columns(model), trajectory.command.T, strict=True))
    return {"time": trajectory.time, **{name: columns[name] for name in order}}


def print_motion(trajectory: Trajectory, out: Path, done: int, steps: int) -> None:
    """Print what was written, or raise an error if the motion is not finite.

    Args:
        trajectory: The motion.
        out: File it was written to.
        done: Number of steps that were made.
        steps: Number of steps that were asked for.
    """
    console = results()
    finite = np.all(np.isfinite(trajectory.q), axis=1)
    if not np.all(finite):
        when = trajectory.time[np.argmin(finite)]
        raise TruesimError(f"{message(RESULTS.not_finite)} It happened at {when:g} s; {out} has the motion until then.")
    console.print(f"Simulated {trajectory.time[-1]:g} s in {done} steps of {trajectory.time[1]:g} s: {out}")
    info = trajectory.info
    if info and (rough := int(np.sum(info.result._value == RESULTS.constraints_not_converged._value))):
        console.print(f"In {rough} of them: {message(RESULTS.constraints_not_converged)}")
    if done < steps:
        console.print(f"Interrupted after {done} of {steps} steps.")
