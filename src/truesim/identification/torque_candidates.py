"""Candidates of an arm's regression, compared joint by joint on the torque and motion of logs."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from truesim.core.typing import Float
from truesim.files.logs import Log
from truesim.identification.diagnose.evaluation import Prediction, errors, predictions
from truesim.identification.problem.fitted import fitted_model
from truesim.identification.problem.problem import Problem
from truesim.identification.regression.arm import estimate_of
from truesim.identification.regression.errors import joint_names, torque_errors
from truesim.identification.torque_regression import (
    BASIC_FRICTION,
    CHOSEN_FRICTION,
    ROBOT_FILE,
    SOME_FRICTION,
    ArmRegression,
    without_speeds,
)

KEPT_GAIN = 0.01
"""A candidate replaces a simpler one if its torque and motion errors, as a geometric mean, are smaller by this
fraction. Larger prefers simpler ones."""
JOINT_LOSS = 0.02
"""Loss of a joint's torque or motion error, as a fraction, that a richer candidate may always have. Larger keeps more
terms."""
LOSS_SHARE = 0.5
"""The same relative to the gain in the mean over joints. Larger keeps more terms."""
CLEAR_LOSS = 0.1
"""Loss of a joint's motion error that counts however much its windows scatter. Larger tolerates more outliers."""
LOSS_SCORE = 2.0
"""Standard errors, over windows, from which a smaller loss of motion counts. Larger keeps more terms."""
TAKEN_OUT = 3
"""Times that the terms of joints which got worse are taken out."""
LEAST_ERROR = 1e-12


@dataclasses.dataclass(frozen=True)
class Scores:
    """Errors of one candidate: logarithms, by joint and by row of the residual."""

    torque: dict[str, float]
    """Relative torque error of each joint that moves."""
    motion: dict[str, float]
    """Root-mean-square open-loop error of each row."""
    windows: dict[str, Float[np.ndarray, " windows"]]
    """The same for each window."""

    @property
    def mean(self) -> float:
        """Mean over joints of torque and motion errors; smaller is better."""
        score = (float(np.mean([*self.torque.values()])) + float(np.mean([*self.motion.values()]))) / 2
        return score if np.isfinite(score) else np.inf

    def loses_at(self, joint: str, other: "Scores") -> bool:
        """True if the torque or motion of a joint is predicted worse than by another candidate.

        A joint may lose half of what all joints gain in the mean. Motion gets worse if it does in most windows, or if a
        few get much worse.
        """
        allowed = max(float(np.log1p(JOINT_LOSS)), LOSS_SHARE * (other.mean - self.mean))
        row, lost = f"qpos/{joint}", [False]
        if joint in self.torque:
            lost.append(not self.torque[joint] - other.torque[joint] < allowed)
        if row in self.motion:
            change = self.windows[row] - other.windows[row]
            error = LOSS_SCORE * float(np.std(change)) / np.sqrt(len(change))
            lost.append(not float(np.mean(change)) < max(allowed, error))
            lost.append(not self.motion[row] - other.motion[row] < max(allowed, float(np.log1p(CLEAR_LOSS))))
        return any(lost)


class Candidates:
    """Candidates of a regression with their errors on some logs."""

    def __init__(self, regression: ArmRegression, problem: Problem, where: Problem, logs: Sequence[Log], window: float):
        self.regression, self.problem, self.where, self.logs, self.window = regression, problem, where, logs, window
        self.thetas: dict[str, np.ndarray] = {}
        self.simulated: dict[str, list[Prediction]] = {}
        self.scores: dict[str, Scores] = {}
        for name in (ROBOT_FILE, *reversed([*regression.candidates])):
            self._add(name)

    def best(self) -> str:
        """The simplest candidate that no richer one improves; a richer one may not lose at any joint."""
        winner = ROBOT_FILE
        for name in [*self.thetas][1:]:
            winner = name if self._is_better(name, winner) else winner
        if winner == BASIC_FRICTION:
            self._take_out_terms()
            if SOME_FRICTION in self.scores and self._is_better(SOME_FRICTION, winner):
                winner = SOME_FRICTION
        return winner

    def _take_out_terms(self) -> None:
        """Add a candidate with friction terms at those joints only which they do not make worse."""
        chosen, model, out, latest = self.regression.chosen, self.regression.model, set[int](), CHOSEN_FRICTION
        terms = chosen.best.system.terms != chosen.basic.system.terms
        for _ in range(TAKEN_OUT):
            worse = set(self._worse_joints(latest, BASIC_FRICTION)) - out
            out |= worse
            if not worse or not np.delete(terms, sorted(out), axis=0).any():
                return
            estimate = estimate_of(model, chosen, chosen.without_terms(model, sorted(out)))
            candidates = {**self.regression.candidates, SOME_FRICTION: without_speeds(estimate)}
            self.regression = dataclasses.replace(self.regression, candidates=candidates)
            self._add(SOME_FRICTION)
            latest = SOME_FRICTION

    def _add(self, name: str) -> None:
        theta = self.regression.coordinates(self.problem, name)
        self.thetas[name], self.simulated[name] = theta, list(predictions(self.where, theta, self.window))
        torque = torque_errors(fitted_model(self.where, theta), self.logs)
        motion = errors(self.where, self.simulated[name])
        self.scores[name] = Scores(
            {joint: float(np.log(max(e.relative, LEAST_ERROR))) for joint, e in torque.items()},
            {row: float(np.log(max(e.rmse, LEAST_ERROR))) for row, e in motion.items()},
            dict(zip(motion, window_errors(self.where, self.simulated[name], [*motion]), strict=True)),
        )

    def _is_better(self, name: str, other: str) -> bool:
        """True if the errors are smaller in the mean, and, beside another regression, not larger at any joint."""
        if other != ROBOT_FILE and self._worse_joints(name, other):
            return False
        return bool(self.scores[name].mean < self.scores[other].mean + np.log1p(-KEPT_GAIN))

    def _worse_joints(self, name: str, other: str) -> list[int]:
        """Joints whose torque or motion is predicted worse than by another candidate."""
        joints = joint_names(self.regression.model)
        return [j for j, joint in enumerate(joints) if self.scores[name].loses_at(joint, self.scores[other])]


def window_errors(
    problem: Problem, predicted: Sequence[Prediction], rows: Sequence[str]
) -> list[Float[np.ndarray, " windows"]]:
    """Logarithm of the root-mean-square error of some rows in every window where they are measured."""
    out = []
    for k in map(problem.rows.index, rows):
        squares = [(np.where(p.valid[..., k], p.residual[..., k], 0.0) ** 2).sum(axis=1) for p in predicted]
        total, counts = np.concatenate(squares), np.concatenate([p.valid[..., k].sum(axis=1) for p in predicted])
        each = total[counts > 0] / counts[counts > 0]
        out.append(np.log(np.clip(each, LEAST_ERROR**2, 1e300)) / 2)
    return out
