"""`truesim simulate`: a motion as a log."""

import functools
from pathlib import Path
from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from truesim.cli.arguments import Barrier, Contact, FloatingBase, Mapping, Robot
from truesim.contact import AbstractContact
from truesim.contact.choose import NONE, contact_named
from truesim.core.errors import TruesimError, unknown_name
from truesim.core.results import RESULTS, message
from truesim.data import Log, command_columns, position_columns, read_log, sensor_columns, velocity_columns, write_log
from truesim.formats import load
from truesim.identify.folder import networks_in, robot_file
from truesim.model.model import Model
from truesim.simulate import Simulator, SmoothJointLaw, State, Trajectory, readings, record
from truesim.simulate.integrators import INTEGRATORS
from truesim.simulate.sensors import from_encoders

CHUNKS = 50
"""Pieces in which a long motion is computed, so that it can show progress and be interrupted."""


def simulate(
    robot: Robot,
    seconds: Annotated[float, typer.Option(help="How long to simulate, in seconds.", show_default=False)],
    out: Annotated[Path, typer.Option(help="Where to write the motion (CSV).")] = Path("traj.csv"),
    controls: Annotated[
        Path | None,
        typer.Option(
            help="Log whose columns ctrl/<actuator> drive the robot, each value held until the next.",
            show_default=False,
        ),
    ] = None,
    mapping: Mapping = None,
    start_from_log: Annotated[
        bool,
        typer.Option("--start-from-log", help="Start where the controls' log starts (its qpos/ and qvel/ columns)."),
    ] = False,
    timestep: Annotated[
        float | None, typer.Option(help="Time step in seconds; the file's if not given.", show_default=False)
    ] = None,
    integrator: Annotated[
        str | None, typer.Option(help=f"One of {', '.join(INTEGRATORS)}; the file's if not given.", show_default=False)
    ] = None,
    smooth: Annotated[
        bool, typer.Option("--smooth", help="Smooth dry friction and limits instead of MuJoCo's law.")
    ] = False,
    contact: Contact = None,
    barrier: Barrier = None,
    floating_base: FloatingBase = False,
    force: Annotated[bool, typer.Option("--force", help="Write over an existing file.")] = False,
) -> None:
    """Simulate ROBOT and write the motion as a log: time, qpos/, qvel/, ctrl/ and sensor/ columns.

    ROBOT may be the folder of a fit: then its robot moves, with the networks that were trained.
    """
    if out.exists() and not force:
        raise TruesimError(f"{out} exists already; choose another --out, or --force to write over it.")
    if not out.resolve().parent.is_dir():
        raise TruesimError(f"There is no folder {out.parent} to write {out.name} into.")
    fitted = robot.is_dir()
    model = load(robot_file(robot) if fitted else robot, floating_base=floating_base)
    law = contact_named(model, contact or NONE, barrier=barrier)
    if smooth and law is not None and law.treats_joints:
        raise TruesimError("Rigid contact has its own dry friction and limits: give --smooth or --contact rigid.")
    simulator = _simulator(model, timestep, integrator, smooth, law)
    networks = networks_in(robot) if fitted else None
    simulator = simulator if networks is None else simulator.augmented(networks)
    steps = round(seconds / float(simulator.timestep))
    if steps < 1:
        raise TruesimError(f"--seconds {seconds:g} is shorter than one time step ({float(simulator.timestep):g} s).")
    log = read_log(controls, mapping=mapping) if controls is not None else None
    commands = _commands(model, log, np.arange(steps) * float(simulator.timestep))
    state = _start(model, log if start_from_log else None)
    trajectory, done = _run(simulator, state, commands)
    write_log(out, _columns(simulator, trajectory))
    _report(trajectory, out, done, steps)


def _simulator(
    model: Model, timestep: float | None, integrator: str | None, smooth: bool, contact: AbstractContact | None
) -> Simulator:
    if integrator is not None and integrator not in INTEGRATORS:
        raise unknown_name("integrator", integrator, INTEGRATORS)
    if timestep is not None and not timestep > 0:
        raise TruesimError(f"--timestep must be positive, not {timestep:g}.")
    return Simulator.of(
        model,
        timestep=timestep,
        integrator=None if integrator is None else INTEGRATORS[integrator],
        joint_law=SmoothJointLaw.of(model) if smooth else None,
        contact=contact,
    )


def _commands(model: Model, log: Log | None, time: np.ndarray) -> np.ndarray:
    """Controls at each step; zero where there is no log or no column for an actuator."""
    commands = np.zeros((len(time), model.nu))
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
            raise TruesimError(
                f"{name} of {log.name} has {missing} missing values: fill or cut them before driving a robot."
            )
    commands[:, [expected.index(name) for name in given]] = log.held(given, time + log.time[0])
    return commands


def _start(model: Model, log: Log | None) -> State:
    state = State.at_rest(model)
    if log is None:
        return state
    q = [log.column(name)[0] for name in position_columns(model)]
    v = [log.columns[name][0] if name in log.columns else 0.0 for name in velocity_columns(model)]
    if not np.all(np.isfinite([*q, *v])):
        raise TruesimError(f"The first sample of {log.name} has missing values: cut the log where all are known.")
    return State(*from_encoders(model, jnp.array(q), jnp.array(v)), jnp.zeros(()))


def _run(simulator: Simulator, state: State, commands: np.ndarray) -> tuple[Trajectory, int]:
    """The motion in chunks, with progress; what was done so far if interrupted."""
    chunk = max(1, -(-len(commands) // CHUNKS))
    steps = len(commands)
    padded = np.concatenate([commands, np.repeat(commands[-1:], -steps % chunk, axis=0)])
    advance = jax.jit(functools.partial(record, simulator))  # the robot's numbers are constants: the smallest kernel
    state = simulator.started(state, jnp.asarray(commands[0]))
    pieces: list[Trajectory] = []
    with Progress(
        TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn(), console=Console(stderr=True)
    ) as bar:
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
    """Columns of the log, in the convention: what the sensors read, with their errors and delays."""
    model = simulator.model
    declared = [column for sensor in model.sensors.declared for column in sensor_columns(sensor)]
    read = np.asarray(readings(model, trajectory, simulator=simulator)).T
    columns = dict(zip([*declared, *position_columns(model), *velocity_columns(model)], read, strict=True))
    order = [*position_columns(model), *velocity_columns(model), *command_columns(model), *declared]
    columns.update(zip(command_columns(model), trajectory.command.T, strict=True))
    return {"time": trajectory.time, **{name: columns[name] for name in order}}


def _report(trajectory: Trajectory, out: Path, done: int, steps: int) -> None:
    """Says what was written, and whether it can be trusted."""
    console = Console(soft_wrap=True, highlight=False)
    finite = np.all(np.isfinite(trajectory.q), axis=1)
    if not np.all(finite):
        when = trajectory.time[np.argmin(finite)]
        raise TruesimError(
            f"{message(RESULTS.not_finite)} It happened at {when:g} s; {out} holds the motion up to there."
        )
    console.print(f"Simulated {trajectory.time[-1]:g} s in {done} steps of {trajectory.time[1]:g} s: {out}")
    rough = int(np.sum(trajectory.info.result._value == RESULTS.constraints_not_converged._value))
    if rough:
        console.print(f"In {rough} of them: {message(RESULTS.constraints_not_converged)}")
    if done < steps:
        console.print(f"Interrupted after {done} of {steps} steps.")
