"""What is grouped over rows stands where all that it reads does, and all that reads it finds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import mind_mlir
from mind_mlir import Builder, DType, TensorType
from mind_mlir.lowering.pipeline import Lowering

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir import Module, Value
    from mind_mlir.ir.module import CoreOperation


def given(b: Builder, name: str, *shape: int) -> Value:
    return b.input(name, TensorType(DType.F32, shape))


def reduced(b: Builder, x: Value, *axes: int, kind: str = "Sum") -> Value:
    return b.emit(
        "Reduce", x, axes=axes, keepdims=True, kind=kind, accum_dtype=DType.F32, out_dtype=DType.F32
    )


def like(b: Builder, x: Value, *shape: int) -> Value:
    return b.emit("BroadcastTo", x, result_shape=shape)


def sum_beside_rows() -> Module:
    """A sum over the rows that is read where the sums of the rows, which it goes with, are not."""
    b = Builder()
    x = given(b, "x", 64, 32)
    along, over = reduced(b, x, 1), reduced(b, x, 0)
    return b.build([b.emit("Sub", x, like(b, over, 64, 32)), b.emit("Sub", x, like(b, along, 64, 32))])


def reshape_of_a_reshape() -> Module:
    """Of two reshapes of the numbers of rows, the second alone is read from outside of the program."""
    b = Builder()
    x = given(b, "x", 4, 1, 33)
    along = reduced(b, x, 2)
    return b.build([like(b, along, 4, 1, 33), b.emit("Reshape", along, new_shape=(4, 1, 1, 1))])


def groups_brought_together() -> Module:
    """A group that reads a product takes in one that stands before it.

    What brings them together reads a third one, too, which is too long to join them. All three become parts
    of the program over the rows.
    """
    b = Builder()
    x, y, w = given(b, "x", 64, 32), given(b, "y", 64, 32), given(b, "w", 32, 32)
    along = reduced(b, x, 1)
    bound = like(b, b.emit("Mul", along, reduced(b, x, 1, kind="Max")), 64, 32)
    before = b.emit("Tanh", y)
    long = b.emit("Mul", x, like(b, along, 64, 32))
    for number in range(45):
        long = b.emit(("Abs", "Sqrt")[number % 2], long)
    product = b.emit("MatMul", x, w)
    return b.build([b.emit("Select", b.emit("Compare", product, bound, op="Less"), before, long)])


@pytest.mark.parametrize("program", [sum_beside_rows, reshape_of_a_reshape, groups_brought_together])
def test_what_is_grouped_over_rows(program: Callable[[], Module]) -> None:
    module = program()
    lowering = Lowering()
    lowering.run(module, until="scheduled")
    assert lowering.mlir is not None
    lowering.mlir.operation.verify()  # what a nest reads stands before it
    generator = np.random.default_rng(5)
    values = {
        name: np.asarray(generator.standard_normal(_shape(each)), np.float32)
        for name, each in module.inputs_by_name.items()
    }
    found, expected = mind_mlir.compile(module)(**values), mind_mlir.interpret(module, values)
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)


def _shape(operation: CoreOperation) -> tuple[int, ...]:
    type_ = operation.result_type
    assert isinstance(type_, TensorType)
    return type_.extents
