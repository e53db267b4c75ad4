"""Fit of a Dynamixel XL330 to the runs at two values of kp, tested on those at the third, for each of three values.

`python -m experiments.xl330_servo`. The actuator model is `duty_servo`; kp is known for each run, the supply voltage
is read from its column, and while torque is switched off the motor is disconnected (a gear of zero). The servo uses the
encoder whose offset is estimated, so offset and bias are one number. Runs are predicted open loop over the full length
from their first 25 ms; the score is the mean absolute error of the four trajectories. Friction in this model does not
grow with the load, as it does in real gears.
"""

import json

import jax
import numpy as np

from experiments.recorded import folder, show
from truesim.files.logs import read_log
from truesim.files.robots import load
from truesim.identification.diagnose.evaluation import predictions
from truesim.identification.problem.build import build, prepare_logs, same_problem
from truesim.identification.problem.options import ProblemOptions
from truesim.identification.problem.per_log import PerLog
from truesim.identification.solve.options import SolveOptions
from truesim.identification.solve.stages import solve_problem
from truesim.physics.model.actuator_models import with_actuator_model

FREE = (
    "actuators/servo.error_gain",
    "actuators/servo.torque_constant",
    "actuators/servo.resistance",  # identifiable, since the motor is disconnected in some runs
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
    """Error of the runs at this kp after a fit to all others, and estimates [rad, SI units]."""
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
    model = with_actuator_model(load(data / "rig.xml"), "servo", "duty_servo", kp=400.0, **START)
    fitted, kept = ([read_log(data / name) for name in names[k]] for k in (False, True))
    options = ProblemOptions(ties=[OFFSET], per_log=per_log)
    problem = build(model, fitted, FREE, options)
    held_out = same_problem(problem, model, prepare_logs(model, kept), FREE, options)
    theta = solve_problem(problem, SolveOptions(window=WINDOW)).theta
    errors = [np.abs(p.residual[p.valid]).mean() for p in predictions(held_out, theta, WHOLE)]
    values = zip(problem.parameters.names, problem.parameters.values(theta), strict=True)
    return float(np.mean(errors)), {name.rpartition(".")[2]: float(value) for name, value in values}


def main() -> None:
    """Leave out each kp in turn and print."""
    jax.config.update("jax_enable_x64", True)
    rows, header = [], ["kp left out", "required", "reached"]
    for kp in (100, 400, 800):
        error, found = held_out_error(kp)
        rows.append([kp, REQUIRED, error, *found.values()])
        names = list(found)
    show("XL330, mean absolute error over whole runs [rad], and estimates", [*header, *names], rows)


if __name__ == "__main__":
    main()
