"""Fits the pendulum to all training recordings and forecasts the validation sequences.

`python -m experiments.ibm_double_pendulum`, about two minutes. The score is the wrapped-angle RMSE of both absolute arm
angles over the 200 frames that follow four given ones. The four frames determine the initial velocities only to 0.12
and 0.23 rad/s, for white noise of the markers of 0.385 units. The column `noise alone` is the expected error that this
alone causes over the first frames.
"""

import jax

from experiments.ibm_double_pendulum.forecast import first_velocity_limit, forecast_errors
from experiments.ibm_double_pendulum.parameters import patterns
from experiments.ibm_double_pendulum.recordings import RIG, training, validation
from experiments.recorded import show
from truesim.files.robots import load
from truesim.identification.fit import Fit
from truesim.identification.problem.build import build
from truesim.identification.problem.fitted import fitted_model
from truesim.identification.problem.options import ProblemOptions
from truesim.identification.solve.options import SolveOptions
from truesim.identification.solve.solution import Solution
from truesim.identification.solve.stages import solve_problem

WINDOW = 0.25
"""Length of the windows of the fit [s]."""
REQUIRED = {200: 0.082, 50: 0.011}
"""Largest accepted error [rad], by number of frames."""


def fit() -> Solution:
    """Fit of the pendulum to the training recordings."""
    logs, cameras = training()
    return solve_problem(
        build(load(RIG), logs, patterns(), ProblemOptions(per_log=cameras)), SolveOptions(window=WINDOW)
    )


def main() -> None:
    """Fit, forecast and print."""
    jax.config.update("jax_enable_x64", True)
    solution = fit()
    estimates = Fit.of(solution).estimates
    show(
        f"Parameters, from {len(solution.problem.recordings)} recordings in {solution.solve_seconds:.0f} s of CPU",
        ("parameter", "start", "value", "low", "high", "unit"),
        [(e.path, float(e.start), float(e.value), float(e.low), float(e.high), e.unit) for e in estimates],
    )
    model = fitted_model(solution.problem, solution.theta)
    errors = forecast_errors(model, *validation())
    limit = first_velocity_limit(model, *validation(), frames=50)
    rows = [
        (f"first {frames} frames", required, errors[:frames], limit if frames == 50 else "")
        for frames, required in REQUIRED.items()
    ]
    show(
        "Forecast of 24 validation sequences, RMSE of both arm angles [rad]",
        ("over", "required", "reached", "noise alone"),
        [(over, required, float((e**2).mean() ** 0.5), bound) for over, required, e, bound in rows],
    )


if __name__ == "__main__":
    main()
