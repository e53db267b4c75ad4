"""Open-loop errors of a problem's logs: windows simulated from measured initial states, for a batch of candidates.

The cost is half the sum of squares of the residuals in units of the sensor noise, plus the prior terms. A search only
has to find the right basin; free initial states, estimated noise levels and outliers are left to the fit that follows.
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
from truesim.identification.problem.network_weights import network_coordinates
from truesim.identification.problem.problem import Problem
from truesim.identification.problem.recording import Recording
from truesim.identification.problem.shooting import Segment
from truesim.identification.solve.noise import initial_noise
from truesim.identification.solve.prior import prior_residuals
from truesim.optimize.objective import AbstractLeastSquares, Equations, SearchSpace
from truesim.physics.model.kinds import HINGE, SLIDE
from truesim.physics.model.model import Model

SEARCH_WINDOW = 0.5
"""Default length of windows [s]."""
PARAMETER_REACH = 4.0
"""Largest distance of drawn starts from the model's values, in coordinates: a factor of 50, or four times the value."""
WEIGHT_REACH = 1.0
"""Largest distance of drawn network weights from their initial values."""


class LogWindows(NamedTuple):
    """Windows of one log."""

    log: int
    at: Int[np.ndarray, "windows intervals"]
    """Sample at which each interval begins."""
    factor: Float[np.ndarray, "windows intervals rows"]
    """One over the noise of each row; zero where nothing was measured."""


def cut_windows(problem: Problem, seconds: float = SEARCH_WINDOW) -> list[LogWindows]:
    """Cut all logs of a problem into windows of at most this length [s]."""
    noise = initial_noise(problem)
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
        out.append(LogWindows(log, at, np.where(used, 1 / noise, 0.0)))
    return out


@dataclasses.dataclass
class OpenLoop(AbstractLeastSquares):
    """Open-loop errors of a problem's windows, simulated by truesim."""

    problem: Problem
    window: float = SEARCH_WINDOW
    """Length of windows [s]; a shorter log is one window."""
    threads: int = 1

    def __post_init__(self) -> None:
        self.space = search_space(self.problem)
        self.windows = cut_windows(self.problem, self.window)
        self.steps = self.problem.substeps * sum(w.at.size for w in self.windows)
        self._kernels: dict[str, native.Kernel] = {}

    def costs(self, theta: Float[np.ndarray, "batch size"]) -> Float[np.ndarray, " batch"]:
        """Cost of every candidate."""
        total = prior_equations(self.problem, theta).cost
        for own, rest in self._calls(theta):
            total = total + self._kernel("cost", self._cost)(own, *rest)
        return np.asarray(total)

    def equations(self, theta: Float[np.ndarray, "batch size"]) -> Equations:
        """Cost and normal equations of every candidate."""
        cost, gradient, matrix = prior_equations(self.problem, theta)
        for (own, rest), where in zip(self._calls(theta), self._columns(), strict=True):
            found = self._kernel("equations", self._equations)(own, *rest)
            cost = cost + found.cost
            gradient[:, where] += found.gradient
            matrix[:, where[:, None], where[None]] += found.matrix
        return Equations(cost, gradient, matrix)

    def __getstate__(self) -> dict:
        return {**vars(self), "_kernels": {}}

    def _calls(self, theta: np.ndarray) -> list[tuple[np.ndarray, tuple]]:
        """Arguments of the kernel for every window: candidates' parameters of its log, and the data of the window."""
        problem = self.problem
        calls = []
        for windows in self.windows:
            recording, known = problem.recordings[windows.log], np.zeros(0)
            if problem.known_values is not None:
                known = problem.known_values[windows.log]
            own = np.ascontiguousarray(theta[:, problem.columns[windows.log]])
            firsts = windows.at[:, 0]
            segments = problem.segments(windows.log, windows.at, recording.q[firsts], recording.v[firsts])
            for k in range(len(firsts)):
                one = jax.tree.map(lambda x, k=k: x[k], segments)
                calls.append((own, (known, one, windows.factor[k])))
        return calls

    def _columns(self) -> list[np.ndarray]:
        return [self.problem.columns[w.log] for w in self.windows for _ in range(len(w.at))]

    def _segment(self, theta: Array, known: Array, segment: Segment) -> Segment:
        """Segment with the initial state corrected for the encoder bias and scale of these parameters."""
        q, v = true_state(self.problem.shooting.simulator_of(theta, known).model, segment.q, segment.v)
        return segment._replace(q=q, v=v)

    def _cost(self, theta: Array, known: Array, segment: Segment, factor: Array) -> Array:
        r = self.problem.shooting.shoot(theta, known, self._segment(theta, known, segment)).residual * factor
        return jnp.sum(r * r) / 2

    def _equations(self, theta: Array, known: Array, segment: Segment, factor: Array) -> Equations:
        def collect(total: Equations, k: Array, r: Array, J: Array) -> Equations:
            r, J = r * factor[k], J * factor[k][:, None]
            return Equations(total.cost + r @ r / 2, total.gradient + J.T @ r, total.matrix + J.T @ J)

        size = theta.size
        nothing = Equations(jnp.zeros(()), jnp.zeros(size), jnp.zeros((size, size)))
        return self.problem.shooting.fold(
            theta, known, lambda theta: self._segment(theta, known, segment), collect, nothing
        )

    def _kernel(self, name: str, f: Any) -> native.Kernel:
        if name not in self._kernels:
            own, rest = self._calls(self.space.start[None])[0]
            with jax.enable_x64(True):
                self._kernels[name] = native.compile(f, own[0], *rest, threads=self.threads)
        return self._kernels[name]


def search_space(problem: Problem) -> SearchSpace:
    """Bounds, start and region of a problem's coordinates."""
    low, high = problem.parameters.bounds
    reach = np.where(network_coordinates(problem.parameters), WEIGHT_REACH, PARAMETER_REACH)
    return SearchSpace(low, high, problem.parameters.start, reach)


def true_state(
    model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    """State that encoders with the bias and scale of the model measure as `q` and `v`."""
    links = [link for link in model.topology.links if link.joint >= 0 and link.kind in (HINGE, SLIDE)]
    straight, joint = np.zeros(model.nq), np.zeros((model.nv, model.nq))
    for link in links:
        straight[link.q_start] = joint[link.v_start, link.q_start] = 1.0
    bias = model.sensors.bias[model.sensors.positions] * straight
    scale = (model.sensors.scale[model.sensors.positions] - 1.0) * straight + 1.0
    return (q - bias) / scale, v / (joint @ (scale - 1.0) + 1.0)


def prior_equations(problem: Problem, theta: Float[np.ndarray, "batch size"]) -> Equations:
    """Prior terms of every candidate, including the weak prior on all coordinates."""
    terms = [prior_residuals(problem, one) for one in theta]
    r, J = np.stack([r for r, _ in terms]), np.stack([J for _, J in terms])
    along = J.transpose(0, 2, 1)
    return Equations((r**2).sum(axis=1) / 2, (along @ r[..., None])[..., 0], along @ J)


def _pieces(recording: Recording, seconds: float) -> Sequence[tuple[int, int]]:
    """First and last sample of each window; pieces of a log are divided into windows of equal length."""
    found = []
    for begin, end in recording.pieces:
        time = recording.time
        count = max(1, round(float(time[end] - time[begin]) / seconds))
        edges = np.searchsorted(time, np.linspace(time[begin], time[end], count + 1) - 1e-9)
        edges[-1] = end
        found += [(int(a), int(b)) for a, b in itertools.pairwise(edges) if b > a]
    return found
