"""Friction and mass of a pushed box from a noisy log, with rigid contact and exact derivatives.

Run `python -m experiments.boxpush` with `TRUESIM_DATA` pointing to the recorded data.
"""

import json
import os
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import least_squares

from truesim import native
from truesim.contact import ContactComplementarity
from truesim.data import read_log
from truesim.formats import load
from truesim.model import paths
from truesim.simulate import Simulator, State, rollout

STARTS = ((0.8, 1.25), (0.2, 0.8), (0.8, 3.2))
"""Friction and mass [kg]; from the last the box never moves, and nothing depends on either."""
ELSEWHERE = (0.3, 1.0)
"""Where the fit starts again if the box does not move."""


def main() -> None:
    """Fits from every start and prints a table."""
    folder = Path(os.environ["TRUESIM_DATA"]) / "sysid_cases"
    model, log = load(folder / "boxpush.xml"), read_log(folder / "boxpush.csv")
    case = json.loads((folder / "boxpush.json").read_text())
    pushes = np.asarray(log.columns["ctrl/push"])[:, None]
    measured = np.stack([log.columns["sensor/px"], log.columns["sensor/vx"]], axis=1)
    contact = ContactComplementarity.of(model)

    def predicted(theta: Any) -> Any:
        friction = jnp.asarray(model.contacts.friction[0]).at[:2].set(theta[0])
        changed = paths.write(paths.write(model, "contacts/cp.friction", friction), "bodies/box.mass", theta[1])
        start = State.at_rest(model)
        _, (x, v) = rollout(
            Simulator.of(changed, contact=contact), start, pushes[:-1], keep=lambda s, _: (s.q[0], s.v[0])
        )
        return jnp.stack([jnp.append(0.0, x), jnp.append(0.0, v)], axis=1)

    kernel = native.compile(lambda t: (predicted(t), jax.jacfwd(predicted)(t)), np.ones(2))
    noise, bounds = np.array(case["noise_std"]), (case["lower"], case["upper"])

    def fit(start: tuple[float, float]) -> Any:
        residual = lambda t: ((kernel(t)[0] - measured) / noise).ravel()  # noqa: E731
        slope = lambda t: (kernel(t)[1] / noise[None, :, None]).reshape(-1, 2)  # noqa: E731
        return least_squares(residual, start, slope, bounds, x_scale=case["truth"], xtol=1e-12, ftol=1e-12)

    print(f"truth: friction {case['truth'][0]}, mass {case['truth'][1]} kg")
    print("Intervals follow from the misfit that is left: the log comes from soft contact, the fit is rigid.")
    print("| start | friction | mass [kg] | errors | 95 % intervals cover | misfit | note |")
    print("|---|---|---|---|---|---|---|")
    for start in STARTS:
        still = np.max(np.abs(kernel(np.array(start))[1])) < 1e-6
        found = fit(ELSEWHERE if still else start)
        misfit = 2 * found.cost / (measured.size - 2)
        spread = 1.96 * np.sqrt(misfit * np.diag(np.linalg.inv(found.jac.T @ found.jac)))
        error = found.x / case["truth"] - 1
        cover = np.abs(found.x - case["truth"]) <= spread
        note = f"the box does not move: started again at {ELSEWHERE}" if still else f"{found.nfev} evaluations"
        print(
            f"| {start} | {found.x[0]:.5f} +- {spread[0]:.5f} | {found.x[1]:.4f} +- {spread[1]:.4f} "
            f"| {100 * error[0]:.3f} %, {100 * error[1]:.3f} % | {cover[0]}, {cover[1]} "
            f"| {misfit:.1f} | {note} |"
        )


if __name__ == "__main__":
    with jax.enable_x64(True):
        main()
