"""The workloads as ONNX graphs, as an exporter would write them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from benchmarks.peers.peer import NotWrittenError
from benchmarks.peers.references import HEADS, SEQUENCE, WIDTH

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.peers.draws import Array
    from benchmarks.peers.workloads import Workload

_TYPES = {"float32": TensorProto.FLOAT, "int32": TensorProto.INT32, "int64": TensorProto.INT64}
_OPSET, _IR_VERSION = 20, 10
_WEIGHTS = "weights are initializers"


@dataclass(slots=True)
class Graph:
    """A graph whose result is called ``y``.

    Attributes:
        inputs: What is bound at run time.
        layout: Brings the result into the reference's layout.
        note: How it differs from the other frameworks' form.
        model: The finished model.
    """

    inputs: dict[str, Array]
    layout: Callable[[Array], Array] = lambda result: result
    note: str = ""
    model: Any = None
    _nodes: list[Any] = field(default_factory=list)
    _initializers: list[Any] = field(default_factory=list)

    def constant(self, array: Any) -> str:
        """Add an initializer and return its name."""
        name = f"c{len(self._initializers)}"
        self._initializers.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def __call__(self, op: str, *inputs: str, **attributes: Any) -> str:
        """Add a node and return the name of its result."""
        name = f"v{len(self._nodes)}"
        self._nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def finish(self, result: str) -> Graph:
        """Make the model whose result is ``result``, that of the last node."""
        assert self._nodes[-1].output[0] == result
        self._nodes[-1].output[0] = "y"
        inputs = [
            helper.make_tensor_value_info(name, _TYPES[array.dtype.name], array.shape)
            for name, array in self.inputs.items()
        ]
        outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
        graph = helper.make_graph(self._nodes, "workload", inputs, outputs, self._initializers)
        self.model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)])
        self.model.ir_version = _IR_VERSION
        return self


def graph_of(workload: Workload) -> Graph:
    """Return the graph of ``workload``.

    Raises:
        NotWrittenError: It computes gradients, loops, or is in bf16.
    """
    if workload.narrow:
        raise NotWrittenError("no kernels for bf16")
    write = _KINDS.get(workload.kind)
    if write is None:
        raise NotWrittenError("inference without loops only")
    graph = Graph(workload.inputs())
    return graph.finish(write(graph, workload))


def _chain(g: Graph, _: Workload) -> str:
    left = g("Relu", g("Add", g("Mul", "x", "a"), "b"))
    right = g("Exp", g("Mul", g("Neg", "c"), "x"))
    return g("Add", g("Mul", left, right), "x")


def _attention(g: Graph, _: Workload) -> str:
    scaled = g("Mul", "q", g.constant(np.float32(0.125)))
    scores = g("MatMul", scaled, g("Transpose", "k", perm=[0, 1, 3, 2]))
    return g("MatMul", g("Softmax", scores, axis=-1), "v")


def _causal(g: Graph, _: Workload) -> str:
    scaled = g("Mul", "q", g.constant(np.float32(0.125)))
    scores = g("MatMul", scaled, g("Transpose", "k", perm=[0, 1, 3, 2]))
    length = g.inputs["q"].shape[-2]
    mask = np.where(np.tril(np.ones((length, length), bool)), 0, -np.inf).astype(np.float32)
    return g("MatMul", g("Softmax", g("Add", scores, g.constant(mask)), axis=-1), "v")


def _convolution(g: Graph, workload: Workload) -> str:
    filters = g.inputs.pop("w")
    filters = filters if filters.ndim == 4 else filters[:, :, None]
    weights = g.constant(np.ascontiguousarray(filters.transpose(3, 2, 0, 1)))
    g.inputs["x"] = np.ascontiguousarray(g.inputs["x"].transpose(0, 3, 1, 2))
    g.layout = lambda result: result.transpose(0, 2, 3, 1)
    g.note = f"NCHW; {_WEIGHTS}"
    if workload.kind == "depthwise":
        return g("Conv", "x", weights, group=g.inputs["x"].shape[1], auto_pad="SAME_UPPER")
    strides = [workload.stride, workload.stride]
    return g("Conv", "x", weights, strides=strides, auto_pad="SAME_UPPER")


def _perceptron(g: Graph, _: Workload) -> str:
    weights = {name: g.constant(g.inputs.pop(name)) for name in list(g.inputs) if name != "x"}
    g.note = _WEIGHTS
    x, count = "x", len(weights) // 2
    for number in range(count):
        x = g("Gemm", x, weights[f"w{number}"], weights[f"b{number}"])
        x = x if number == count - 1 else g("Relu", x)
    return x


def _scatter(g: Graph, _: Workload) -> str:
    g.inputs["idx"] = g.inputs["idx"].astype(np.int64).reshape(-1, 1)
    g.note = "indices are int64"
    table = g("ConstantOfShape", g.constant(np.array([50000, 256])))
    return g("ScatterND", table, "idx", "g", reduction="add")


def _block(g: Graph, _: Workload) -> str:
    c = {name: g.constant(g.inputs.pop(name)) for name in list(g.inputs) if name != "x"}
    g.note = _WEIGHTS

    def normed(x: str, gain: str, offset: str) -> str:
        return g("LayerNormalization", x, c[gain], c[offset], axis=-1, epsilon=1e-5)

    def linear(x: str, weights: str, bias: str) -> str:
        return g("Add", g("MatMul", x, c[weights]), c[bias])

    mixed = linear(normed("x", "g1", "b1"), "wa", "ba")
    heads = g.constant(np.array([1, SEQUENCE, HEADS, WIDTH // HEADS]))

    def head(number: int, perm: list[int]) -> str:
        bounds = (g.constant(np.array([place * WIDTH])) for place in (number, number + 1))
        part = g("Slice", mixed, *bounds, g.constant(np.array([2])))
        return g("Transpose", g("Reshape", part, heads), perm=perm)

    q, k, v = head(0, [0, 2, 1, 3]), head(1, [0, 2, 3, 1]), head(2, [0, 2, 1, 3])
    below = np.tril(np.ones((SEQUENCE, SEQUENCE), bool))
    mask = g.constant(np.where(below, 0, -1e30).astype(np.float32))
    scores = g("Add", g("Mul", g("MatMul", q, k), g.constant(np.float32(0.125))), mask)
    attended = g("Transpose", g("MatMul", g("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    joined = g("Reshape", attended, g.constant(np.array([1, SEQUENCE, WIDTH])))
    x = g("Add", "x", linear(joined, "wp", "bp"))
    inner = g("Gelu", linear(normed(x, "g2", "b2"), "wf", "bf"), approximate="tanh")
    return g("Add", x, linear(inner, "wo", "bo"))


def _scalar(g: Graph, _: Workload) -> str:
    return g("Add", g("Mul", "x", g.constant(np.float32(2))), g.constant(np.float32(1)))


def _sum(g: Graph, workload: Workload) -> str:
    axes = g.constant(np.array([int(workload.name[-1])]))
    return g("ReduceSum", "x", axes, keepdims=0)


_KINDS: Mapping[str, Callable[[Graph, Workload], str]] = {
    "scalar": _scalar,
    "product": lambda g, _: g("MatMul", "a", "b"),
    "chain": _chain,
    "softmax": lambda g, _: g("Softmax", "x", axis=-1),
    "layer_norm": lambda g, _: g("LayerNormalization", "x", "g", "b", axis=-1, epsilon=1e-5),
    "sum_axis0": _sum,
    "sum_axis1": _sum,
    "mean": lambda g, _: g("ReduceMean", "x", keepdims=0),
    "transpose": lambda g, _: g("Transpose", "x", perm=[1, 0]),
    "attention": _attention,
    "causal": _causal,
    "convolution": _convolution,
    "depthwise": _convolution,
    "perceptron": _perceptron,
    "gather": lambda g, _: g("Gather", "tab", "idx", axis=0),
    "scatter": _scatter,
    "block": _block,
}
