"""The workloads in Core IR, with extension operations where Core v1 has none; those in bf16 are PTIR."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

import mind_mlir
from benchmarks.peers.narrow_programs import narrow_program
from benchmarks.peers.references import HEADS, SEQUENCE, WIDTH
from mind_mlir import Builder, DType, TensorType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.peers.draws import Array
    from benchmarks.peers.workloads import Workload
    from mind_mlir import Module
    from mind_mlir.ir.value import Value
    from mind_mlir.languages.ptir.program import Program

Inputs: TypeAlias = "Mapping[str, Value]"

_DTYPES = {"float32": DType.F32, "int32": DType.SI32}
_EXAMPLES = Path(__file__).parents[2] / "examples" / "control"


def program(workload: Workload, arrays: Mapping[str, Array] | None = None) -> Module | Program:
    """Return what computes ``workload``; its inputs are the workload's, in their order.

    Args:
        workload: What to compute.
        arrays: The inputs, where somebody has drawn them already.
    """
    if workload.narrow:
        return narrow_program(workload)
    if workload.kind in ("heat", "training"):
        loop: Module = mind_mlir.load(_EXAMPLES / f"{workload.kind}.ir")
        return loop
    write = _Writer(Builder())
    inputs = {
        name: write.builder.input(name, TensorType(_DTYPES[array.dtype.name], array.shape))
        for name, array in (arrays or workload.inputs()).items()
    }
    module = write.builder.build([_KINDS[workload.kind](write, workload, inputs)])
    if workload.kind != "gradients":
        return module
    return mind_mlir.differentiate(module, wrt=[name for name in inputs if name not in "xt"]).module


class _Writer:
    """Writes what several workloads have."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    def __call__(self, opcode: str, *operands: Value, **attributes: Any) -> Value:
        return self.builder.emit(opcode, *operands, **attributes)

    def number(self, value: float) -> Value:
        return self.builder.constant(value, DType.F32)

    def add(self, *terms: Value) -> Value:
        total, *others = terms
        for term in others:
            total = self("Add", total, term)
        return total

    def mul(self, *factors: Value) -> Value:
        total, *others = factors
        for factor in others:
            total = self("Mul", total, factor)
        return total

    def swapped(self, x: Value) -> Value:
        rank = len(x.shape)
        return self("Transpose", x, permutation=(*range(rank - 2), rank - 1, rank - 2))

    def softmax(self, x: Value) -> Value:
        axes = (len(x.shape) - 1,)
        dtypes = {"accum_dtype": DType.F32, "out_dtype": DType.F32}
        greatest = self("Reduce", x, kind="Max", axes=axes, keepdims=True, **dtypes)
        exponentials = self("Exp", self("Sub", x, greatest))
        total = self("Sum", exponentials, axes=axes, keepdims=True)
        return self.mul(exponentials, self("Reciprocal", total))

    def layer_norm(self, x: Value, gain: Value, offset: Value) -> Value:
        axes = (len(x.shape) - 1,)
        centred = self("Sub", x, self("Mean", x, axes=axes, keepdims=True))
        variance = self("Mean", self.mul(centred, centred), axes=axes, keepdims=True)
        logarithm = self("Log", self.add(variance, self.number(1e-5)))
        inverse = self("Exp", self.mul(logarithm, self.number(-0.5)))
        return self.add(self.mul(centred, inverse, gain), offset)

    def linear(self, x: Value, weights: Value, bias: Value) -> Value:
        return self.add(self("MatMul", x, weights), bias)

    def gelu(self, x: Value) -> Value:
        # (1 + tanh(u / 2)) / 2 is the logistic function of u.
        cubic = self.mul(self.number(0.044715), self.mul(self.mul(x, x), x))
        u = self.mul(self.add(x, cubic), self.number(2 * math.sqrt(2 / math.pi)))
        logistic = self("Reciprocal", self.add(self.number(1.0), self("Exp", self("Neg", u))))
        return self.mul(x, logistic)

    def layers(self, x: Value, parameters: Inputs) -> Value:
        count = len(parameters) // 2
        for number in range(count):
            x = self.linear(x, parameters[f"w{number}"], parameters[f"b{number}"])
            x = x if number == count - 1 else self("Relu", x)
        return x


def _parameters(inputs: Inputs) -> Inputs:
    return {name: value for name, value in inputs.items() if name not in "xt"}


def _chain(w: _Writer, _: Workload, v: Inputs) -> Value:
    left = w("Relu", w.add(w.mul(v["x"], v["a"]), v["b"]))
    right = w("Exp", w.mul(w("Neg", v["c"]), v["x"]))
    return w.add(w.mul(left, right), v["x"])


def _attention(w: _Writer, _: Workload, v: Inputs) -> Value:
    scores = w("MatMul", w.mul(v["q"], w.number(1 / 8)), w.swapped(v["k"]))
    return w("MatMul", w.softmax(scores), v["v"])


def _causal(w: _Writer, _: Workload, v: Inputs) -> Value:
    scores = w("MatMul", w.mul(v["q"], w.number(1 / 8)), w.swapped(v["k"]))
    row, column = (w("Iota", shape=scores.shape, axis=axis, dtype=DType.SI32) for axis in (2, 3))
    seen = w("Compare", column, row, op="LessEqual")
    low = w("BroadcastTo", w.number(-math.inf), result_shape=scores.shape)
    return w("MatMul", w.softmax(w("Select", seen, scores, low)), v["v"])


def _depthwise(w: _Writer, _: Workload, v: Inputs) -> Value:
    count, rows, columns, depth = v["x"].shape
    edge = (0, 1, 1, 0)
    padded = w("Pad", v["x"], low=edge, high=edge, interior=(0, 0, 0, 0), pad_value=0.0)
    terms: list[Value] = []
    for row, column in itertools.product(range(3), range(3)):
        end = (count, row + rows, column + columns, depth)
        part = w("Slice", padded, starts=(0, row, column, 0), ends=end, steps=(1, 1, 1, 1))
        place, behind = (row, column, 0), (row + 1, column + 1, depth)
        filters = w("Slice", v["w"], starts=place, ends=behind, steps=(1, 1, 1))
        terms.append(w.mul(part, w("Reshape", filters, new_shape=(depth,))))
    return w.add(*terms)


def _convolution(w: _Writer, workload: Workload, v: Inputs) -> Value:
    strides = (workload.stride, workload.stride)
    return w("Conv2d", v["x"], v["w"], strides=strides, padding="Same")


def _gradients(w: _Writer, _: Workload, v: Inputs) -> Value:
    error = w("Sub", w.layers(v["x"], _parameters(v)), v["t"])
    return w("Mean", w.mul(error, error), axes=(), keepdims=False)


def _scatter(w: _Writer, _: Workload, v: Inputs) -> Value:
    table = w("BroadcastTo", w.number(0.0), result_shape=(50000, 256))
    return w(
        "ScatterAdd",
        table,
        v["idx"],
        v["g"],
        update_window_dims=(1,),
        inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,),
        index_vector_dim=1,
    )


def _block(w: _Writer, _: Workload, v: Inputs) -> Value:
    mixed = w.linear(w.layer_norm(v["x"], v["g1"], v["b1"]), v["wa"], v["ba"])

    def head(number: int) -> Value:
        first = number * WIDTH
        part = w("Slice", mixed, starts=(0, 0, first), ends=(1, SEQUENCE, first + WIDTH), steps=(1, 1, 1))
        parted = w("Reshape", part, new_shape=(1, SEQUENCE, HEADS, WIDTH // HEADS))
        return w("Transpose", parted, permutation=(0, 2, 1, 3))

    q, k, values = (head(number) for number in range(3))
    below = np.tril(np.ones((SEQUENCE, SEQUENCE), bool))
    mask = w.builder.constant(np.where(below, 0, -1e30).astype(np.float32), DType.F32)
    scores = w.add(w.mul(w("MatMul", q, w.swapped(k)), w.number(1 / 8)), mask)
    attended = w("Transpose", w("MatMul", w.softmax(scores), values), permutation=(0, 2, 1, 3))
    joined = w("Reshape", attended, new_shape=(1, SEQUENCE, WIDTH))
    x = w.add(v["x"], w.linear(joined, v["wp"], v["bp"]))
    inner = w.gelu(w.linear(w.layer_norm(x, v["g2"], v["b2"]), v["wf"], v["bf"]))
    return w.add(x, w.linear(inner, v["wo"], v["bo"]))


_KINDS: Mapping[str, Callable[[_Writer, Workload, Inputs], Value]] = {
    "scalar": lambda w, _, v: w.add(w.mul(v["x"], w.number(2.0)), w.number(1.0)),
    "product": lambda w, _, v: w("MatMul", v["a"], v["b"]),
    "chain": _chain,
    "softmax": lambda w, _, v: w.softmax(v["x"]),
    "layer_norm": lambda w, _, v: w.layer_norm(v["x"], v["g"], v["b"]),
    "sum_axis0": lambda w, _, v: w("Sum", v["x"], axes=(0,), keepdims=False),
    "sum_axis1": lambda w, _, v: w("Sum", v["x"], axes=(1,), keepdims=False),
    "mean": lambda w, _, v: w("Mean", v["x"], axes=(), keepdims=False),
    "transpose": lambda w, _, v: w("Transpose", v["x"], permutation=(1, 0)),
    "attention": _attention,
    "causal": _causal,
    "convolution": _convolution,
    "depthwise": _depthwise,
    "perceptron": lambda w, _, v: w.layers(v["x"], _parameters(v)),
    "gradients": _gradients,
    "gather": lambda w, _, v: w("Gather", v["tab"], v["idx"]),
    "scatter": _scatter,
    "block": _block,
}
