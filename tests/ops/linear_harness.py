"""Runs one operation with its numpy rule, and checks the derivative of operations that are linear.

For a linear operation ``y = A x`` the vector-Jacobian product is the transposed map, so that
``<g, A x> == <A' g, x>`` holds for all x and g: exactly, when all numbers are small integers.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
from harness import Use, assert_agrees, compile_uses, run_numpy, type_of

from mind_mlir import Builder, DType, TensorType, VerificationError
from mind_mlir.interpreter import run as interpret
from mind_mlir.ops.opdef import NotDifferentiable
from mind_mlir.ops.registry import by_opcode
from mind_mlir.ops.vjp import VjpContext

if TYPE_CHECKING:
    from mind_mlir.diagnostics import Diagnostic
    from mind_mlir.ir.value import Value

Array = npt.NDArray[Any]
#: An opcode, its operands and its attributes.
Case: TypeAlias = tuple[str, list[Array], dict[str, Any]]

DTYPES = [np.bool_, np.int32, np.int64, np.float32, np.float64]


def f32(*shape: int) -> TensorType:
    """Return the type of an f32 tensor."""
    return TensorType(DType.F32, shape)


def ramp(*shape: int, dtype: npt.DTypeLike = np.float32) -> Array:
    """Return 0, 1, 2, ... in an array of ``shape``."""
    return np.asarray(np.arange(math.prod(shape)).reshape(shape), dtype)


def shapes_of(rng: np.random.Generator) -> tuple[int, ...]:
    """Return a small random shape."""
    return tuple(map(int, rng.integers(1, 7, rng.integers(0, 4))))


def declare(builder: Builder, arrays: tuple[Array, ...]) -> list[Value]:
    """Declare one input for each array, called a0, a1, ..."""
    values = []
    for index, array in enumerate(arrays):
        dtype = DType.from_numpy(array.dtype)
        assert dtype is not None
        values.append(builder.input(f"a{index}", TensorType(dtype, array.shape)))
    return values


def run(opcode: str, *arrays: Array, **attributes: Any) -> Array:
    """Interpret one operation; checks that the rule leaves its operands alone and keeps its promised type."""
    builder = Builder()
    value = builder.emit(opcode, *declare(builder, arrays), **attributes)
    before = [array.tobytes() for array in arrays]
    (result,) = interpret(builder.build([value]), {f"a{i}": array for i, array in enumerate(arrays)})
    assert [array.tobytes() for array in arrays] == before
    assert result.dtype == value.type.dtype.numpy
    assert result.shape == value.type.extents
    return result


def rejection(opcode: str, *types: TensorType, **attributes: Any) -> tuple[Diagnostic, ...]:
    """Return the findings of an operation that its record rejects."""
    builder = Builder()
    operands = [builder.input(f"a{i}", type_) for i, type_ in enumerate(types)]
    try:
        builder.emit(opcode, *operands, **attributes)
    except VerificationError as error:
        return error.diagnostics
    raise AssertionError(f"{opcode} was accepted")


def integers(rng: np.random.Generator, shape: tuple[int, ...], dtype: npt.DTypeLike = np.float64) -> Array:
    """Return small integers, in whose sums and products a float is exact."""
    return np.asarray(rng.integers(-9, 10, shape), dtype=dtype)


def check_adjoint(opcode: str, *arrays: Array, wrt: tuple[int, ...] = (0,), **attributes: Any) -> None:
    """Check the derivative rule of ``opcode``, which is linear in the operands ``wrt`` taken together."""
    rule = by_opcode()[opcode].derivative
    assert not isinstance(rule, NotDifferentiable)
    builder = Builder()
    operands = declare(builder, arrays)
    result = builder.emit(opcode, *operands, **attributes)
    cotangent = builder.input("g", result.type)
    complete = builder.operations[result.id].attributes
    needs = tuple(index in wrt for index in range(len(arrays)))
    cotangents = rule(VjpContext(builder, tuple(operands), result, cotangent, complete, needs))
    assert [value is not None for value in cotangents] == list(needs)
    wanted = [value for value in cotangents if value is not None]

    rng = np.random.default_rng(0)
    g = integers(rng, result.type.extents, arrays[wrt[0]].dtype)
    inputs = {f"a{i}": array for i, array in enumerate(arrays)} | {"g": g}
    y, *gradients = interpret(builder.build([result, *wanted]), inputs)
    pulled_back = [
        np.sum(np.broadcast_to(arrays[index], np.broadcast_shapes(arrays[index].shape, grad.shape)) * grad)
        for index, grad in zip(wrt, gradients, strict=True)
    ]
    assert np.sum(g * y) == np.sum(pulled_back)
    for index, grad in zip(wrt, gradients, strict=True):
        assert grad.dtype == arrays[index].dtype
        assert np.broadcast_shapes(arrays[index].shape, grad.shape) == grad.shape


def check_compiled(cases: list[Case]) -> None:
    """Compile all cases into one function and check that each result has the numpy rule's bits."""
    uses = [Use(by_opcode()[opcode], tuple(map(type_of, arrays)), attrs) for opcode, arrays, attrs in cases]
    results = compile_uses(uses)([arrays for _, arrays, _ in cases])
    for use, (_, arrays, _), actual in zip(uses, cases, results, strict=True):
        expected = run_numpy(use.record, arrays, use.attributes)
        assert_agrees(use.record, actual, expected, arrays, use.attributes)
        assert actual.tobytes() == expected.tobytes(), str(use)
