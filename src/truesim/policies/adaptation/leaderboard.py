"""Methods of adaptation on one protocol: gap closed against real episodes, beside references that do not adapt.

    gap closed after k episodes = (J_method(k) - J_nominal) / (J_oracle - J_nominal)

Returns are measured in evaluations that count for nobody; methods only see the episodes that count.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from truesim.core.errors import TruesimError, unknown_name
from truesim.core.ray_pool import map_workers
from truesim.core.typing import Float
from truesim.policies.adaptation.adapt import adapt
from truesim.policies.adaptation.conditioned_policy import (
    ConditionedPolicy,
    ConditionedTraining,
    train_encoded,
    train_universal,
)
from truesim.policies.adaptation.online import OnlinePolicy
from truesim.policies.adaptation.osi import OsiOptions, train_osi
from truesim.policies.adaptation.parameter_search import AdaptOptions
from truesim.policies.adaptation.rma import RmaOptions, train_rma
from truesim.policies.policy import TrainedPolicy
from truesim.policies.task import PolicyTask


class RealBench(Protocol):
    """The real system of a comparison, such as a `TaskBench`."""

    def episode(self, policy: TrainedPolicy) -> float:
        """Return of one episode, which counts."""

    def evaluate(self, policy: TrainedPolicy | OnlinePolicy) -> Float[np.ndarray, " episodes"]:
        """Returns of an evaluation, which does not count."""


class AdaptationMethod(NamedTuple):
    """A method: what the policy is conditioned on, and how the condition is found."""

    condition: str
    """`universal` (told parameters), `projected` (an encoding of them), `latent` (with a bottleneck)."""
    search: str | None
    """Search by episodes; None for an estimate within every episode, which needs no episode before."""


ADAPTATION_METHODS = {
    "latent-awr": AdaptationMethod("latent", "awr"),
    "latent-cma-es": AdaptationMethod("latent", "cma-es"),
    "latent-bayesian": AdaptationMethod("latent", "bayesian"),
    "latent-hill-climbing": AdaptationMethod("latent", "hill-climbing"),
    "latent-random": AdaptationMethod("latent", "random"),
    "so-cma": AdaptationMethod("universal", "cma-es"),
    "so-random": AdaptationMethod("universal", "random"),
    "pup-bayesian": AdaptationMethod("projected", "bayesian"),
    "up-osi": AdaptationMethod("universal", None),
    "rma": AdaptationMethod("projected", None),
}
"""Methods by name: latent search (Peng et al. 2020), by batch hill climbing as well (Song et al. 2020), strategy
optimization (Yu et al. 2019), projected universal policies (Yu et al. 2019), UP-OSI (Yu et al. 2017), RMA (Kumar et
al. 2021), and random search as the control."""


@dataclasses.dataclass(frozen=True)
class LeaderboardOptions:
    """Sizes of a comparison."""

    counts: tuple[int, ...] = (0, 5, 10, 20, 50)
    """Real episodes after which policies are evaluated."""
    searches: int = 5
    """Independent searches of each method."""
    latent: int = 2
    """Dimensions of latents and projections."""
    bottleneck: float = 1e-3
    """Weight of the information bottleneck of latents."""
    repeats: int = 2
    """Episodes by which a candidate is confirmed."""
    training: ConditionedTraining = dataclasses.field(default_factory=ConditionedTraining)
    osi: OsiOptions = dataclasses.field(default_factory=OsiOptions)
    rma: RmaOptions = dataclasses.field(default_factory=RmaOptions)


class MethodCurve(NamedTuple):
    """Returns of a method against real episodes."""

    method: str
    counts: tuple[int, ...]
    returns: Float[np.ndarray, "samples counts"]
    """Mean return of an evaluation for each search; of estimates, which search nothing, each return of one."""
    found: list[np.ndarray]
    """Condition that each search has found; empty for estimates."""


class PolicyShelf:
    """Conditioned policies of a task, each trained when it is first asked for."""

    def __init__(self, task: PolicyTask, options: LeaderboardOptions):
        """Begin with none."""
        self.task, self.options = task, options
        self._policies: dict[str, ConditionedPolicy] = {}
        self._online: dict[str, OnlinePolicy] = {}

    def prepare(self, methods: Sequence[str], workers: str = "1") -> None:
        """Train everything that some methods need; the result is the same wherever it is trained.

        Args:
            methods: Names of methods.
            workers: `1` for this process, `ray` or the address of a cluster for one policy on each processor there.
        """
        wanted: dict[str, bool] = {}
        for method in (ADAPTATION_METHODS[name] for name in find_methods(methods)):
            wanted[method.condition] = wanted.get(method.condition, False) or method.search is None
        trained = map_workers(_train_both, list(wanted.items()), shared=(self.task, self.options), workers=workers)
        for condition, (policy, online) in zip(wanted, trained, strict=True):
            self._policies[condition] = policy
            if online is not None:
                self._online[condition] = online

    def policy(self, condition: str) -> ConditionedPolicy:
        """Policy by what it is conditioned on."""
        if condition not in self._policies:
            self._policies[condition] = _train_policy(self.task, self.options, condition)
        return self._policies[condition]

    def online(self, condition: str) -> OnlinePolicy:
        """Policy with an estimator: UP-OSI of told parameters, RMA of latents."""
        if condition not in self._online:
            self._online[condition] = _train_estimator(self.policy(condition), self.options)
        return self._online[condition]


def _train_policy(task: PolicyTask, options: LeaderboardOptions, condition: str) -> ConditionedPolicy:
    if condition == "universal":
        return train_universal(task, options.training)
    bottleneck = options.bottleneck if condition == "latent" else 0.0
    return train_encoded(task, options.latent, bottleneck, options.training)


def _train_estimator(policy: ConditionedPolicy, options: LeaderboardOptions) -> OnlinePolicy:
    if policy.network is None:
        return train_osi(policy, options.osi)
    return train_rma(policy, options.rma)


def _train_both(
    shared: tuple[PolicyTask, LeaderboardOptions], wanted: tuple[str, bool]
) -> tuple[ConditionedPolicy, OnlinePolicy | None]:
    """A policy, and its estimator if that is wanted."""
    policy = _train_policy(*shared, wanted[0])
    return policy, _train_estimator(policy, shared[1]) if wanted[1] else None


def find_methods(names: Sequence[str]) -> list[str]:
    """Names of methods, checked."""
    for name in names:
        if name not in ADAPTATION_METHODS:
            raise unknown_name("method of adaptation", name, ADAPTATION_METHODS)
    if not names:
        raise TruesimError(f"Give at least one method of {', '.join(ADAPTATION_METHODS)}.")
    return list(dict.fromkeys(names))


def method_curve(name: str, shelf: PolicyShelf, bench: RealBench) -> MethodCurve:
    """Returns of one method after each number of real episodes.

    Args:
        name: The method.
        shelf: Policies of the task.
        bench: The real system.
    """
    (name,) = find_methods([name])
    method, o = ADAPTATION_METHODS[name], shelf.options
    if method.search is None:
        values = np.asarray(bench.evaluate(shelf.online(method.condition)), float)
        return MethodCurve(name, o.counts, np.repeat(values[:, None], len(o.counts), axis=1), [])
    policy, rows, found = shelf.policy(method.condition), [], []
    for seed in range(o.searches):
        options = AdaptOptions(repeats=o.repeats, seed=seed)
        search = adapt(policy, bench.episode, method=method.search, episodes=max(o.counts), options=options).search
        known: dict[bytes, float] = {}
        row = []
        for count in o.counts:
            vector = search.incumbents[:count][-1] if count else policy.nominal
            key = vector.tobytes()
            if key not in known:
                known[key] = float(np.mean(bench.evaluate(policy.conditioned(vector))))
            row.append(known[key])
        rows.append(row)
        found.append(search.parameters)
    return MethodCurve(name, o.counts, np.array(rows), found)


def gap_closed(returns: Float[np.ndarray, "..."], nominal: float, oracle: float) -> Float[np.ndarray, "..."]:
    """Part of the gap between the nominal policy and the oracle that is closed."""
    if not oracle > nominal:
        raise TruesimError(
            f"The oracle returns {oracle:.4g} on the real system and the nominal policy {nominal:.4g}: there is no gap."
        )
    return (np.asarray(returns, float) - nominal) / (oracle - nominal)
