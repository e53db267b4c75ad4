"""Profile cost of a problem: cost as a function of the parameters, minimized over initial states, for a batch.

Initial states follow the parameters linearly and then take one Gauss-Newton step, so that each candidate needs one
simulation. Residuals of a real robot are correlated in time, which makes the plain cost too steep. As in the covariance
of the fit, a sandwich correction rescales coordinates around the best fit such that the Hessian of the cost is the
inverse of the covariance V (Ribatet, Cooley and Davison 2012). With white residuals nothing is rescaled.

Nothing is simulated beyond a bound: there the cost continues as the parabola that it has at the bound, so that it is
defined for mixtures, which ignore bounds. Posteriors are cut off at the bounds afterwards.
"""

import numpy as np

from truesim.core.typing import Float
from truesim.identification.problem.segments import Nodes
from truesim.identification.solve.levenberg_marquardt import eliminate_states
from truesim.identification.solve.normal_equations import NormalEquations, normal_equations, point
from truesim.identification.solve.solution import Solution
from truesim.optimize.bordered import Chains, eliminate


class ProfileCost:
    """Profile cost of a solved problem."""

    def __init__(self, solution: Solution, covariance: Float[np.ndarray, "size size"]):
        """Linearize the initial states around a solution.

        Args:
            solution: The solved problem.
            covariance: Covariance of its coordinates; its inverse becomes the Hessian of the cost.
        """
        self.solution = solution
        system = eliminate_states(normal_equations(solution.problem, solution.at, solution.weights, solution.windows))
        windows = solution.windows
        self._moves = system.sensitivity()[windows.window, windows.place]
        self._curvature = system.corner
        self._scaling = _rescale(system.corner, covariance)

    def __call__(self, theta: Float[np.ndarray, "batch size"]) -> tuple[np.ndarray, np.ndarray]:
        """Cost, half a chi-square, and its gradient."""
        best = self.solution.theta
        scaled = best + (theta - best) @ self._scaling.T
        inside = np.clip(scaled, *self.solution.problem.parameters.bounds)
        beyond = scaled - inside
        cost, gradient = self._minimize_states(inside)
        pull = beyond @ self._curvature
        return cost + np.sum((gradient + pull / 2) * beyond, axis=1), (gradient + pull) @ self._scaling

    def _minimize_states(self, theta: Float[np.ndarray, "batch size"]) -> tuple[np.ndarray, np.ndarray]:
        """Cost and gradient at the best initial states."""
        solution = self.solution
        problem = solution.problem.optimized
        equations = [
            normal_equations(problem, point(problem, one, self._nodes(one)), solution.weights, solution.windows)
            for one in theta
        ]
        moves = _state_steps(equations)
        cost = [e.cost + np.sum(e.chains.gradient * x) / 2 for e, x in zip(equations, moves, strict=True)]
        gradient = [
            e.gradient + np.einsum("wmnp,wmn->p", e.chains.border, x) for e, x in zip(equations, moves, strict=True)
        ]
        return np.array(cost), np.array(gradient)

    def _nodes(self, theta: Float[np.ndarray, " size"]) -> Nodes:
        """Initial states that follow the parameters linearly."""
        problem, at = self.solution.problem, self.solution.at
        moves, nv = self._moves @ (theta - at.theta), at.nodes.v.shape[1]
        return Nodes(problem.tangent_space.integrate(at.nodes.q, moves[:, :nv]), at.nodes.v + moves[:, nv:])


def _state_steps(equations: list[NormalEquations]) -> list[np.ndarray]:
    """Gauss-Newton steps of the initial states with fixed parameters, for a batch of normal equations."""
    D, E, F, g = (np.concatenate(blocks) for blocks in zip(*(e.chains for e in equations), strict=True))
    k = np.arange(D.shape[-1])
    D[..., k, k] += 1e-12
    steps = eliminate(Chains(D, E, F[..., :0], g), np.zeros((0, 0)), np.zeros(0)).chains(np.zeros(0))
    return np.split(steps, len(equations))


def _rescale(H: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Matrix C nearest to the identity with `C^T H C = V^-1`."""
    root = _root(H)
    return np.linalg.solve(root, np.linalg.solve(_root(root @ V @ root), root))


def _root(A: np.ndarray) -> np.ndarray:
    """Symmetric square root of a positive definite matrix."""
    values, vectors = np.linalg.eigh((A + A.T) / 2)
    return vectors * np.sqrt(np.maximum(values, 1e-14 * values[-1])) @ vectors.T
