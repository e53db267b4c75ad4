"""Fits a Dynamixel XL330 to the runs at two settings of kp and predicts those at the third, for each of three settings.

`python -m experiments.xl330_servo`. The law is `duty_servo`; kp is known for each run, the supply voltage follows its
column, and while torque is switched off the motor is disconnected (a gear of zero). The servo closes on the encoder
whose offset is sought, so offset and bias are one number. Runs are predicted open loop over their whole length from
their first 25 ms; the score is the mean absolute error of the four trajectories. Friction in this model does not grow
with the load, as it does in real gears.
"""

import json

import jax
import numpy as np

from experiments.recorded import folder, show
from truesim.data import read_log
from truesim.formats import load
from truesim.identify.api import problems
from truesim.identify.build import Options
from truesim.identify.evaluate import predictions
from truesim.identify.fit import Settings, solve_problem
from truesim.identify.per_log import PerLog
from truesim.model.laws import with_law

FREE = (
    "actuators/servo.error_gain",
    "actuators/servo.torque_constant",
    "actuators/servo.resistance",  # shows, since the motor is disconnected in some runs
    "actuators/servo.delay",
    "joints/arm.armature",
    "joints/arm.damping",
    "joints/arm.frictionloss",
)
OFFSET = ("sensors/qpos/arm.bias", "-actuators/servo.offset")
START = {"error_gain": 2e-3, "volts": 7.4, "resistance": 3.0, "torque_constant": 0.6, "max_duty": 1.0}
WINDOW, WHOLE = 2.0, 5.9
"""Length of the windows of the fit, and of a run [s]."""
REQUIRED = 0.045
"""[rad]"""


def held_out_error(kp: float) -> tuple[float, dict[str, float]]:
    """Error of the runs at this kp, fitted to all others, and what was found [rad, SI units]."""
    data = folder("xl330_servo")
    runs = json.loads((data / "runs.json").read_text(encoding="utf-8"))
    names = {kept: [name for name in runs if (runs[name]["kp"] == kp) == kept] for kept in (False, True)}
    per_log: PerLog = {
        "*": {
            "actuators/servo.volts": "column:supply_volts",
            "actuators/servo.gear[0]": "column:torque_enable",
        },
        **{name: {"actuators/servo.kp": float(run["kp"])} for name, run in runs.items()},
    }
    model = with_law(load(data / "rig.xml"), "servo", "duty_servo", kp=400.0, **START)
    fitted, kept = ([read_log(data / name) for name in names[k]] for k in (False, True))
    problem, unseen = problems(model, fitted, FREE, kept, Options(ties=[OFFSET], per_log=per_log))
    assert unseen is not None
    theta = solve_problem(problem, Settings(window=WINDOW)).theta
    errors = [np.abs(p.residual[p.valid]).mean() for p in predictions(unseen, theta, WHOLE)]
    values = zip(problem.parameters.names, problem.parameters.values(theta), strict=True)
    return float(np.mean(errors)), {name.rpartition(".")[2]: float(value) for name, value in values}


def main() -> None:
    """Leaves out each kp in turn and prints."""
    jax.config.update("jax_enable_x64", True)
    rows, header = [], ["kp left out", "required", "reached"]
    for kp in (100, 400, 800):
        error, found = held_out_error(kp)
        rows.append([kp, REQUIRED, error, *found.values()])
        names = list(found)
    show("XL330, mean absolute error over whole runs [rad], and estimates", [*header, *names], rows)


if __name__ == "__main__":
    main()
