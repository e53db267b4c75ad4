"""Panda reach by crocoddyl's BoxFDDP: `python crocoddyl_reach.py PROBLEM.json`, in a Python that has crocoddyl.

The problem holds the URDF file, initial configuration, target, bounds, weights, number of steps and time step. Prints
JSON: the cost after each number of iterations, and the time to a cost within 1e-4 of the best.
"""

import json
import sys
import time

import crocoddyl
import numpy as np
import pinocchio

MOST_ITERATIONS = 100
REPEATS = 5


def action(problem: dict, model: pinocchio.Model, state: crocoddyl.StateMultibody, final: bool) -> object:
    """Differential action of a running knot or of the last one."""
    actuation = crocoddyl.ActuationModelFull(state)
    costs = crocoddyl.CostModelSum(state, actuation.nu)
    nv, q0 = model.nv, np.array(problem["start"])
    rest = np.concatenate([q0, np.zeros(nv)])
    if final:
        frame = model.getFrameId(problem["frame"])
        reach = crocoddyl.ResidualModelFrameTranslation(state, frame, np.array(problem["target"]), actuation.nu)
        costs.addCost("reach", crocoddyl.CostModelResidual(state, reach), problem["weights"]["reach"])
        weights = np.concatenate([np.zeros(nv), np.full(nv, problem["weights"]["stop"])])
    else:
        effort = crocoddyl.ResidualModelControl(state, actuation.nu)
        costs.addCost("effort", crocoddyl.CostModelResidual(state, effort), problem["weights"]["effort"])
        weights = np.repeat([problem["weights"]["posture"], problem["weights"]["velocity"]], nv)
    activation = crocoddyl.ActivationModelWeightedQuad(weights)
    residual = crocoddyl.ResidualModelState(state, rest, actuation.nu)
    costs.addCost("state", crocoddyl.CostModelResidual(state, activation, residual), 1.0)
    return crocoddyl.DifferentialActionModelFreeFwdDynamics(state, actuation, costs)


def solver_of(problem: dict) -> tuple:
    """Solver and initial guess: the initial state and zero commands at all knots."""
    model = pinocchio.buildModelFromUrdf(problem["urdf"])
    state = crocoddyl.StateMultibody(model)
    running = crocoddyl.IntegratedActionModelEuler(action(problem, model, state, False), problem["timestep"])
    running.u_lb, running.u_ub = -np.array(problem["bounds"]), np.array(problem["bounds"])
    final = crocoddyl.IntegratedActionModelEuler(action(problem, model, state, True), 0.0)
    x0 = np.concatenate([problem["start"], np.zeros(model.nv)])
    shooting = crocoddyl.ShootingProblem(x0, [running] * problem["steps"], final)
    return crocoddyl.SolverBoxFDDP(shooting), [x0] * (problem["steps"] + 1), [np.zeros(model.nv)] * problem["steps"]


def main() -> None:
    """Solve with more and more iterations, then measure."""
    with open(sys.argv[1], encoding="utf-8") as file:
        problem = json.load(file)
    solver, xs, us = solver_of(problem)
    solver.th_stop = 1e-12
    costs = []
    for iterations in range(1, MOST_ITERATIONS):
        solver.solve(xs, us, iterations, False)
        costs.append(solver.cost)
        if len(costs) > 10 and costs[-10] - costs[-1] < 1e-10:
            break
    best = min(costs)
    needed = next(k + 1 for k, cost in enumerate(costs) if cost <= best * (1 + 1e-4))
    seconds = []
    for _ in range(REPEATS):
        begun = time.process_time()
        solver.solve(xs, us, needed, False)
        seconds.append(time.process_time() - begun)
    print(json.dumps({"cost": best, "iterations": needed, "seconds": min(seconds), "us": np.array(solver.us).tolist()}))


if __name__ == "__main__":
    main()
