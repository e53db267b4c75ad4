"""`truesim design`: the motion that reduces the uncertainty of parameters most."""

from pathlib import Path

from truesim.cli import design_options as given
from truesim.cli import lazy
from truesim.cli.arguments import Channel, EarlierFit, ReplaceFile, Robot, Seed, Threads
from truesim.cli.identify_options import FreeIfAny
from truesim.cli.outputs import check_file
from truesim.cli.pairs import named_numbers, pairs
from truesim.core.errors import TruesimError


def design(
    robot: Robot,
    seconds: given.Duration,
    free: FreeIfAny = None,
    fourier: given.Fourier = False,
    out: given.OutputLog = Path("excitation.csv"),
    speed: given.SpeedLimit = None,
    force_limit: given.ForceLimit = None,
    position: given.PositionRange = None,
    noise: given.Noise = None,
    channel: Channel = None,
    fit: EarlierFit = None,
    rate: given.Rate = 200.0,
    criterion: given.Criterion = "intervals",
    starts: given.Starts = 2,
    iterations: given.Iterations = 60,
    seed: Seed = 0,
    threads: Threads = 1,
    force: ReplaceFile = False,
) -> None:
    """Design the motion of ROBOT that reduces the uncertainty of parameters most, and write its commands.

    The limits are the tighter of those in the robot file and those of the options. Play the file with `truesim simulate
    --controls` or on the robot, then identify from the recording. Collisions between bodies are not avoided, except
    with --fourier, which designs a periodic motion of an arm for `truesim identify --preset arm`.
    """
    check_file(out, force)
    if fourier == bool(free):
        raise TruesimError("Name the uncertain parameters with --free, or give --fourier for the torques of an arm.")
    limits = (
        pairs(position, "LOW:HIGH"),
        named_numbers(speed, "JOINT=VALUE"),
        named_numbers(force_limit, "ACTUATOR=VALUE"),
    )
    if fourier:
        motion = lazy.designing.design_periodic(robot, limits, seconds, rate, seed)
        lazy.logs.write_log(out, motion.columns())
        lazy.designing.print_periodic(motion, out)
        return
    options = lazy.excitation.DesignOptions(
        seconds=seconds,
        rate=rate,
        noise=named_numbers(noise, "CHANNEL=VALUE"),
        channels=tuple(channel or ()),
        criterion=criterion,
        starts=starts,
        iterations=iterations,
        seed=seed,
        threads=threads,
    )
    plan = lazy.designing.design_motion(robot, free or (), options, limits, fit)
    lazy.logs.write_log(out, plan.columns())
    lazy.designing.print_plan(plan, out)
