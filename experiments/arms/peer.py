"""The textbook's regression with Pinocchio beside ours, on the Kinova's recordings.

`python -m experiments.arms.peer`. Base parameters by plain least squares on Pinocchio's regressor with armature,
viscous and Coulomb friction and offsets, on the same band-limited samples; and the regression of `--preset arm`.
"""

import time

import numpy as np
import pinocchio

from experiments.arms.protocol import BAND, HELD_OUT
from experiments.recorded import folder, show
from truesim.core.typing import Float
from truesim.files.logs import read_log
from truesim.files.robots import load
from truesim.identification.problem.build import prepare_logs
from truesim.identification.regression.errors import torque_errors
from truesim.identification.regression.signals import JointSamples, band_limited, rest_speeds
from truesim.identification.torque_regression import regress_arm
from truesim.physics.model.model import Model


def rows_of(robot: pinocchio.Model, samples: JointSamples) -> Float[np.ndarray, "samples joints columns"]:
    """Equations of all samples: Pinocchio's regressor, then four columns of each joint."""
    data, n = robot.createData(), robot.nv
    out = np.zeros((len(samples), n, 10 * n + 4 * n))
    for k, (q, v, a) in enumerate(zip(samples.q, samples.v, samples.a, strict=True)):
        full = configuration(robot, q)
        out[k, :, : 10 * n] = pinocchio.computeJointTorqueRegressor(robot, data, full, v, a)
        for j in range(n):
            out[k, j, 10 * n + 4 * j : 10 * n + 4 * j + 4] = a[j], v[j], samples.direction[k, j], 1.0
    return out


def configuration(robot: pinocchio.Model, q: Float[np.ndarray, " joints"]) -> Float[np.ndarray, " nq"]:
    """Pinocchio's configuration: continuous joints are cosine and sine."""
    out = []
    for joint, angle in zip(list(robot.joints)[1:], q, strict=True):
        out += [np.cos(angle), np.sin(angle)] if joint.nq == 2 else [angle]
    return np.array(out)


def least_squares(robot: pinocchio.Model, model: Model, samples: JointSamples) -> Float[np.ndarray, " columns"]:
    """Minimum-norm least squares of rows at which a joint moves, joints weighted by their torque."""
    rows, moving = rows_of(robot, samples), np.abs(samples.v) > rest_speeds(model)
    weight = 1 / np.sqrt(np.mean(samples.torque**2, axis=0))
    A = np.concatenate([weight[j] * rows[moving[:, j], j] for j in range(model.nv)])
    b = np.concatenate([weight[j] * samples.torque[moving[:, j], j] for j in range(model.nv)])
    scale = np.linalg.norm(A, axis=0) + 1e-12
    return np.linalg.lstsq(A / scale, b, rcond=1e-4)[0] / scale


def main() -> None:
    """Fit both and print errors on the held-out runs."""
    path = folder("kinova_gen3")
    model, robot = load(path / "robot.urdf"), pinocchio.buildModelFromUrdf(str(path / "robot.urdf"))
    files = [f for f in sorted(path.glob("*.csv")) if f.name not in HELD_OUT]
    train = prepare_logs(model, [read_log(f) for f in files])
    begin = time.process_time()
    x = least_squares(robot, model, band_limited(model, train, BAND))
    middle = time.process_time()
    found = regress_arm(model, train)
    end = time.process_time()
    fitted = next(iter(found.candidates.values())).written(found.model)
    rows = [("CPU of the fit [s]", middle - begin, end - middle)]
    for name in HELD_OUT:
        logs = prepare_logs(model, [read_log(path / name)])
        samples = band_limited(model, logs, BAND)
        residual, moving = samples.torque - rows_of(robot, samples) @ x, np.abs(samples.v) > rest_speeds(model)
        peer = [
            np.sqrt(np.mean(residual[m, j] ** 2) / np.mean(samples.torque[m, j] ** 2))
            for j, m in enumerate(moving.T)
            if m.any()
        ]
        own = [e.relative for e in torque_errors(fitted, logs, BAND).values()]
        rows.append((f"{name}, held-out torque error [%]", 100 * float(np.mean(peer)), 100 * float(np.mean(own))))
    show("Kinova Gen3", ("figure", "Pinocchio, least squares", "truesim"), rows)


if __name__ == "__main__":
    main()
