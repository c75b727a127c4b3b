"""The interpreter: what it checks, what it hands out, and when it lets go of what it holds."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from mind_mlir import ArgumentError, Builder, DType, ExecutionError, TensorType, interpret, parse
from mind_mlir.interpreter import trace
from mind_mlir.ir.attributes import Padding, PaddingMode
from mind_mlir.tools.comparison import first_difference

if TYPE_CHECKING:
    from mind_mlir import Module
    from mind_mlir.ir.attributes import Array

F32 = TensorType(DType.F32, (3,))


def doubled() -> Module:
    b = Builder()
    x = b.input("x", F32)
    return b.build([b.emit("Add", x, x)])


def test_outputs_share_memory_with_nothing() -> None:
    b = Builder()
    x, k = b.input("x", F32), b.constant([1.0, 2.0, 3.0], DType.F32)
    row = b.emit("Reshape", x, new_shape=(1, 3))
    module = b.build([x, x, k, k, row, b.emit("Slice", x, starts=(0,), ends=(2,), steps=(1,))])
    argument = np.ones(3, np.float32)
    outputs = interpret(module, {"x": argument})
    arrays = [argument, *outputs]
    for position, array in enumerate(arrays):
        assert not any(np.shares_memory(array, other) for other in arrays[position + 1 :])
    for output in outputs:
        assert output.flags.c_contiguous
        assert output.flags.writeable
        output[...] = 9
    assert argument.tolist() == [1, 1, 1]
    assert interpret(module, {"x": argument})[2].tolist() == [1, 2, 3]


def test_module_without_inputs_or_outputs() -> None:
    assert interpret(parse(""), {}) == ()
    (value,) = interpret(parse("%0 = ConstI64 {value=7} : tensor<i64[]>\noutputs: %0\n"), {})
    assert (value.shape, value.dtype.name, value.item()) == ((), "int64", 7)


@pytest.mark.parametrize(
    ("arguments", "codes"),
    [
        ({}, ["E6101"]),
        ({"x": np.ones(3, np.float32), "y": np.ones(3)}, ["E6102"]),
        ({"x": np.ones(3)}, ["E6103"]),
        ({"x": np.ones(4, np.float32)}, ["E6104"]),
        ({"x": np.ones(4)}, ["E6103", "E6104"]),
        ({"x": "three"}, ["E6105"]),
    ],
)
def test_arguments_are_checked(arguments: dict[str, Array], codes: list[str]) -> None:
    with pytest.raises(ArgumentError) as caught:
        interpret(doubled(), arguments)
    assert [finding.code for finding in caught.value.diagnostics] == codes


def test_arguments_of_any_layout() -> None:
    spread = np.arange(6, dtype=np.float32)[::2]
    (output,) = interpret(doubled(), {"x": spread})
    assert output.tolist() == [0, 4, 8]


def test_index_out_of_bounds_names_its_statement() -> None:
    text = (
        '%0 = Input {name="x"} : tensor<f32[3]>\n%1 = Index (%0) {indices=[3]} : tensor<f32[]>\noutputs: %1\n'
    )
    with pytest.raises(ExecutionError) as caught:
        interpret(parse(text, "bad.ir"), {"x": np.ones(3, np.float32)})
    assert caught.value.code == "E6001"
    assert str(caught.value.diagnostics[0].location) == "bad.ir:2:1"


@pytest.mark.parametrize("copied", [False, True], ids=["in the output", "on the way"])
def test_memory_that_cannot_be_had(copied: bool) -> None:
    """A pebibyte; a broadcast alone is a view, and needs it only as an output."""
    b = Builder()
    x = b.input("x", TensorType(DType.F32))
    value = b.emit("BroadcastTo", x, result_shape=(1 << 24, 1 << 24))
    if copied:
        value = b.emit("Index", b.emit("Exp", value), indices=(0, 0))
    with pytest.raises(ExecutionError, match="cannot allocate the memory") as caught:
        interpret(b.build([value]), {"x": np.float32(1)})  # a scalar is taken
    assert caught.value.code == "E6004"
    assert caught.value.diagnostics[0].context["shape"] == [[1 << 24, 1 << 24]]


def test_floating_point_exceptions_are_silent() -> None:
    b = Builder()
    x = b.input("x", F32)
    module = b.build([b.emit("Log", x), b.emit("Exp", x), b.emit("Reciprocal", x), b.emit("Sub", x, x)])
    with np.errstate(all="raise"):
        outputs = interpret(module, {"x": np.array([-1, 0, np.inf], np.float32)})
    assert np.isnan(outputs[0][0])
    assert outputs[2][1] == np.inf
    assert np.isnan(outputs[3][2])


@pytest.mark.parametrize("opcode", ["Dot", "MatMul", "Conv2d"])
@pytest.mark.parametrize("special", [np.inf, np.nan])
@pytest.mark.parametrize("inner", [1, 2, 5])
def test_zero_times_infinity_is_nan_in_products(opcode: str, special: float, inner: int) -> None:
    """Libraries of linear algebra leave zeros out; the documents do not."""
    conv = opcode == "Conv2d"
    b = Builder()
    left = b.input("left", TensorType(DType.F64, (1, 3, 1, inner) if conv else (3, inner)))
    right = b.input("right", TensorType(DType.F64, (1, 1, inner, 1) if conv else (inner, 1)))
    attributes: dict[str, Any] = {"strides": (1, 1), "padding": Padding(PaddingMode.VALID)} if conv else {}
    module = b.build([b.emit(opcode, left, right, **attributes)])
    for first, second in ((special, 0.0), (0.0, special)):
        shapes = (left.shape, right.shape)
        arguments = {"left": np.full(shapes[0], first), "right": np.full(shapes[1], second)}
        assert np.isnan(interpret(module, arguments)[0]).all()
        assert first_difference(module, arguments) is None


def test_values_are_dropped_after_their_last_use() -> None:
    """A chain of 20 values of a mebibyte holds two at any time, and what the operation in progress needs."""
    b = Builder()
    value = b.input("x", TensorType(DType.F32, (1 << 18,)))
    for _ in range(20):
        value = b.emit("Neg", value)
    module, argument = b.build([value]), np.ones(1 << 18, np.float32)
    tracemalloc.start()
    try:
        interpret(module, {"x": argument})
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5 << 20


def test_trace_yields_every_operation_in_order() -> None:
    module = doubled()
    values: dict[int, Array] = {}
    steps = []
    for operation, array in trace(module, {"x": np.ones(3, np.float32)}, values):
        values[operation.value_id] = array
        steps.append((operation.opcode, array.tolist()))
    assert steps == [("Input", [1, 1, 1]), ("Add", [2, 2, 2])]
