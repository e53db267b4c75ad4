"""Trained policies as folders: weights, a description, and a runner that needs NumPy only."""

import dataclasses
import importlib.metadata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from truesim.core.errors import FileError, TruesimError
from truesim.core.missing import missing_file
from truesim.core.persistence.atomic import write_arrays, write_atomically, write_json
from truesim.core.precision import float32
from truesim.physics.model.actuators import Actuators
from truesim.policies import runner
from truesim.policies.actors import PolicyNetwork
from truesim.policies.draws import make_keys
from truesim.policies.episodes import begin, instant
from truesim.policies.networks import MAX_NORMALIZED, MIN_VARIANCE, Layers, Normalizer, apply_layers
from truesim.policies.runner import PolicyRunner
from truesim.policies.task import PolicyTask

POLICY_SCHEMA = "truesim.policy/1"
POLICY_FILE, POLICY_WEIGHTS_FILE, RUNNER_FILE = "policy.json", "weights.npz", "run_policy.py"
LINEARITY_TOLERANCE = 1e-4
"""Deviation from linearity up to which controls are described by a matrix."""


@dataclasses.dataclass(frozen=True)
class TrainedPolicy:
    """A trained policy: the mean action of a network on normalized observations."""

    layers: Layers
    """Hidden layers, and the linear output."""
    normalizer: Normalizer
    activation: str
    """Of the hidden layers."""
    description: Mapping[str, Any]
    """As in `policy.json`."""
    kind: str = "mlp"
    """Kind of network, as of `PolicyNetwork`."""
    cell: Layers = dataclasses.field(default_factory=list)
    """Weights of a recurrent network's cell: of its input, and of its memory."""

    @property
    def network(self) -> PolicyNetwork:
        """Shape of the network."""
        hidden = tuple(len(b) for _, b in self.layers[:-1])
        return PolicyNetwork(self.kind, hidden, len(self.layers[-1][0]), self.activation)

    @property
    def weights(self) -> Any:
        """Weights of the network."""
        return {"layers": self.layers, "cell": self.cell} if self.cell else self.layers

    @classmethod
    def of_runner(cls, policy: PolicyRunner) -> "TrainedPolicy":
        """The same policy for JAX, from one that was loaded."""
        network, scale = policy.description["network"], np.asarray(policy.scale)
        normalizer = Normalizer(np.asarray(policy.mean), 1.0 / scale**2, np.ones((), np.float32))
        layers, cell = list(policy.layers), list(policy.cell_layers)
        return cls(layers, normalizer, network["activation"], policy.description, network["kind"], cell)

    def act(self, observation: Any) -> np.ndarray:
        """Mean action for a vector of observations, or for a batch of them."""
        limit, size = self.description["actions"]["limit"], len(np.asarray(self.normalizer.mean))
        if np.shape(observation)[-1:] != (size,):
            raise TruesimError(
                f"The observation has shape {np.shape(observation)}; this policy takes vectors of {size} numbers."
            )
        with float32():
            x = self.normalizer(jnp.asarray(observation, jnp.float32))
            return np.clip(np.asarray(apply_layers(self.layers, x, self.activation)), -limit, limit)

    def save(self, folder: Path) -> None:
        """Write description, weights and runner."""
        folder.mkdir(parents=True, exist_ok=True)
        scale = 1.0 / np.sqrt(np.maximum(np.asarray(self.normalizer.variance), MIN_VARIANCE))
        arrays = {"normalizer.mean": np.asarray(self.normalizer.mean), "normalizer.scale": scale.astype(np.float32)}
        for name, layers in (("actor", self.layers), ("cell", self.cell)):
            for k, (W, b) in enumerate(layers):
                arrays |= {f"{name}.{k}.weight": np.asarray(W), f"{name}.{k}.bias": np.asarray(b)}
        write_arrays(folder / POLICY_WEIGHTS_FILE, arrays)
        text = Path(runner.__file__).read_text(encoding="utf-8")
        write_atomically(folder / RUNNER_FILE, lambda part: part.write_text(text, encoding="utf-8"))
        write_json(folder / POLICY_FILE, dict(self.description))


def describe(
    task: PolicyTask, activation: str, layers: Layers, training: Mapping[str, Any], network: PolicyNetwork | None = None
) -> dict[str, Any]:
    """Description of a policy for a task: everything that another program needs to run it.

    Args:
        task: The task.
        activation: Activation of the hidden layers.
        layers: Hidden layers and output of the network.
        training: How it was trained, for the record.
        network: Network of the policy; a multilayer perceptron by default.
    """
    model, actions = task.simulator.model, task.action_map
    offset, matrix = linear_controls(task)
    return {
        "schema": POLICY_SCHEMA,
        "task": task.name,
        "robot": dict(task.robot),
        "made_up": list(task.made_up),
        "privileged": task.privileged,
        "period": task.period,
        "latency": list(task.latency),
        "observations": _described_observations(task),
        "command": list(task.command.names) if task.command else [],
        "actions": {
            "size": actions.size,
            "limit": actions.limit,
            "actuators": list(model.actuators.names),
            "offset": offset,
            "matrix": matrix,
            "forces": _forces(model.actuators),
        },
        "joints": list(model.joints.names),
        "network": {
            "kind": "mlp" if network is None else network.kind,
            "layers": len(layers),
            "activation": activation,
            "memory": 0 if network is None else network.memory_size,
            "bound": MAX_NORMALIZED,
        },
        "training": dict(training),
        "versions": {name: importlib.metadata.version(name) for name in ("jax", "numpy", "mujoco")},
    }


def _forces(actuators: Actuators) -> list[dict[str, Any]]:
    """Force of each actuator [N m, N]: `gain * control + bias[0] + bias[1] * position + bias[2] * velocity`."""
    fields = (actuators.gain, actuators.bias, actuators.force_range)
    rows = zip(*(np.asarray(x, float).tolist() for x in fields), actuators.force_limited, strict=True)
    return [{"gain": gain, "bias": bias, "range": ends if limited else None} for gain, bias, ends, limited in rows]


def _described_observations(task: PolicyTask) -> list[dict[str, Any]]:
    with float32():
        now = jax.eval_shape(lambda key: instant(task, begin(task, key)), jnp.zeros(2, jnp.uint32))
        terms = [(name, term) for name, term in task.observations.items() if not term.privileged]
        sizes = {name: jax.eval_shape(lambda now, f=term.function: jnp.atleast_1d(f(now)), now) for name, term in terms}
    return [
        {
            "name": name,
            "size": sizes[name].shape[0],
            "unit": term.unit,
            "scale": term.scale,
            "noise": term.noise,
        }
        for name, term in terms
    ]


def observation_size(task: PolicyTask) -> int:
    """Numbers that a policy for the task sees."""
    return sum(term["size"] for term in _described_observations(task))


def linear_controls(task: PolicyTask) -> tuple[list[float], list[list[float]] | None]:
    """Offset and matrix of controls in actions, `None` if they are not linear."""
    actions = task.action_map

    def control(action: np.ndarray) -> np.ndarray:
        return np.asarray(actions.control(task.simulator, jnp.asarray(action)), float)

    offset = control(np.zeros(actions.size))
    matrix = np.stack([control(row) - offset for row in np.eye(actions.size)])
    probe = make_keys(0, actions.size)[:, 0] / 2.0**32
    deviation = np.abs(control(probe) - offset - probe @ matrix).max()
    is_linear = deviation <= LINEARITY_TOLERANCE * (1.0 + np.abs(matrix).max())
    return offset.tolist(), matrix.tolist() if is_linear else None


def load_policy(folder: str | Path) -> PolicyRunner:
    """Policy of a folder that training wrote."""
    folder = Path(folder)
    if not folder.is_dir():
        raise missing_file("policy", folder, "give the folder that `truesim train` wrote with --out")
    for name in (POLICY_FILE, POLICY_WEIGHTS_FILE):
        if not (folder / name).is_file():
            raise FileError(f"{folder} is not the folder of a policy: it has no {name}.")
    return PolicyRunner(folder)


def check_policy(policy: PolicyRunner, task: PolicyTask) -> None:
    """Refuse a policy that was trained for another rate, other observations or other joints than the task has."""
    said = policy.description
    if abs(said["period"] - task.period) > 1e-9:
        raise TruesimError(
            f"The policy acts every {said['period']:g} s, the task {task.name} every {task.period:g} s; "
            "train it for this rate, or change the task's period."
        )
    ours = [(each["name"], each["size"]) for each in _described_observations(task)]
    theirs = [(each["name"], each["size"]) for each in said["observations"]]
    for own, other in zip(ours, theirs, strict=False):
        if own != other:
            raise TruesimError(
                f"The policy expects {other[1]} numbers {other[0]!r} where the task has {own[1]} {own[0]!r}."
            )
    if len(ours) != len(theirs):
        raise TruesimError(f"The policy takes {len(theirs)} observations, the task {task.name} has {len(ours)}.")
    actuators = list(task.simulator.model.actuators.names)
    if said["actions"]["actuators"] != actuators:
        raise TruesimError(
            f"The policy moves {', '.join(said['actions']['actuators'])}; this robot has {', '.join(actuators)}."
        )
