"""Coverage of 95 % intervals under faults of real recordings.

`python -m experiments.fault_coverage [--repeats 4] [FAULT...]`. The arm of `experiments.five_forms` is recorded by
MuJoCo with one fault at a time; every recording is fitted, and every interval of a free parameter either holds the true
value or not. The last column counts the fits that say why their intervals may not hold: by another status than
`converged`, by residuals above the noise of the sensors, by stamps that jitter, or by residuals that contradict fixed
parameters.
"""

import argparse
import dataclasses
import sys

import mujoco
import numpy as np

import truesim as ts
from experiments.five_forms.recording import COUNTS, FILE, FREE, JOINTS, TRUTH, mjcf
from experiments.recorded import show
from truesim.core.errors import TruesimError
from truesim.files.logs import Log
from truesim.files.robots import loads
from truesim.identification.diagnose.status import Code
from truesim.physics.model import paths


@dataclasses.dataclass(frozen=True)
class Fault:
    """What is wrong with a recording."""

    rate: float = 100.0
    """Samples and commands a second."""
    slow: float = 1.0
    """Factor by which the loop is slower than its stamps say."""
    noise: float = 2e-4
    """White noise of the encoders [rad]."""
    memory: float = 0.0
    """Correlation of the noise from sample to sample."""
    counts: int = 0
    """Encoder steps a turn; 0 for none."""
    jitter: float = 0.0
    """Standard deviation of the stamps [s]."""
    loop: float = 0.0
    """Standard deviation of the times at which samples are taken and commands sent, if the stamps are frame numbers
    over the frame rate [s]."""
    backlash: float = 0.0
    """Play between motor and joint [rad]."""
    limit: float = 0.0
    """Force at which the actuators saturate [N m]; the robot file does not know it. 0 for none."""
    fixed: float = 1.0
    """Factor by which the fixed masses of the robot file are wrong."""


SAID = {Code.RESIDUAL_ABOVE_NOISE, Code.CONTRADICTED, Code.STAMP_JITTER}
"""Diagnostics of a converged fit that say why its intervals may not hold."""
FAULTS = {
    "none": Fault(),
    "encoders of 4,096 steps": Fault(counts=COUNTS, noise=0.0),
    "50 Hz": Fault(rate=50.0),
    "33 Hz": Fault(rate=100 / 3),
    "stamps jitter by 0.5 ms": Fault(jitter=5e-4),
    "stamps jitter by 3 ms": Fault(jitter=3e-3),
    "30 Hz with stamps of frame numbers, loop jitters by 2 ms": Fault(rate=30.0, loop=2e-3),
    "30 Hz with stamps of frame numbers, loop jitters by 5 ms": Fault(rate=30.0, loop=5e-3),
    "30 Hz with stamps of frame numbers, loop slower by 3 %": Fault(rate=30.0, slow=1.03),
    "noise with memory 0.8": Fault(memory=0.8),
    "backlash of 5 mrad": Fault(backlash=5e-3),
    "saturated actuators": Fault(limit=2.0),
    "masses wrong by 20 %": Fault(fixed=1.2),
}


def record(fault: Fault, seed: int, seconds: float = 8.0) -> Log:
    """A recording with a fault."""
    limit = f' forcerange="{-fault.limit} {fault.limit}"' if fault.limit else ""
    model = mujoco.MjModel.from_xml_string(mjcf(TRUTH).replace("<position", f"<position{limit}"))
    data, random = mujoco.MjData(model), np.random.default_rng(seed)
    time = np.arange(round(seconds * fault.rate)) / fault.rate
    taken = np.round(fault.slow * (time + fault.loop * random.normal(size=len(time))) / model.opt.timestep)
    steps = np.maximum(np.diff(taken, append=np.round(fault.slow * seconds / model.opt.timestep)), 1).astype(int)
    frequency, phase = random.uniform(0.1, 1.2, (5, 3)), random.uniform(0, 2 * np.pi, (5, 3))
    sines = np.sin(2 * np.pi * frequency * time[:, None, None] + phase) - np.sin(phase)
    commands = 0.25 * np.clip(time, 0, 1)[:, None] * sines.sum(axis=1)
    measured, motor = [], np.zeros(3)
    for command, count in zip(commands, steps, strict=True):
        motor = np.clip(motor, data.qpos - fault.backlash / 2, data.qpos + fault.backlash / 2)
        measured.append(motor.copy() if fault.backlash else data.qpos.copy())
        data.ctrl = command
        mujoco.mj_step(model, data, int(count))
    white = random.normal(size=(len(time), 3))
    noise = np.zeros(3)
    for k, row in enumerate(white):
        noise = fault.memory * noise + np.sqrt(1 - fault.memory**2) * row if k else row
        measured[k] = measured[k] + fault.noise * noise
    positions = np.array(measured)
    if fault.counts:
        step = 2 * np.pi / fault.counts
        positions = np.round(positions / step) * step
    stamps = np.maximum.accumulate(time + fault.jitter * random.normal(size=len(time)))
    columns = {f"qpos/{name}": positions[:, k] for k, name in enumerate(JOINTS)}
    return Log(stamps, columns | {f"ctrl/{name}": commands[:, k] for k, name in enumerate(JOINTS)}, f"run{seed}")


def main() -> None:
    """Fit all recordings and print a table."""
    parser = argparse.ArgumentParser(prog="python -m experiments.fault_coverage")
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("faults", nargs="*")
    given = parser.parse_args()
    rows = []
    for name, fault in FAULTS.items():
        if given.faults and not any(word in name for word in given.faults):
            continue
        held, trusted, told = [], [], 0
        for seed in range(given.repeats):
            try:
                inside, said = _covered(fault, seed)
            except TruesimError as error:
                print(f"{name}, seed {seed}: {error}", file=sys.stderr)
                told += 1
                continue
            held += inside
            told += said
            trusted += [] if said else inside
        of_trusted = f"{100 * np.mean(trusted):.0f}" if trusted else "-"
        rows.append((name, f"{100 * np.mean(held):.0f}", of_trusted, f"{told} of {given.repeats}"))
        print(rows[-1], file=sys.stderr, flush=True)
    header = ("fault", "intervals that hold [%]", "of fits that say nothing [%]", "fits that say why not")
    show(f"95 % intervals of {len(FREE) * len(JOINTS)} values a fit, {given.repeats} fits", header, rows)


def _covered(fault: Fault, seed: int) -> tuple[list[bool], bool]:
    """Whether each interval holds the truth, and whether the fit says that they may not."""
    model = loads(mjcf(FILE), path="arm.xml")
    for name in model.bodies.names:
        path = f"bodies/{name}.mass"
        model = paths.write(model, path, fault.fixed * np.asarray(paths.read(model, path)))
    fit = ts.identify(model, [record(fault, seed)], FREE)
    inside = []
    for row in fit.document["parameters"]:
        truth = TRUTH[row["path"].rpartition(".")[2]]
        inside.append(bool(row["low"] <= truth <= row["high"]))
    codes = {d.code for d in fit.diagnostics}
    return inside, fit.status != "converged" or bool(codes & SAID)


if __name__ == "__main__":
    main()
