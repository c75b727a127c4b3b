"""Derivatives through control flow: how large they get, how deep they nest, and what has none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from control import (
    F64,
    INDEX,
    SCALAR,
    TRUTH,
    VECTOR,
    array,
    branch,
    counted,
    evaluate,
    function_builder,
    gradient_of,
    gradient_with_calls,
    module_of,
)

import mind_mlir
from mind_mlir.diagnostics import AutodiffError
from mind_mlir.ir.analysis.call_graph import operations_of
from mind_mlir.ir.regions import MAX_NESTING

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value


def test_a_chain_of_calls_grows_linearly() -> None:
    """f(i) calls f(i-1) twice: 2^40 calls, of 40 functions."""
    sizes = []
    for depth in (20, 40):
        functions: dict[str, Any] = {}
        for level in range(depth):
            b = function_builder(**functions)
            x, y = b.parameter(SCALAR), b.parameter(SCALAR)
            if level == 0:
                result = b.emit("Mul", x, y)
            else:
                half = b.emit("Call", x, y, callee=f"f{level - 1}")
                result = b.emit("Call", half, x, callee=f"f{level - 1}")
            functions[f"f{level}"] = b.function(f"f{level}", [result], public=False)
        b = function_builder(**functions)
        x = b.parameter(SCALAR, "x")
        main = b.function("main", [b.emit("Call", x, x, callee=f"f{depth - 1}")])
        gradient = gradient_with_calls(module_of(main, *functions.values()), ["x"])
        sizes.append(sum(1 for f in gradient.functions for _ in operations_of(f.blocks)))
    assert sizes[1] < 2.2 * sizes[0]


@pytest.mark.parametrize("loop", [True, False])
def test_nested_regions_do_not_grow_exponentially(loop: bool) -> None:
    def size(depth: int) -> int:
        b = function_builder()
        x, n = b.parameter(SCALAR, "x"), b.parameter(INDEX, "n")
        p = b.parameter(TRUTH, "p")

        def nest(value: Value, left: int) -> Value:
            if left == 0:
                return b.emit("Mul", value, value)
            if loop:
                (found,) = counted(b, n, [value], lambda values, _: [nest(values[0], left - 1)])
            else:
                (found,) = branch(b, p, lambda: [nest(value, left - 1)], lambda: [value])
            return b.emit("Exp", found)

        gradient = gradient_of(module_of(b.function("main", [nest(x, depth)])), ["x"])
        return sum(1 for _ in operations_of(gradient.functions["main"].blocks))

    assert size(8) < 4.5 * size(4)  # at most quadratic in the depth


def test_regions_as_deep_as_the_verifier_takes_them() -> None:
    b = function_builder()
    x, p = b.parameter(SCALAR, "x"), b.parameter(TRUTH, "p")

    def nest(value: Value, left: int) -> Value:
        if left == 0:
            return b.emit("Exp", value)
        return branch(b, p, lambda: [nest(value, left - 1)], lambda: [value])[0]

    module = module_of(b.function("main", [nest(x, MAX_NESTING - 1)]))
    _, derivative = evaluate(gradient_of(module, ["x"]), {"x": array(0.5), "p": array(True)})
    np.testing.assert_allclose(derivative, np.exp(0.5))


def test_loops_that_nest_too_deeply_for_their_gradient_are_one_finding() -> None:
    b = function_builder()
    x, n = b.parameter(SCALAR, "x"), b.parameter(INDEX, "n")

    def nest(value: Value, left: int) -> Value:
        if left == 0:
            return b.emit("Mul", value, value)
        return counted(b, n, [value], lambda values, _: [nest(values[0], left - 1)])[0]

    with pytest.raises(AutodiffError) as caught:
        gradient_of(module_of(b.function("main", [nest(x, MAX_NESTING // 2 + 1)])), ["x"])
    (finding,) = caught.value.diagnostics
    assert finding.code == "E5002"
    assert "E4125" in finding.notes[0]


def test_time_and_size_are_linear_in_the_number_of_loops() -> None:
    def size(count: int) -> int:
        b = function_builder()
        x, n = b.parameter(SCALAR, "x"), b.parameter(INDEX, "n")
        value = x
        for _ in range(count):
            (value,) = counted(b, n, [value], lambda values, _: [b.emit("Mul", values[0], values[0])])
        gradient = gradient_of(module_of(b.function("main", [value])), ["x"])
        return sum(1 for _ in operations_of(gradient.functions["main"].blocks))

    small, large = size(5), size(50)
    assert large < 10.5 * small


def test_what_has_no_derivative_is_reported_in_regions_and_callees_all_at_once() -> None:
    leaf = function_builder()
    image = leaf.parameter(VECTOR)
    picture = leaf.emit("Reshape", image, new_shape=(1, 3, 1, 1))
    weight = leaf.constant(np.ones((1, 1, 1, 1)), F64)
    bad = leaf.emit("Conv2d", picture, weight, strides=(1, 1), padding="Valid")
    low = leaf.function("leaf", [leaf.emit("Reshape", bad, new_shape=(3,))], public=False)

    b = function_builder(leaf=low)
    x, n, p = b.parameter(VECTOR, "x"), b.parameter(INDEX, "n"), b.parameter(TRUTH, "p")

    def convolved(value: Value) -> Value:
        picture = b.emit("Reshape", value, new_shape=(1, 3, 1, 1))
        weight = b.constant(np.ones((1, 1, 1, 1)), F64)
        found = b.emit("Conv2d", picture, weight, strides=(1, 1), padding="Valid")
        return b.emit("Reshape", found, new_shape=(3,))

    (y,) = counted(b, n, [x], lambda values, _: [convolved(values[0])])
    (z,) = branch(b, p, lambda: [convolved(y)], lambda: [y])
    module = module_of(b.function("main", [b.emit("Call", z, callee="leaf")]), low)
    with pytest.raises(AutodiffError) as caught:
        gradient_with_calls(module, ["x"])
    codes = [d.code for d in caught.value.diagnostics]
    assert codes == ["E5001"] * 3
    assert all("Conv2d" in d.message for d in caught.value.diagnostics)


_CONVOLVED = """\
func @main(%x: tensor<f32[1, 2, 2, 1]>, %n: tensor<i64[]>) -> (tensor<f32[1, 2, 2, 1]>) {
^entry:
  %zero = ConstI64 {value=0} : tensor<i64[]>
  %one = ConstI64 {value=1} : tensor<i64[]>
  br ^test(%x, %zero)
^test(%s: tensor<f32[1, 2, 2, 1]>, %i: tensor<i64[]>):
  %more = Compare (%i, %n) {op=Less} : tensor<i1[]>
  cond_br %more, ^step, ^end
^step:
  %t = call @blurred (%s) : tensor<f32[1, 2, 2, 1]>
  %w = ConstTensor {dtype=f32, shape=[1, 1, 1, 1], value=[[[[2.0]]]]} : tensor<f32[1, 1, 1, 1]>
  %looped = Conv2d (%t, %w) {strides=[1, 1], padding=Valid} : tensor<f32[1, 2, 2, 1]>
  %j = Add (%i, %one) : tensor<i64[]>
  br ^test(%looped, %j)
^end:
  return %s
}

internal func @blurred(%x: tensor<f32[1, 2, 2, 1]>) -> (tensor<f32[1, 2, 2, 1]>) {
^entry:
  %w = ConstTensor {dtype=f32, shape=[1, 1, 1, 1], value=[[[[2.0]]]]} : tensor<f32[1, 1, 1, 1]>
  %called = Conv2d (%x, %w) {strides=[1, 1], padding=Valid} : tensor<f32[1, 2, 2, 1]>
  return %called
}
"""


def test_findings_say_where_and_what_the_program_calls_it() -> None:
    module = mind_mlir.parse(_CONVOLVED)
    with pytest.raises(AutodiffError) as caught:
        mind_mlir.differentiate(module)
    found = [(d.code, d.location.line, d.message) for d in caught.value.diagnostics if d.location]
    lines = _CONVOLVED.split("\n")
    wanted = [
        1 + next(i for i, line in enumerate(lines) if f"%{name} =" in line) for name in ("looped", "called")
    ]
    assert [code for code, _, _ in found] == ["E5001", "E5001"]
    assert sorted(line for _, line, _ in found) == wanted
    assert sorted(message for _, _, message in found) == [
        f"UnsupportedOp: Conv2d %{name} has no derivative rule" for name in ("called", "looped")
    ]
    gradient = mind_mlir.differentiate(module, extensions=True).module
    values = {"x": np.ones((1, 2, 2, 1), np.float32), "n": array(3)}
    np.testing.assert_array_equal(evaluate(gradient, values)[1], np.full((1, 2, 2, 1), 64.0))
