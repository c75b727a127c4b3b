"""Gradients of what no Select chooses are exactly 0, whatever the slopes of the branch that is not taken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir
from mind_mlir import Builder, DType, Module, TensorType, differentiate, from_stablehlo, interpret
from mind_mlir.ir.module import Functions
from mind_mlir.ir.profiles import PTIR

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.value import Value

X = np.array([4.0, 0.0, -1.0, 1.0])
T = "tensor<4xf64>"


class Code:
    """Appends operations on vectors of four numbers."""

    def __init__(self) -> None:
        self.builder = Builder(profile=PTIR.name)
        self.x = self.builder.parameter(TensorType(DType.F64, X.shape), "x")

    def __call__(self, opcode: str, *operands: Value, **attributes: Any) -> Value:
        return self.builder.emit(opcode, *operands, **attributes)

    def full(self, number: float) -> Value:
        return self("BroadcastTo", self.builder.constant(number, DType.F64), result_shape=X.shape)

    def is_over(self, number: float) -> Value:
        return self("Compare", self.x, self.full(number), op="Greater")

    def where_over(self, number: float, there: Value, elsewhere: Value) -> Value:
        return self("Select", self.is_over(number), there, elsewhere)

    def module(self, result: Value) -> Module:
        return Module(Functions([self.builder.function("main", [result], public=True)]), PTIR.name)


def root(code: Code) -> Value:
    return code.where_over(0, code("Sqrt", code.x), code.full(0))


def other_branch(code: Code) -> Value:
    return code.where_over(0, code.x, code("Sqrt", code.x))


def nested(code: Code) -> Value:
    """The root of the logarithm where x is over 1; x itself between 0 and 1; else nothing."""
    log = code("Log", code.x)
    inner = code.where_over(1, code("Sqrt", log), code.x)
    return code.where_over(0, inner, code.full(0))


def shared(code: Code) -> Value:
    """The root has a part in two selections by one predicate, which leaves out where it has no slope."""
    is_positive, half = code.is_over(0), code("Sqrt", code.x)
    first = code("Select", is_positive, half, code.full(1))
    second = code("Select", is_positive, code("Mul", half, half), code.x)
    return code("Add", first, second)


def stretched(code: Code) -> Value:
    """What is stretched has a sum as its gradient: of what counts alone."""
    total = code("Reduce", code.x, kind="Sum", axes=(0,), accum_dtype=DType.F64, out_dtype=DType.F64)
    inverse = code("Reciprocal", code.x)
    row = code("BroadcastTo", total, result_shape=X.shape)
    return code.where_over(0, code("Mul", inverse, row), code.full(0))


#: Programs, and their gradients at X.
CASES: dict[str, tuple[Callable[[Code], Value], list[float]]] = {
    "a root": (root, [0.25, 0, 0, 0.5]),
    "in the other branch": (other_branch, [1, np.inf, np.nan, 1]),
    "a nest": (nested, [0.125 / np.sqrt(np.log(4)), 0, 0, 1]),
    "shared": (shared, [1.25, 1, 1, 1.5]),
    "stretched": (stretched, [1.25 - 0.25, 1.25, 1.25, 1.25 - 4]),
}


def gradient_of(module: Module) -> list[Array]:
    """Return the gradient at X, interpreted and compiled."""
    found = differentiate(module).module
    (name,) = (str(each.name) for each in found.functions["main"].parameters)
    return [interpret(found, {name: X})[-1], mind_mlir.compile(found)(**{name: X})[-1]]


@pytest.mark.parametrize("name", CASES)
def test_what_is_not_chosen_has_no_part_in_gradients(name: str) -> None:
    program, expected = CASES[name]
    code = Code()
    for found in gradient_of(code.module(program(code))):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_so_it_is_in_loops() -> None:
    text = f"""
func.func @main(%x: {T}) -> {T} {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %at = %x) : tensor<i32>, {T}
   cond {{
    %three = stablehlo.constant dense<3> : tensor<i32>
    %c = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    %one = stablehlo.constant dense<1> : tensor<i32>
    %zeros = stablehlo.constant dense<0.0> : {T}
    %next = stablehlo.add %i, %one : tensor<i32>
    %p = stablehlo.compare GT, %at, %zeros : ({T}, {T}) -> tensor<4xi1>
    %s = stablehlo.sqrt %at : {T}
    %y = stablehlo.select %p, %s, %at : tensor<4xi1>, {T}
    stablehlo.return %next, %y : tensor<i32>, {T}
  }}
  return %r#1 : {T}
}}"""
    for found in gradient_of(from_stablehlo(text)):
        np.testing.assert_allclose(found, [4**-0.875 / 8, 1, 1, 0.125], rtol=1e-12)


def test_branches_with_plain_slopes_ask_for_no_more_selections() -> None:
    """As `leaky_relu` has them: the gradients of its branches, and no more."""
    code = Code()
    negated = code("Neg", code("Mul", code.x, code.full(0.1)))
    module = differentiate(code.module(code.where_over(0, code.x, negated))).module
    opcodes = [each.opcode for each in module.functions["main"].entry.operations]
    assert opcodes.count("Select") == 3


def test_a_nest_of_selections_has_a_gradient_of_its_size() -> None:
    def size(depth: int) -> int:
        code = Code()
        result = code.x
        for number in range(depth):
            result = code.where_over(number, code("Mul", result, result), code("Sqrt", code.x))
        return len(differentiate(code.module(result)).module.functions["main"].entry.operations)

    assert size(400) < 2.1 * size(200)
