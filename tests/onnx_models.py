"""Small ONNX models that several files of tests read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx: Any = pytest.importorskip("onnx", reason="reads ONNX models, which the extra test installs")
FLOAT, INT64 = 1, 7


def model(
    nodes: list[Any],
    inputs: dict[str, Any],
    outputs: tuple[str, ...],
    weights: dict[str, Any] | None = None,
    *,
    opset: int = 20,
    functions: tuple[Any, ...] = (),
) -> Any:
    """Return a model: inputs are shapes of f32, or pairs of a dtype's number and a shape."""
    make = onnx.helper
    ports = [
        make.make_tensor_value_info(name, *(each if isinstance(each, tuple) else (FLOAT, each)))
        for name, each in inputs.items()
    ]
    results = [make.make_empty_tensor_value_info(name) for name in outputs]
    arrays = [onnx.numpy_helper.from_array(np.asarray(each), name) for name, each in (weights or {}).items()]
    graph = make.make_graph(nodes, "graph", ports, results, arrays)
    sets = [make.make_opsetid("", opset), *(make.make_opsetid(each.domain, 1) for each in functions)]
    return make.make_model(graph, opset_imports=sets, functions=list(functions))


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    """Return a node; names are separated by spaces, and a dash is one that is left out."""
    names = ["" if each == "-" else each for each in inputs.split()]
    return onnx.helper.make_node(op, names, outputs.split(), **attributes)


def perceptron() -> Any:
    """Return a layer with weights, for any number of rows."""
    random = np.random.default_rng(0)
    weights = {
        "w": random.standard_normal((3, 4)).astype(np.float32),
        "b": random.standard_normal(4).astype(np.float32),
    }
    return model([node("Gemm", "x w b", "h"), node("Relu", "h", "y")], {"x": ["rows", 3]}, ("y",), weights)


def reshaped() -> Any:
    """Return a model whose second input says a shape."""
    return model([node("Reshape", "x shape", "y")], {"x": [2, 6], "shape": (INT64, ["rank"])}, ("y",))
