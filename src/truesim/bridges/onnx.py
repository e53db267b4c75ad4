"""Trained policies as ONNX graphs: observation in, mean action out."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from truesim.policies.runner import PolicyRunner

ONNX_OPSET = 17
NODE_NAMES = {"tanh": "Tanh", "elu": "Elu", "relu": "Relu"}
"""Operators of activations."""


def write_onnx(policy: PolicyRunner, path: str | Path) -> None:
    """Write a policy as ONNX: input `observation` (batch, n), output `action` (batch, m), clipped to its limit.

    A recurrent policy has the input `memory` too, zeros before an episode, and the output `next_memory` for the next
    control step.

    Args:
        policy: From `load_policy`.
        path: The file.
    """
    graph = _PolicyGraph(policy)
    graph.add("Clip", [graph.add("Mul", [graph.add("Sub", ["observation", "mean"]), "scale"]), "lowest", "highest"])
    for W, b in policy.layers[:-1]:
        graph.add(NODE_NAMES[policy.description["network"]["activation"]], [graph.product(graph.last, W, b)])
    inputs, outputs = [("observation", len(policy.mean))], [("action", len(policy.layers[-1][1]))]
    if policy.cell is not None:
        size = policy.description["network"]["memory"]
        inputs, outputs = [*inputs, ("memory", size)], [*outputs, ("next_memory", size)]
        {"gru": _add_gru, "lstm": _add_lstm}[policy.description["network"]["kind"]](graph, policy)
    graph.add("Clip", [graph.product(graph.last, *policy.layers[-1]), "least", "most"], "action")
    made = helper.make_graph(
        graph.nodes,
        "policy",
        _described(inputs),
        _described(outputs),
        [numpy_helper.from_array(np.asarray(x, np.float32), name) for name, x in graph.constants.items()],
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", ONNX_OPSET)])
    onnx.checker.check_model(model)
    Path(path).write_bytes(model.SerializeToString())


def _described(values: list[tuple[str, int]]) -> list[Any]:
    """Names and sizes of inputs or outputs, batch first."""
    return [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", size]) for name, size in values]


class _PolicyGraph:
    """Nodes and constants of a graph."""

    def __init__(self, policy: PolicyRunner):
        limit = float(policy.description["actions"]["limit"])
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {
            "mean": policy.mean,
            "scale": policy.scale,
            "lowest": -policy.bound,
            "highest": policy.bound,
            "least": -limit,
            "most": limit,
            "one": 1.0,
        }
        self.last = "observation"
        """Name of the value that was added last."""

    def add(self, operator: str, inputs: list[str], name: str | None = None, **attributes: Any) -> str:
        """Name of a new value."""
        self.last = name or f"value{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [self.last], **attributes))
        return self.last

    def product(self, x: str, W: np.ndarray, b: np.ndarray) -> str:
        """Name of `x W + b`."""
        names = f"W{len(self.nodes)}", f"b{len(self.nodes)}"
        self.constants |= dict(zip(names, (W, b), strict=True))
        return self.add("Gemm", [x, *names])

    def split(self, x: str, count: int) -> list[str]:
        """Names of equal parts."""
        names = [f"{x}_{k}" for k in range(count)]
        self.nodes.append(helper.make_node("Split", [x], names, axis=1))
        return names

    def gate(self, *parts: str) -> str:
        """Name of the logistic function of a sum."""
        return self.add("Sigmoid", [self.add("Add", list(parts)) if len(parts) > 1 else parts[0]])


def _add_gru(graph: _PolicyGraph, policy: PolicyRunner) -> None:
    r, z, n = graph.split(graph.product(graph.last, *policy.cell_layers[0]), 3)
    r_memory, z_memory, n_memory = graph.split(graph.product("memory", *policy.cell_layers[1]), 3)
    update = graph.gate(z, z_memory)
    kept = graph.add("Mul", [graph.gate(r, r_memory), n_memory])
    candidate = graph.add("Tanh", [graph.add("Add", [n, kept])])
    new = graph.add("Mul", [graph.add("Sub", ["one", update]), candidate])
    graph.add("Add", [new, graph.add("Mul", [update, "memory"])], "next_memory")


def _add_lstm(graph: _PolicyGraph, policy: PolicyRunner) -> None:
    gates = graph.product(graph.last, *policy.cell_layers[0])
    cell, output = graph.split("memory", 2)
    i, f, g, o = graph.split(graph.add("Add", [gates, graph.product(output, *policy.cell_layers[1])]), 4)
    new = graph.add("Mul", [graph.gate(i), graph.add("Tanh", [g])])
    cell = graph.add("Add", [graph.add("Mul", [graph.gate(f), cell]), new])
    output = graph.add("Mul", [graph.gate(o), graph.add("Tanh", [cell])])
    graph.add("Concat", [cell, output], "next_memory", axis=1)
    graph.last = output
