"""`truesim simulate`: a simulated motion as a log."""

from pathlib import Path
from typing import Annotated

import typer

import truesim as ts
from truesim.cli import lazy
from truesim.cli.arguments import Contact, FloatingBase, Keyframe, Mapping, ReplaceFile, RobotOrFit, Smoothing, Threads
from truesim.cli.outputs import check_file


def simulate(
    robot: RobotOrFit,
    seconds: Annotated[float, typer.Option("--seconds", help="Duration, in s.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="Log to write (CSV).", metavar="FILE")] = Path("traj.csv"),
    controls: Annotated[
        Path | None,
        typer.Option(
            "--controls",
            help="Log whose columns ctrl/<actuator> drive the robot, each value held until the next.",
            metavar="LOG",
            show_default=False,
        ),
    ] = None,
    mapping: Mapping = None,
    start_from_log: Annotated[
        bool,
        typer.Option(
            "--start-from-log",
            help="Start at the first sample of the controls' log (qpos/ and qvel/ columns).",
        ),
    ] = False,
    keyframe: Keyframe = None,
    timestep: Annotated[
        float | None, typer.Option("--timestep", help="Time step in s; by default the file's.", show_default=False)
    ] = None,
    integrator: Annotated[
        str | None,
        typer.Option(
            "--integrator",
            help="Euler, RK4, implicit, implicitfast or discrete; by default the file's.",
            show_default=False,
        ),
    ] = None,
    smooth: Annotated[
        bool, typer.Option("--smooth", help="Smooth joint friction and limits instead of MuJoCo's constraints.")
    ] = False,
    contact: Contact = None,
    smoothing: Smoothing = None,
    floating_base: FloatingBase = False,
    threads: Threads = 1,
    force: ReplaceFile = False,
) -> None:
    """Simulate a robot and write the motion as a log: time, qpos/, qvel/, ctrl/ and sensor/ columns.

    With the folder of a fit, its identified robot is simulated together with its trained networks.
    """
    check_file(out, force)
    simulator = lazy.motion.make_simulator(
        robot, floating_base, contact, smoothing, timestep, integrator=integrator, smooth=smooth
    )
    steps = lazy.motion.count_steps(simulator, seconds)
    log = None if controls is None else ts.read_log(controls, mapping=mapping)
    start = lazy.motion.choose_start(simulator, keyframe, log if start_from_log else None)
    trajectory, done = lazy.motion.simulate_motion(simulator, steps, log, start)
    lazy.motion.write_motion(out, simulator, trajectory)
    lazy.motion.print_motion(trajectory, out, done, steps)
