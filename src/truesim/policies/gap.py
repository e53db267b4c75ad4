"""The gap between simulation and robot, as numbers: returns of policies by role, and how much of the gap is closed.

    gap closed = (J - J_nominal) / (J_oracle - J_nominal)

J is the mean return on the robot of the policy, of one that was trained in the nominal simulator, and of an oracle that
was trained on the robot itself. A comparison is valid only if the oracle exceeds every reference by three standard
errors; otherwise there is no gap to close.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from truesim.core.errors import TruesimError, unknown_name
from truesim.core.typing import Float

ROLES = {
    "policy": "the policy",
    "nominal": "trained in the nominal simulator",
    "uniform": "trained with uniform randomization",
    "fixed": "best fixed controller",
    "oracle": "trained on the robot itself",
}
"""Roles of policies in a comparison, in words."""
RESAMPLINGS = 4000
"""Bootstrap samples of an interval; more make its ends less random."""
STANDARD_ERRORS = 3.0
"""Standard errors by which the oracle has to exceed the references."""


class MeanInterval(NamedTuple):
    """A number with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclasses.dataclass(frozen=True)
class RealReturns:
    """Returns on the robot by role: one array of episodes for each policy, which differ by the seed of training."""

    by_role: Mapping[str, Sequence[Float[np.ndarray, " episodes"]]]
    seed: int = 0
    """Of the bootstrap."""

    def __post_init__(self) -> None:
        for role, policies in self.by_role.items():
            if role not in ROLES:
                raise unknown_name("role of a policy", role, ROLES)
            for returns in policies:
                if not len(returns) or not np.all(np.isfinite(returns)):
                    raise TruesimError(f"Returns of {role} are {np.asarray(returns)}; all of them must be numbers.")
        if not self.by_role.get("policy"):
            raise TruesimError("A comparison needs at least one policy.")

    def mean(self, role: str) -> MeanInterval:
        """Mean return over policies and episodes."""
        return _estimate(self._draws(role), _mean(self.by_role[role]))

    def gap_closed(self, role: str = "policy") -> MeanInterval | None:
        """Part of the gap between nominal and oracle that a role closes; None without these two."""
        return self._relative(role, "nominal", "oracle")

    def gap_closed_from_uniform(self) -> MeanInterval | None:
        """Part of the gap between uniform randomization and oracle that the policy closes; None without these two."""
        return self._relative("policy", "uniform", "oracle")

    def standard_error(self, role: str) -> float:
        """Standard error of the mean return, over policies and episodes."""
        return float(self._draws(role).std())

    def is_valid(self) -> bool | None:
        """True if the oracle exceeds nominal, uniform and fixed by three standard errors; None without an oracle."""
        others = [role for role in ("nominal", "uniform", "fixed") if self.by_role.get(role)]
        if not self.by_role.get("oracle") or not others:
            return None
        best = max(others, key=lambda role: _mean(self.by_role[role]))
        error = np.hypot(self.standard_error("oracle"), self.standard_error(best))
        return bool(_mean(self.by_role["oracle"]) - _mean(self.by_role[best]) > STANDARD_ERRORS * error)

    def _relative(self, role: str, low: str, high: str) -> MeanInterval | None:
        if not all(self.by_role.get(each) for each in (role, low, high)):
            return None
        value, bottom, top = (_mean(self.by_role[each]) for each in (role, low, high))
        if top <= bottom:
            return None
        draws = [self._draws(each) for each in (role, low, high)]
        width = draws[2] - draws[1]
        drawn = np.where(width > 0, (draws[0] - draws[1]) / np.where(width > 0, width, 1.0), np.nan)
        return _estimate(drawn[np.isfinite(drawn)], (value - bottom) / (top - bottom))

    def _draws(self, role: str) -> Float[np.ndarray, " resamplings"]:
        """Bootstrap means: policies are drawn, then episodes of each."""
        rng = np.random.default_rng([self.seed, sorted(ROLES).index(role)])
        policies = [np.asarray(each, float) for each in self.by_role[role]]
        chosen = rng.integers(len(policies), size=(RESAMPLINGS, len(policies)))
        means = np.stack([rng.choice(each, (RESAMPLINGS, len(each))).mean(1) for each in policies], axis=1)
        return np.take_along_axis(means, chosen, axis=1).mean(1)


def _mean(policies: Sequence[np.ndarray]) -> float:
    return float(np.mean([np.mean(each) for each in policies]))


def _estimate(draws: np.ndarray, value: float) -> MeanInterval:
    low, high = np.percentile(draws, [2.5, 97.5])
    return MeanInterval(value, float(low), float(high))
