"""Runs a function written with torch and the same in PTIR, forward and backward, and compares them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import mind_mlir
from mind_mlir.builders.builder import Builder
from mind_mlir.ir.module import Functions, Module
from mind_mlir.ir.profiles import PTIR
from mind_mlir.ir.types import DType, TensorType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.ir.value import Value

Array = np.ndarray[Any, np.dtype[Any]]
#: Relative to the greatest magnitude of a result.
TOLERANCE = 2e-5


class Ptir:
    """What a PTIR function is written with: elementwise operations stretch numbers and rows."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder

    def __call__(self, opcode: str, *operands: Value, **attributes: Any) -> Value:
        """Append an operation of one result."""
        return self._builder.emit(opcode, *operands, **attributes)

    def all(self, opcode: str, *operands: Value, **attributes: Any) -> tuple[Value, ...]:
        """Append an operation of several results."""
        return self._builder.emit_all(opcode, *operands, **attributes)

    def stretch(self, value: Value, shape: tuple[int, ...]) -> Value:
        """Append ``value`` broadcast to ``shape``."""
        return value if value.shape == shape else self("BroadcastTo", value, result_shape=shape)

    def number(self, value: float, shape: tuple[int, ...]) -> Value:
        """Append a tensor of ``shape`` that is ``value`` everywhere."""
        return self.stretch(self._builder.constant(value, DType.F32), shape)

    def binary(self, opcode: str, left: Value, right: Value | float) -> Value:
        """Append an operation of two operands, the second of which stretches."""
        shape = tuple(left.type.extents)
        other = self.number(right, shape) if isinstance(right, (int, float)) else self.stretch(right, shape)
        return self(opcode, left, other)

    def reduce(self, kind: str, value: Value, axis: int, *, keepdims: bool = True) -> Value:
        """Append a reduction over one axis."""
        dtypes = {"accum_dtype": value.type.dtype, "out_dtype": value.type.dtype}
        return self("Reduce", value, kind=kind, axes=(axis,), keepdims=keepdims, **dtypes)

    def product(self, left: Value, right: Value, batch: int, contract: tuple[int, int]) -> Value:
        """Append a contraction of one axis each, with the first ``batch`` axes paired."""
        axes = tuple(range(batch))
        lists = {"batch_lhs": axes, "batch_rhs": axes}
        lists |= {"contract_lhs": contract[:1], "contract_rhs": contract[1:]}
        return self("DotGeneral", left, right, **lists, accum_dtype=DType.F32, out_dtype=DType.F32)

    def softmax(self, z: Value) -> Value:
        """Append the contract's stable softmax over the last axis."""
        exponentials = self("Exp", self.binary("Sub", z, self.reduce("Max", z, -1)))
        return self.binary("Div", exponentials, self.reduce("Sum", exponentials, -1))


def agree(
    arrays: Sequence[Array],
    ptir: Callable[..., Value],
    torch_function: Callable[..., Any],
    differentiated: Sequence[int],
    tolerance: float = TOLERANCE,
) -> None:
    """Check that both functions of ``arrays`` have the same result and the same gradients.

    Args:
        arrays: The arguments.
        ptir: From a `Ptir` and a value for each argument to the result.
        torch_function: From a torch tensor for each argument to the result.
        differentiated: Which arguments to differentiate with respect to.
        tolerance: Of the largest difference, relative to the largest magnitude.
    """
    import torch  # noqa: PLC0415 -- collected where torch is not installed, too

    builder = Builder(profile=PTIR.name)
    values = []
    for index, array in enumerate(arrays):
        dtype = DType.from_numpy(array.dtype)
        assert dtype is not None
        values.append(builder.parameter(TensorType(dtype, array.shape), f"x{index}"))
    result = ptir(Ptir(builder), *values)
    module = Module(Functions((builder.function("main", [result]),)), PTIR.name)

    tensors = [
        torch.tensor(array, requires_grad=index in differentiated) for index, array in enumerate(arrays)
    ]
    expected = torch_function(*tensors)
    arguments = {f"x{index}": array for index, array in enumerate(arrays)}
    (found,) = mind_mlir.compile(module)(**arguments)
    _compare(found, expected.detach().numpy(), tolerance, "result")
    if not differentiated:
        return
    seed = np.random.default_rng(5).standard_normal(expected.shape).astype(np.float32)
    expected.backward(torch.tensor(seed))
    wrt = [f"x{index}" for index in differentiated]
    gradient = mind_mlir.differentiate(module, wrt=wrt, cotangents="given")
    (seed_name,) = {parameter.name for parameter in gradient.module.functions["main"].parameters} - set(
        arguments
    )
    _, *slopes = mind_mlir.compile(gradient.module)(**arguments, **{str(seed_name): seed})
    for index, array in zip(differentiated, slopes, strict=True):
        _compare(array, tensors[index].grad.numpy(), tolerance, f"gradient of argument {index}")


def _compare(found: Any, expected: Array, tolerance: float, what: str) -> None:
    array = np.asarray(found)
    assert array.shape == expected.shape, what
    if array.dtype.kind in "iu":
        np.testing.assert_array_equal(array, expected, what)
        return
    scale = max(float(np.abs(expected[np.isfinite(expected)]).max(initial=0)), 1e-30)
    np.testing.assert_allclose(array, expected, rtol=0, atol=tolerance * scale, err_msg=what)
