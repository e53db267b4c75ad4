"""The cost of a problem's parameters alone, first states following, for many choices of the parameters at once.

First states follow the parameters along their derivative and then take one Gauss-Newton step, so that one simulation
suffices for each choice. Residuals of a real robot are correlated in time, and their squares count too much. As in
`uncertainty`, the sandwich puts it right: around the best fit, coordinates are stretched such that the curvature of the
cost is the inverse of the covariance V (Ribatet, Cooley and Davison 2012). With white residuals nothing is stretched.

Nothing is simulated beyond a bound: there the cost goes on as the parabola that it is on the bound, so that mixtures,
which know of no bounds, have something to rest on. Posteriors are cut off at the bounds afterwards.
"""

import numpy as np

from truesim.core.typing import Float
from truesim.identify.fit import Solution
from truesim.identify.layout import Nodes
from truesim.identify.levenberg_marquardt import reduced
from truesim.identify.normal import Normal, Point, normal
from truesim.numerics.bordered import Chains, eliminate


class Profile:
    """A solved problem's cost as a function of its parameters alone."""

    def __init__(self, solution: Solution, covariance: Float[np.ndarray, "size size"]):
        """The cost around a solution.

        Args:
            solution: The solved problem.
            covariance: Of its coordinates, which the curvature of the cost is stretched to.
        """
        self.solution = solution
        system = reduced(normal(solution.problem, solution.at, solution.weights, solution.windows))
        windows = solution.windows
        self._moves = system.sensitivity()[windows.window, windows.place]
        self._curvature = system.corner
        self._stretch = _stretch(system.corner, covariance)

    def __call__(self, theta: Float[np.ndarray, "lanes size"]) -> tuple[np.ndarray, np.ndarray]:
        """Cost, half a chi-square, and its gradient."""
        best = self.solution.theta
        stretched = best + (theta - best) @ self._stretch.T
        inside = np.clip(stretched, *self.solution.problem.parameters.bounds)
        beyond = stretched - inside
        cost, slope = self._best(inside)
        pull = beyond @ self._curvature
        return cost + np.sum((slope + pull / 2) * beyond, axis=1), (slope + pull) @ self._stretch

    def _best(self, theta: Float[np.ndarray, "lanes size"]) -> tuple[np.ndarray, np.ndarray]:
        """Cost and gradient at the best first states."""
        solution = self.solution
        equations = [normal(solution.problem, at, solution.weights, solution.windows) for at in self._points(theta)]
        moves = _state_steps(equations)
        cost = [e.cost + np.sum(e.chains.gradient * x) / 2 for e, x in zip(equations, moves, strict=True)]
        slope = [
            e.gradient + np.einsum("wmnp,wmn->p", e.chains.border, x) for e, x in zip(equations, moves, strict=True)
        ]
        return np.array(cost), np.array(slope)

    def _points(self, theta: Float[np.ndarray, "lanes size"]) -> list[Point]:
        """All stretches of all choices, simulated side by side."""
        choices = [(one, self._nodes(one)) for one in theta]
        done = self.solution.problem.differentiate_many(choices)
        return [Point(*choice, *simulated) for choice, simulated in zip(choices, done, strict=True)]

    def _nodes(self, theta: Float[np.ndarray, "size"]) -> Nodes:
        """First states that follow the parameters along their derivative."""
        problem, at = self.solution.problem, self.solution.at
        moves, nv = self._moves @ (theta - at.theta), at.nodes.v.shape[1]
        return Nodes(problem.moved(at.nodes.q, moves[:, :nv]), at.nodes.v + moves[:, nv:])


def _state_steps(equations: list[Normal]) -> list[np.ndarray]:
    """The Gauss-Newton step of the first states alone, of many problems whose chains are eliminated side by side."""
    D, E, F, g = (np.concatenate(blocks) for blocks in zip(*(e.chains for e in equations), strict=True))
    k = np.arange(D.shape[-1])
    D[..., k, k] += 1e-12
    steps = eliminate(Chains(D, E, F[..., :0], g), np.zeros((0, 0)), np.zeros(0)).chains(np.zeros(0))
    return np.split(steps, len(equations))


def _stretch(H: np.ndarray, V: np.ndarray) -> np.ndarray:
    """The matrix C nearest to one with `C^T H C = V^-1`."""
    root = _root(H)
    return np.linalg.solve(root, np.linalg.solve(_root(root @ V @ root), root))


def _root(A: np.ndarray) -> np.ndarray:
    """The symmetric square root of a positive definite matrix."""
    values, vectors = np.linalg.eigh((A + A.T) / 2)
    return vectors * np.sqrt(np.maximum(values, 1e-14 * values[-1])) @ vectors.T
