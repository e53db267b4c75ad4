"""Runner of a trained policy: this file and NumPy are all that a robot needs.

    policy = PolicyRunner("folder")
    observation = policy.observe({"gyro": [...], "gravity": [...], ...})   # by name, in the units of policy.json
    controls = policy.controls(policy.act(observation))                    # one for each actuator
    policy.reset()                                                         # before an episode: forget the last one

The folder holds `policy.json` (observations, actions, rate) and `weights.npz`.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np


def tanh(x: Any) -> Any:
    """Hyperbolic tangent."""
    return np.tanh(x)


def elu(x: Any) -> Any:
    """Exponential linear unit."""
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


def relu(x: Any) -> Any:
    """Rectified linear unit."""
    return np.maximum(x, 0)


def sigmoid(x: Any) -> Any:
    """Logistic function."""
    return 0.5 * (1.0 + np.tanh(0.5 * x))


def run_gru(U: Any, c: Any, memory: Any, gates: Any) -> Any:
    """Memory and output of a gated recurrent unit; gates are reset, update and candidate."""
    r, z, n = np.split(gates, 3, axis=-1)
    r_memory, z_memory, n_memory = np.split(memory @ U + c, 3, axis=-1)
    update = sigmoid(z + z_memory)
    candidate = np.tanh(n + sigmoid(r + r_memory) * n_memory)
    memory = (1 - update) * candidate + update * memory
    return memory, memory


def run_lstm(U: Any, c: Any, memory: Any, gates: Any) -> Any:
    """Memory and output of a long short-term memory; gates are input, forget, candidate and output."""
    cell, output = np.split(memory, 2, axis=-1)
    i, f, g, o = np.split(gates + output @ U + c, 4, axis=-1)
    cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
    output = sigmoid(o) * np.tanh(cell)
    return np.concatenate([cell, output], axis=-1), output


RUNNER_CELLS = {"gru": run_gru, "lstm": run_lstm}
RUNNER_ACTIVATIONS = {"tanh": tanh, "elu": elu, "relu": relu}


class PolicyRunner:
    """A policy from a folder."""

    def __init__(self, folder: Any):
        """Read the folder."""
        folder = Path(folder)
        self.description = json.loads((folder / "policy.json").read_text(encoding="utf-8"))
        with np.load(folder / "weights.npz", allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        network = self.description["network"]
        count = network["layers"]
        self.layers = [(arrays[f"actor.{k}.weight"], arrays[f"actor.{k}.bias"]) for k in range(count)]
        self.mean, self.scale = arrays["normalizer.mean"], arrays["normalizer.scale"]
        self.bound = float(network["bound"])
        self.activation = RUNNER_ACTIVATIONS[network["activation"]]
        self.cell = RUNNER_CELLS.get(network["kind"])
        self.cell_layers = [
            (arrays[f"cell.{k}.weight"], arrays[f"cell.{k}.bias"]) for k in range(2 if self.cell else 0)
        ]
        self.memory = np.zeros(0, np.float32)
        self.reset()

    @property
    def period(self) -> float:
        """Time between two actions [s]."""
        return self.description["period"]

    def observe(self, values: dict[str, Any]) -> np.ndarray:
        """Vector of observations from values by name, in the units of `policy.json`."""
        terms = self.description["observations"]
        unknown = sorted(set(values) - {term["name"] for term in terms})
        if unknown:
            raise ValueError(f"The policy has no observation {unknown[0]!r}; it has {[t['name'] for t in terms]}.")
        parts = []
        for term in terms:
            if term["name"] not in values:
                raise ValueError(f"The policy needs the observation {term['name']!r} ({term['size']} numbers).")
            value = np.atleast_1d(np.asarray(values[term["name"]], np.float32))
            if value.shape != (term["size"],):
                raise ValueError(f"{term['name']} has shape {value.shape}; the policy takes ({term['size']},).")
            if not np.all(np.isfinite(value)):
                raise ValueError(f"{term['name']} is {value.tolist()}; all of its numbers must be finite.")
            parts.append(np.float32(term["scale"]) * value)
        return np.concatenate(parts)

    def reset(self) -> None:
        """Forget all that was observed; call it before every episode."""
        self.memory = np.zeros(self.description["network"].get("memory", 0), np.float32)

    def act(self, observation: Any) -> np.ndarray:
        """Mean action for a vector of observations, or for a batch of them; a recurrent policy remembers them."""
        x = np.asarray(observation, np.float32)
        if x.shape[-1:] != self.mean.shape:
            raise ValueError(f"The observation has {x.shape[-1:]} numbers; the policy takes {self.mean.shape}.")
        x = np.clip((x - self.mean) * self.scale, -self.bound, self.bound)
        for W, b in self.layers[:-1]:
            x = self.activation(x @ W + b)
        if self.cell is not None:
            (W, b), (U, c) = self.cell_layers
            memory = np.broadcast_to(self.memory, (*x.shape[:-1], self.memory.shape[-1]))
            self.memory, x = self.cell(U, c, memory, x @ W + b)
        W, b = self.layers[-1]
        limit = self.description["actions"]["limit"]
        return np.clip(x @ W + b, -limit, limit)

    def controls(self, action: Any) -> np.ndarray:
        """Controls of the actuators, in the order of `policy.json`."""
        actions = self.description["actions"]
        if actions["matrix"] is None:
            raise ValueError("The controls of this policy are not linear in its actions: compute them yourself.")
        return np.asarray(actions["offset"]) + np.asarray(action) @ np.asarray(actions["matrix"])
