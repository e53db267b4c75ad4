"""Swing-ups by crocoddyl's BoxFDDP or FDDP: `python crocoddyl_swing_up.py PROBLEM.json`, in a Python that has it.

The problem holds the URDF file, target, weights, bounds, driven joint, number of steps, time step and guesses. Prints
JSON: for every guess the cost and the number of iterations, and for the first one the time to within 1e-4 of its cost.
"""

import json
import sys
import time

import crocoddyl
import numpy as np
import pinocchio
from crocoddyl.utils.pendulum import ActuationModelDoublePendulum

MOST_ITERATIONS = 500
REPEATS = 3


def solver_of(problem: dict) -> tuple:
    """Solver, and the initial state."""
    model = pinocchio.buildModelFromUrdf(problem["urdf"])
    state = crocoddyl.StateMultibody(model)
    actuation = ActuationModelDoublePendulum(state, problem["driven"] + 1)  # the class of crocoddyl's own example
    target, w = np.concatenate([problem["target"], np.zeros(model.nv)]), problem["weights"]

    def action(final: bool) -> crocoddyl.DifferentialActionModelFreeFwdDynamics:
        costs = crocoddyl.CostModelSum(state, 1)
        names = ("end", "rest") if final else ("posture", "velocity")
        weights = np.repeat([w[name] for name in names], model.nv)
        residual = crocoddyl.ResidualModelState(state, target, 1)
        activation = crocoddyl.ActivationModelWeightedQuad(weights)
        costs.addCost("state", crocoddyl.CostModelResidual(state, activation, residual), 1.0)
        if not final:
            effort = crocoddyl.CostModelResidual(state, crocoddyl.ResidualModelControl(state, 1))
            costs.addCost("effort", effort, w["effort"])
        return crocoddyl.DifferentialActionModelFreeFwdDynamics(state, actuation, costs)

    running = crocoddyl.IntegratedActionModelEuler(action(False), problem["timestep"])
    boxed = problem["bound"] is not None
    if boxed:
        running.u_lb, running.u_ub = np.array([-problem["bound"]]), np.array([problem["bound"]])
    x0 = np.zeros(2 * model.nv)
    last = crocoddyl.IntegratedActionModelEuler(action(True), 0.0)
    shooting = crocoddyl.ShootingProblem(x0, [running] * problem["steps"], last)
    solver = (crocoddyl.SolverBoxFDDP if boxed else crocoddyl.SolverFDDP)(shooting)
    solver.th_stop = 1e-10
    return solver, x0


def main() -> None:
    """Solve from all guesses, then measure the first."""
    with open(sys.argv[1], encoding="utf-8") as file:
        problem = json.load(file)
    solver, x0 = solver_of(problem)
    xs, costs, iterations = [x0] * (problem["steps"] + 1), [], []
    guesses = [[np.array([u]) for u in guess] for guess in problem["guesses"]]
    for us in guesses:
        solver.solve(xs, us, MOST_ITERATIONS, False)
        costs.append(float(solver.cost))
        iterations.append(int(solver.iter))
    low, high = 1, max(iterations[0], 1)
    while low < high:  # fewest iterations to within 1e-4 of the first guess's cost
        middle = (low + high) // 2
        solver.solve(xs, guesses[0], middle, False)
        low, high = (low, middle) if solver.cost <= costs[0] * (1 + 1e-4) else (middle + 1, high)
    seconds = []
    for _ in range(REPEATS):
        begun = time.process_time()
        solver.solve(xs, guesses[0], low, False)
        seconds.append(time.process_time() - begun)
    print(json.dumps({"costs": costs, "iterations": low, "seconds": min(seconds)}))


if __name__ == "__main__":
    main()
