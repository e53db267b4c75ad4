"""Candidates of an arm's regression, compared joint by joint on the torque and motion of logs.

The textbook's regression is the measure: a candidate counts by what it gains in the mean over joints, and a joint that
loses counts more than one that gains.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from truesim.core.typing import Float
from truesim.files.logs import Log
from truesim.identification.diagnose.evaluation import Errors, Prediction, errors, predictions
from truesim.identification.diagnose.initial_states import InitialStates
from truesim.identification.problem.fitted import fitted_model
from truesim.identification.problem.problem import Problem
from truesim.identification.regression.arm import ArmEstimate
from truesim.identification.regression.equations import OFFSET_TERM
from truesim.identification.regression.errors import BAND, TorqueError, errors_of_samples, joint_names
from truesim.identification.regression.estimate import Terms
from truesim.identification.regression.signals import JointSamples, band_limited
from truesim.identification.regression.torques import inapplicable
from truesim.identification.torque_regression import (
    BASIC_FRICTION,
    CHOSEN_FRICTION,
    MIXED_FRICTION,
    ROBOT_FILE,
    TEXTBOOK,
    ArmRegression,
    coordinates,
)

KEPT_GAIN = 0.01
"""A candidate replaces a simpler one if its errors are smaller by this fraction. Larger prefers simpler ones."""
LOSS_FACTOR = 2.0
"""Weight of a joint's loss against the textbook's regression, relative to that of a gain. Larger keeps closer to it."""
MIXINGS = 3
"""Times that the terms of joints which lose are taken back."""
ERROR_RANGE = (1e-12, 1e12)
"""Smallest and largest error that counts; what is not finite counts as the largest."""


@dataclasses.dataclass(frozen=True)
class Scores:
    """Errors of one candidate by joint, as logarithms."""

    torque: Mapping[str, float]
    """Relative torque error of each joint that moves."""
    motion: Mapping[str, tuple[float, float]]
    """Open-loop error of each joint: over all samples, and the median over windows."""

    @classmethod
    def of(cls, torque: Mapping[str, TorqueError], motion: Mapping[str, Errors]) -> "Scores":
        """Scores of errors by joint and by row of the residual."""
        return cls(
            {joint: _log(e.relative) for joint, e in torque.items()},
            {row.removeprefix("qpos/"): (_log(e.rmse), _log(e.median)) for row, e in motion.items()},
        )

    @property
    def mean(self) -> float:
        """Mean over joints of torque and motion errors; smaller is better."""
        motion = [float(np.mean(pair)) for pair in self.motion.values()]
        parts = [[*self.torque.values()], motion]
        return float(np.mean([float(np.mean(part)) for part in parts if part]))

    def joint(self, joint: str) -> float:
        """Sum of the torque and motion error of a joint; smaller is better."""
        return self.torque.get(joint, 0.0) + float(np.mean(self.motion.get(joint, (0.0,))))

    def changes(self, joint: str, other: "Scores") -> Float[np.ndarray, "2"]:
        """Changes of a joint's torque and motion error against another candidate's; negative is better."""
        own, others = (
            np.array([s.torque.get(joint, 0.0), float(np.mean(s.motion.get(joint, (0.0,))))]) for s in (self, other)
        )
        return own - others

    def cost(self, other: "Scores") -> float:
        """Mean change against another candidate over joints, of torque and motion; losses count `LOSS_FACTOR` times."""
        change = np.array([self.changes(joint, other) for joint in self.motion])
        return float(np.mean(np.where(change > 0, LOSS_FACTOR * change, change)))


@dataclasses.dataclass(frozen=True)
class ArmCandidate:
    """An estimate of the parameters, with its errors."""

    name: str
    estimate: ArmEstimate | None
    """None for the robot file."""
    theta: Float[np.ndarray, " size"]
    """Coordinates in the problem."""
    simulated: Sequence[Prediction]
    scores: Scores

    @property
    def terms(self) -> Terms:
        """Terms of each joint; of a regression only."""
        assert self.estimate is not None, "a regression"
        return self.estimate.found.system.terms

    @property
    def weight(self) -> float:
        """Weight of the prior; of a regression only."""
        assert self.estimate is not None, "a regression"
        return self.estimate.weight

    def has(self, terms: Terms, weight: float) -> bool:
        """True if these are its terms and its weight."""
        return self.weight == weight and np.array_equal(self.terms, terms)


class Candidates:
    """Candidates of a regression with their errors on some logs."""

    def __init__(self, regression: ArmRegression, problem: Problem, where: Problem, logs: Sequence[Log], window: float):
        """Simulate the candidates.

        Args:
            regression: The regression.
            problem: The problem whose free parameters are those of the regression.
            where: The same problem with the logs on which candidates are compared.
            logs: These logs, prepared.
            window: Length of the windows of open-loop errors [s].
        """
        self.regression, self.problem, self.where, self.window = regression, problem, where, window
        self._states: dict[int, InitialStates] = {}
        self._joints = joint_names(regression.model)
        self._samples: JointSamples | None = None
        if inapplicable(regression.model, logs) is None:
            self._samples = band_limited(regression.model, logs, BAND)
        self.file = self._candidate(ROBOT_FILE, None)
        self.textbook = self._candidate(TEXTBOOK, regression.candidates[TEXTBOOK])
        self.regressions = [self.textbook, *self._weighted()]
        self.regressions += self._mixed()

    def best(self) -> ArmCandidate:
        """The simplest candidate that no richer one improves; the robot file if it predicts better than that."""
        winner = self.textbook
        for each in self.regressions[1:]:
            winner = each if self._cost(each) < self._cost(winner) + np.log1p(-KEPT_GAIN) else winner
        better = winner.scores.mean < self.file.scores.mean + np.log1p(-KEPT_GAIN)
        return winner if better else self.file

    def _weighted(self) -> list[ArmCandidate]:
        """Candidates with basic and with chosen friction, also with offsets at all joints, for two prior weights."""
        found, weights = self.regression.candidates, self.regression.chosen.weights
        same = [self.textbook] if self.regression.chosen.samples.band == BAND else []
        out = [self._candidate(name, found[name]) for name in (BASIC_FRICTION, CHOSEN_FRICTION) if name in found]
        for name in (BASIC_FRICTION, CHOSEN_FRICTION):
            own = found.get(name, found[CHOSEN_FRICTION]).found.system.terms
            every = own.copy()
            every[:, OFFSET_TERM] = True
            for weight in weights:
                for terms in (own, every):
                    known = any(each.has(terms, weight) for each in [*same, *out])
                    out += [] if known else [self._with_terms(name, terms, weight)]
        return out

    def _mixed(self) -> list[ArmCandidate]:
        """Candidates with the terms, joint by joint, with which the joint was predicted best.

        Where a joint loses against the textbook's regression, its terms are taken back.
        """
        best = min(self.regressions, key=self._cost)
        weight = best.weight
        rows = [min(self.regressions, key=lambda each: each.scores.joint(joint)) for joint in self._joints]
        terms = np.stack([each.terms[j] for j, each in enumerate(rows)])
        out: list[ArmCandidate] = []
        for _ in range(MIXINGS):
            if any(each.has(terms, weight) for each in [*self.regressions[1:], *out]):
                break
            out.append(self._with_terms(MIXED_FRICTION, terms, weight))
            scores, other = out[-1].scores, self.textbook.scores
            losing = [j for j, joint in enumerate(self._joints) if scores.changes(joint, other).max() > 0]
            terms = terms.copy()
            terms[losing] = self.textbook.terms[losing]
        return out

    def _cost(self, candidate: ArmCandidate) -> float:
        return candidate.scores.cost(self.textbook.scores)

    def _with_terms(self, name: str, terms: Terms, weight: float) -> ArmCandidate:
        chosen, model = self.regression.chosen, self.regression.model
        found = chosen.with_terms(model, terms, weight)
        return self._candidate(name, ArmEstimate(model, found, chosen.samples, weight))

    def _candidate(self, name: str, estimate: ArmEstimate | None) -> ArmCandidate:
        theta = self.problem.parameters.start if estimate is None else coordinates(self.problem, estimate)
        simulated = list(predictions(self.where, theta, self.window, states=self._states))
        model = fitted_model(self.where, theta)
        torque = {} if self._samples is None else errors_of_samples(model, self._samples)
        return ArmCandidate(name, estimate, theta, simulated, Scores.of(torque, errors(self.where, simulated)))


def _log(error: float) -> float:
    low, high = ERROR_RANGE
    return float(np.log(np.clip(error, low, high) if np.isfinite(error) else high))
