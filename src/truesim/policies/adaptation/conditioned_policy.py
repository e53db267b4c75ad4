"""Policies of an observation and of a vector: told parameters, a projection of them, or a latent.

    policy = train_universal(task)                       # pi(x, told parameters)
    policy = train_encoded(task, latent=2)               # pi(x, z), z a projection or a latent
    fixed = policy.conditioned(policy.nominal)           # an ordinary policy, for one value of the vector

`adapt` searches the vector on a real system; `osi` and `rma` estimate it from the latest observations and actions.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.errors import TruesimError
from truesim.core.precision import float32
from truesim.core.typing import Array, Float
from truesim.policies.adaptation.conditioned_task import tell_parameters
from truesim.policies.adaptation.encoder_network import EncoderNetwork
from truesim.policies.coordinates import ParameterCoordinates
from truesim.policies.environment import Environment
from truesim.policies.evaluation import Evaluation
from truesim.policies.learners.ppo import Ppo, PpoOptions, PpoState
from truesim.policies.networks import Layers, MeanNetwork, Normalizer, apply_layers
from truesim.policies.physics import physics_of
from truesim.policies.policy import TrainedPolicy, describe
from truesim.policies.task import PolicyTask

LATENT_MARGIN = 0.1
"""Part of the range of latents by which their box is larger on each side."""
ENCODED_SAMPLES = 2000
"""Random parameters from which the range of latents is measured."""
LEARNED = ("weights", "average", "optimizer", "learning_rate", "normalizer", "critic_normalizer")
"""Fields of a state of PPO that do not belong to its episodes."""
CONDITIONED_LEARNER = PpoOptions(activation="tanh", normalize=False, entropy=0.01)
"""Options of PPO for conditioned policies."""


@dataclasses.dataclass(frozen=True)
class ConditionedPolicy:
    """A policy of the task's observation and of a vector, the condition."""

    task: PolicyTask
    """The task, in which nothing is told."""
    layers: Layers
    """Perceptron of observation and condition."""
    activation: str
    network: EncoderNetwork | None
    """Encoder of the condition; None if it is the told coordinates themselves."""
    encoder: Any
    """Weights of the encoder."""
    low: Float[np.ndarray, " size"]
    """Smallest value of each element of the condition."""
    high: Float[np.ndarray, " size"]

    @property
    def size(self) -> int:
        """Size of the condition."""
        return len(self.low)

    @property
    def told_task(self) -> PolicyTask:
        """The task in which parameters are told, without noise of the latent."""
        return tell_parameters(self.task)

    @property
    def nominal(self) -> Float[np.ndarray, " size"]:
        """Condition of the simulator as it is."""
        with float32():
            told = jnp.asarray(ParameterCoordinates(self.task).nominal, jnp.float32)
            return np.clip(np.asarray(self.condition(told), float), self.low, self.high)

    def condition(self, told: Array) -> Array:
        """Condition of coordinates of parameters."""
        if self.network is None:
            return told
        return self.network.encode({"encoder": self.encoder}, told)[0]

    def act(self, observation: Array, condition: Array) -> Array:
        """Mean actions, in compiled code."""
        inputs = jnp.concatenate([observation, condition], axis=-1)
        return apply_layers(self.layers, inputs, self.activation)

    def conditioned(self, condition: Float[np.ndarray, " size"]) -> TrainedPolicy:
        """Policy for one value of the condition, which becomes part of the first layer's bias."""
        condition = np.asarray(condition, np.float32)
        if condition.shape != (self.size,):
            raise TruesimError(f"The condition has shape {condition.shape}; this policy takes ({self.size},).")
        weight, bias = (np.asarray(x) for x in self.layers[0])
        own = len(weight) - self.size
        layers = [(weight[:own], bias + condition @ weight[own:]), *self.layers[1:]]
        return _plain_policy(self.task, self.activation, layers, {"condition": condition.tolist()})


@dataclasses.dataclass(frozen=True)
class ConditionedTraining:
    """Budget and learner of a conditioned policy."""

    learner: PpoOptions = CONDITIONED_LEARNER
    """Options of PPO; observations are taken as the task scales them."""
    steps: int = 3_000_000
    """Control steps."""
    seed: int = 0
    evaluate_every: int = 10
    """Iterations between evaluations in simulation; the best evaluated policy is kept."""
    evaluated: int = 128
    """Episodes of an evaluation."""

    def __post_init__(self) -> None:
        if self.learner.normalize:
            raise TruesimError("Conditioned policies take observations as the task scales them: set normalize=False.")


def train_universal(task: PolicyTask, training: ConditionedTraining | None = None) -> ConditionedPolicy:
    """Universal policy `pi(x, told)`, trained with the true parameters of each episode (Yu et al. 2017)."""
    training, size = training or ConditionedTraining(), ParameterCoordinates(task).size
    state = learn(tell_parameters(task), training)
    layers = jax.tree.map(np.asarray, state.weights["actor"])
    return ConditionedPolicy(task, layers, training.learner.activation, None, None, -np.ones(size), np.ones(size))


def train_encoded(
    task: PolicyTask, latent: int = 8, bottleneck: float = 0.0, training: ConditionedTraining | None = None
) -> ConditionedPolicy:
    """Policy `pi(x, z)` with the encoder `z = E(told)`, trained together.

    Args:
        task: The task, with a randomization.
        latent: Dimensions of z.
        bottleneck: Weight of the information bottleneck; zero for a deterministic latent in [-1, 1].
        training: Budget and learner.
    """
    training, coordinates = training or ConditionedTraining(), ParameterCoordinates(task)
    o = training.learner
    network = EncoderNetwork(coordinates.size, latent, bottleneck, o.hidden, activation=o.activation)
    state = learn(tell_parameters(task, network.noise), training, network)
    weights = jax.tree.map(np.asarray, state.weights["actor"])
    rng = np.random.default_rng(0)
    with float32():
        told = jnp.asarray(rng.uniform(-1.0, 1.0, (ENCODED_SAMPLES, coordinates.size)), jnp.float32)
        seen = np.asarray(network.encode(weights, told)[0], float)
    low, high = seen.min(0), seen.max(0)
    margin = LATENT_MARGIN * (high - low) + 1e-6
    return ConditionedPolicy(
        task, weights["actor"], o.activation, network, weights["encoder"], low - margin, high + margin
    )


def train_robust(task: PolicyTask, training: ConditionedTraining | None = None) -> TrainedPolicy:
    """Policy that is told nothing, by the same learner and budget: uniform randomization, the usual reference."""
    training = training or ConditionedTraining()
    return robust_policy(task, training, learn(task, training))


def robust_policy(task: PolicyTask, training: ConditionedTraining, state: PpoState) -> TrainedPolicy:
    """Policy of a state of `learn`, for a task in which nothing is told."""
    layers = jax.tree.map(np.asarray, state.weights["actor"])
    return _plain_policy(task, training.learner.activation, layers, {"steps": training.steps, "seed": training.seed})


def _plain_policy(task: PolicyTask, activation: str, layers: Layers, training: dict[str, Any]) -> TrainedPolicy:
    with float32():
        description = describe(task, activation, layers, training)
    return TrainedPolicy(layers, Normalizer.identity(len(layers[0][0])), activation, description)


def learn(
    task: PolicyTask,
    training: ConditionedTraining,
    network: MeanNetwork | None = None,
    callback: Callable[[int, float], None] | None = None,
    start: PpoState | None = None,
) -> PpoState:
    """State of PPO with the best evaluated return in simulation.

    Args:
        task: The task.
        training: Budget and learner.
        network: Mean action; a perceptron by default.
        callback: Called with the control steps so far and the return of each evaluation.
        start: Continue what was learned here, on a task with the same observations; the budget counts from there. With
            `critic_sees_parameters=False` the tasks may randomize different parameters.
    """
    with float32():
        count = training.learner.episodes
        ppo = Ppo(Environment(task, count, physics=physics_of(task, count)), training.learner, network)
        evaluate = Evaluation(task, training.evaluated, ppo)
        state = ppo.start(training.seed)
        if start is not None:
            state = state._replace(**{name: getattr(start, name) for name in LEARNED})
        best, value, iteration = state, -np.inf, 0
        while int(state.steps) < training.steps:
            state, metrics = ppo.iterate(state)
            iteration += 1
            if not np.isfinite(float(metrics["reward"])):
                raise TruesimError(f"Training of {task.name} stopped: rewards are not finite.")
            if iteration % training.evaluate_every == 0 or int(state.steps) >= training.steps:
                found = float(np.mean(evaluate(state)))
                best, value = (state, found) if found > value else (best, value)
                if callback is not None:
                    callback(int(state.steps), found)
        return best
