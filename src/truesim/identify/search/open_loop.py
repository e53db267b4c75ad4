"""The logs of a problem as an objective: windows simulated from measured first states, every candidate a lane.

The cost is half the sum of squares of the residuals in units of the sensors' own noise, plus that of the priors, as in
the sum of squared errors of classical identification. What a fit does beyond it (free first states, noise levels from
the residuals, outliers) comes after a search, which only has to find the right basin.
"""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from truesim import native
from truesim.core.errors import TruesimError
from truesim.core.typing import Array, Float, Int
from truesim.identify.beliefs import VAGUE
from truesim.identify.noise import first_noise
from truesim.identify.problem import Problem
from truesim.identify.recording import Recording
from truesim.identify.search.objective import AbstractLeastSquares, Box, Equations
from truesim.identify.shooting import Stretch
from truesim.identify.weights import network_coordinates
from truesim.model.kinds import HINGE, SLIDE
from truesim.model.model import Model

WINDOW = 0.5
"""Length of windows by default [s]."""
REACH = 4.0
"""How far from the robot's own values starts are drawn, in coordinates: a factor of 50, or four times the value."""
WEIGHTS = 1.0
"""The same of weights of networks, which are about as large when they begin."""


class Windows(NamedTuple):
    """Windows of one log, side by side."""

    log: int
    at: Int[np.ndarray, "windows intervals"]
    """The sample at which each interval begins."""
    factor: Float[np.ndarray, "windows intervals rows"]
    """One over the noise of each row; zero where nothing was measured."""


def windows_of(problem: Problem, seconds: float = WINDOW) -> list[Windows]:
    """All windows of a problem, of at most this length [s]."""
    noise = first_noise(problem)
    pieces = [_pieces(recording, seconds) for recording in problem.recordings]
    longest = max((end - begin for found in pieces for begin, end in found), default=0)
    if not longest:
        raise TruesimError(f"No window of {seconds:g} s has two samples; give a longer --window.")
    out = []
    for log, (recording, found) in enumerate(zip(problem.recordings, pieces, strict=True)):
        begins, ends = np.array(found, int).reshape(-1, 2).T
        at = begins[:, None] + np.arange(longest)
        inside = at < ends[:, None]
        at = np.minimum(at, ends[:, None] - 1)
        used = recording.valid[at] & inside[..., None]
        out.append(Windows(log, at, np.where(used, 1 / noise, 0.0)))
    return out


@dataclasses.dataclass
class OpenLoop(AbstractLeastSquares):
    """Open-loop errors of a problem's windows, on our own engine."""

    problem: Problem
    window: float = WINDOW
    """Length of windows [s]; a log that is shorter is one window."""
    threads: int = 1

    def __post_init__(self) -> None:
        self.box = box_of(self.problem)
        self.windows = windows_of(self.problem, self.window)
        self.steps = self.problem.substeps * sum(w.at.size for w in self.windows)
        self._kernels: dict[str, native.Kernel] = {}

    def costs(self, theta: Float[np.ndarray, "batch size"]) -> Float[np.ndarray, "batch"]:
        """Cost of every candidate."""
        total = prior(self.problem, theta).cost
        for own, rest in self._calls(theta):
            total = total + self._kernel("cost", self._cost)(own, *rest)
        return total

    def equations(self, theta: Float[np.ndarray, "batch size"]) -> Equations:
        """Cost and normal equations of every candidate."""
        cost, gradient, matrix = prior(self.problem, theta)
        for (own, rest), where in zip(self._calls(theta), self._columns(), strict=True):
            found = self._kernel("equations", self._equations)(own, *rest)
            cost = cost + found.cost
            gradient[:, where] += found.gradient
            matrix[:, where[:, None], where[None]] += found.matrix
        return Equations(cost, gradient, matrix)

    def __getstate__(self) -> dict:
        return {**vars(self), "_kernels": {}}

    def _calls(self, theta: np.ndarray) -> list[tuple[np.ndarray, tuple]]:
        """What the kernel takes for every window: all candidates' parameters of its log, and the window's own part."""
        problem = self.problem
        calls = []
        for windows in self.windows:
            recording, known = problem.recordings[windows.log], np.zeros(0)
            if problem.known_values is not None:
                known = problem.known_values[windows.log]
            own = np.ascontiguousarray(theta[:, problem.columns[windows.log]])
            firsts = windows.at[:, 0]
            stretches = problem.stretches(windows.log, windows.at, recording.q[firsts], recording.v[firsts])
            for k in range(len(firsts)):
                one = jax.tree.map(lambda x, k=k: x[k], stretches)
                calls.append((own, (known, one, windows.factor[k])))
        return calls

    def _columns(self) -> list[np.ndarray]:
        return [self.problem.columns[w.log] for w in self.windows for _ in range(len(w.at))]

    def _stretch(self, theta: Array, known: Array, stretch: Stretch) -> Stretch:
        """The stretch, from the state that the encoders of these parameters show."""
        q, v = true_state(self.problem.shooting.simulator_of(theta, known).model, stretch.q, stretch.v)
        return stretch._replace(q=q, v=v)

    def _cost(self, theta: Array, known: Array, stretch: Stretch, factor: Array) -> Array:
        r = self.problem.shooting.shoot(theta, known, self._stretch(theta, known, stretch)).residual * factor
        return jnp.sum(r * r) / 2

    def _equations(self, theta: Array, known: Array, stretch: Stretch, factor: Array) -> Equations:
        def collect(total: Equations, k: Array, r: Array, J: Array) -> Equations:
            r, J = r * factor[k], J * factor[k][:, None]
            return Equations(total.cost + r @ r / 2, total.gradient + J.T @ r, total.matrix + J.T @ J)

        size = theta.size
        nothing = Equations(jnp.zeros(()), jnp.zeros(size), jnp.zeros((size, size)))
        return self.problem.shooting.fold(
            theta, known, lambda theta: self._stretch(theta, known, stretch), collect, nothing
        )

    def _kernel(self, name: str, f: Any) -> native.Kernel:
        if name not in self._kernels:
            own, rest = self._calls(self.box.start[None])[0]
            with jax.enable_x64(True):
                self._kernels[name] = native.compile(f, own[0], *rest, threads=self.threads)
        return self._kernels[name]


def box_of(problem: Problem) -> Box:
    """Bounds and start of a problem's coordinates."""
    low, high = problem.parameters.bounds
    reach = np.where(network_coordinates(problem.parameters), WEIGHTS, REACH)
    return Box(low, high, problem.parameters.start, reach)


def true_state(
    model: Model, q: Float[Array, "nq"], v: Float[Array, "nv"]
) -> tuple[Float[Array, "nq"], Float[Array, "nv"]]:
    """The state that encoders with this bias and scale show as `q`, and whose velocity is the slope of that."""
    links = [link for link in model.topology.links if link.joint >= 0 and link.kind in (HINGE, SLIDE)]
    straight, joint = np.zeros(model.nq), np.zeros((model.nv, model.nq))
    for link in links:
        straight[link.q_start] = joint[link.v_start, link.q_start] = 1.0
    bias = model.sensors.bias[model.sensors.positions] * straight
    scale = (model.sensors.scale[model.sensors.positions] - 1.0) * straight + 1.0
    return (q - bias) / scale, v / (joint @ (scale - 1.0) + 1.0)


def prior(problem: Problem, theta: Float[np.ndarray, "batch size"]) -> Equations:
    """What departures from priors cost; the vague prior of all coordinates included."""
    batch, size = theta.shape
    away = (theta - problem.parameters.start) / VAGUE
    cost, gradient = (away**2).sum(axis=1) / 2, away / VAGUE
    matrix = np.tile(np.eye(size) / VAGUE**2, (batch, 1, 1))
    if any(p.prior for p in problem.parameters):
        values, jacobian = problem.values(theta)
        for parameter, at in zip(problem.parameters, problem.parameters.number_slices(), strict=True):
            if parameter.prior:
                std = np.ravel(parameter.prior.std)
                r, J = (values[:, at] - np.ravel(parameter.prior.mean)) / std, jacobian[:, at] / std[:, None]
                cost, gradient = cost + (r**2).sum(axis=1) / 2, gradient + (J.transpose(0, 2, 1) @ r[..., None])[..., 0]
                matrix = matrix + J.transpose(0, 2, 1) @ J
    return Equations(cost, gradient, matrix)


def _pieces(recording: Recording, seconds: float) -> Sequence[tuple[int, int]]:
    """First and last sample of each window; what is left over at a segment's end joins its last window if short."""
    found = []
    for begin, end in recording.segments:
        time = recording.time
        count = max(1, round(float(time[end] - time[begin]) / seconds))
        edges = np.searchsorted(time, np.linspace(time[begin], time[end], count + 1) - 1e-9)
        edges[-1] = end
        found += [(int(a), int(b)) for a, b in itertools.pairwise(edges) if b > a]
    return found
