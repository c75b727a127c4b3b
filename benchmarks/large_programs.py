"""Large programs by what there is much of: outputs, inputs, reductions, products."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir import Builder, DType, TensorType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mind_mlir import Module

ROW = TensorType(DType.F32, (3,))
MATRIX = TensorType(DType.F32, (4, 5))
#: An extent that no tile divides.
SIDE = 17


def reductions(count: int, *, all_outputs: bool = False) -> Module:
    """Return ``count`` operations in a row, alternately a mean of rows and a subtraction."""
    b = Builder()
    x = b.input("x", MATRIX)
    values = [x]
    for step in range(count):
        last = values[-1]
        mean = step % 2 == 0
        values.append(b.emit("Mean", last, axes=(1,), keepdims=True) if mean else b.emit("Sub", x, last))
    return b.build(values[1:] if all_outputs else values[-1:])


def elementwise_outputs(count: int) -> Module:
    """Return ``count`` elementwise operations in a row, all of them outputs."""
    b = Builder()
    value, y = b.input("x", ROW), b.input("y", ROW)
    outputs = []
    for step in range(count):
        value = b.emit("Sub" if step % 2 else "Mul", value, y)
        outputs.append(value)
    return b.build(outputs)


def passed_through(count: int) -> Module:
    """Return ``count`` inputs that are the outputs."""
    b = Builder()
    return b.build([b.input(f"x{i}", ROW) for i in range(count)])


def summed(count: int) -> Module:
    """Return the sum of ``count`` inputs."""
    b = Builder()
    inputs = [b.input(f"x{i}", ROW) for i in range(count)]
    total = inputs[0]
    for value in inputs[1:]:
        total = b.emit("Add", total, value)
    return b.build([total])


def neighbours(count: int) -> Module:
    """Return the sums of ``count`` inputs with the inputs before them: as many outputs as inputs."""
    b = Builder()
    inputs = [b.input(f"x{i}", ROW) for i in range(count)]
    return b.build([b.emit("Add", value, inputs[i - 1]) for i, value in enumerate(inputs)])


def repeated_output(count: int) -> Module:
    """Return one value as ``count`` outputs."""
    b = Builder()
    return b.build([b.emit("Neg", b.input("x", ROW))] * count)


def products(count: int) -> Module:
    """Return ``count`` small matrix products in a row."""
    b = Builder()
    type_ = TensorType(DType.F32, (SIDE, SIDE))
    value, factor = b.input("x", type_), b.input("w", type_)
    for _ in range(count):
        value = b.emit("MatMul", value, factor)
    return b.build([value])


#: The programs by name.
FAMILIES: Mapping[str, Callable[[int], Module]] = {
    "chained reductions": reductions,
    "reductions, all outputs": lambda count: reductions(count, all_outputs=True),
    "elementwise, all outputs": elementwise_outputs,
    "inputs as outputs": passed_through,
    "sum of inputs": summed,
    "as many outputs as inputs": neighbours,
    "one value as all outputs": repeated_output,
    "small matrix products": products,
}
