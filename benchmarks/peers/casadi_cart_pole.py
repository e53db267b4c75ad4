"""Cart-pole swing-up by CasADi with IPOPT: `python casadi_cart_pole.py PROBLEM.json`, in a Python that has casadi.

Direct multiple shooting with the same semi-implicit Euler steps, costs and bounds, from the same guess. Prints JSON:
the cost, the number of iterations and the CPU time of a solve, the least of several.
"""

import json
import sys
import time

import casadi as ca
import numpy as np

REPEATS = 3


def solver_of(problem: dict) -> tuple[ca.Function, int]:
    """IPOPT's solver, and the number of unknowns."""
    T, dt = problem["steps"], problem["timestep"]
    cart, pole, length, gravity = problem["cart"], problem["pole"], problem["length"], problem["gravity"]
    x, u = ca.SX.sym("x", 4), ca.SX.sym("u")
    s, c = ca.sin(x[1]), ca.cos(x[1])
    # point mass at distance `length` below the pivot; positive angles move it against the cart's axis
    inertia = problem["inertia"] + pole * length**2
    M = ca.vertcat(ca.horzcat(cart + pole, -pole * length * c), ca.horzcat(-pole * length * c, inertia))
    force = ca.vertcat(u - pole * length * s * x[3] ** 2, -pole * gravity * length * s)
    v = x[2:] + dt * ca.solve(M, force)
    step = ca.Function("step", [x, u], [ca.vertcat(x[:2] + dt * v, v)])
    X, U = ca.SX.sym("X", 4, T + 1), ca.SX.sym("U", T)
    w, up = problem["weights"], ca.DM([0, np.pi])
    cost, gaps = 0, [X[:, 0]]
    for k in range(T):
        cost += 0.5 * dt * (w["effort"] * U[k] ** 2 + w["posture"] * ca.sumsqr(X[:2, k] - up))
        gaps.append(X[:, k + 1] - step(X[:, k], U[k]))
    cost += 0.5 * (w["end"] * ca.sumsqr(X[:2, T] - up) + w["rest"] * ca.sumsqr(X[2:, T]))
    unknowns = ca.vertcat(ca.vec(X), U)
    program = {"x": unknowns, "f": cost, "g": ca.vertcat(*gaps)}
    options = {"print_time": False, "ipopt": {"print_level": 0, "sb": "yes", "max_iter": 500}}
    return ca.nlpsol("solver", "ipopt", program, options), 4 * (T + 1)


def main() -> None:
    """Solve several times."""
    with open(sys.argv[1], encoding="utf-8") as file:
        problem = json.load(file)
    solver, states = solver_of(problem)
    T, bound = problem["steps"], problem["bound"]
    low, high = np.full(states + T, -np.inf), np.full(states + T, np.inf)
    low[states:], high[states:] = -bound, bound
    seconds = []
    for _ in range(REPEATS):
        begun = time.process_time()
        found = solver(x0=np.zeros(states + T), lbx=low, ubx=high, lbg=0, ubg=0)
        seconds.append(time.process_time() - begun)
    stats = solver.stats()
    print(json.dumps({"cost": float(found["f"]), "iterations": stats["iter_count"], "seconds": min(seconds)}))


if __name__ == "__main__":
    main()
