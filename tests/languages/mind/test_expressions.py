"""Expression objects become the modules that the surface language's expressions become."""

from __future__ import annotations

import pickle
import re
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest
from lowered import lowered

import mind_mlir
from mind_mlir import DType, TensorType, VerificationError
from mind_mlir.ir.types import SymbolicDim
from mind_mlir.languages.mind.expression_lowering import SymbolTable
from mind_mlir.languages.mind.expression_text import MAX_DEPTH
from mind_mlir.languages.mind.expressions import BinaryOperation, Call, Expression, Literal, Slice, Variable

if TYPE_CHECKING:
    from collections.abc import Callable

X, Y, N, P = (Variable(name) for name in "xyip")
TABLE = SymbolTable(
    {
        "y": TensorType(DType.F32, (3,)),
        "x": TensorType(DType.F32, (2, 3)),
        "i": TensorType(DType.SI64, (2,)),
        "p": TensorType(DType.I1),
    }
)

#: An array with a dtype is a literal whose type is declared.
ONES = "let c: Tensor<f32, [2]> = [1.0, 1.0];"


def test_variables_that_are_read_are_the_inputs_in_the_order_of_the_table() -> None:
    module = mind_mlir.lower_expression(Call("sum", X * 2.0 - Y, axes=[1], keepdims=True), TABLE)
    assert str(module).splitlines() == [
        '%0 = Input {name="y"} : tensor<f32[3]>',
        '%1 = Input {name="x"} : tensor<f32[2, 3]>',
        "%2 = ConstTensor {dtype=f32, shape=[], value=2.0} : tensor<f32[]>",
        "%3 = Mul (%1, %2) : tensor<f32[2, 3]>",
        "%4 = Sub (%3, %0) : tensor<f32[2, 3]>",
        "%5 = Sum (%4) {axes=[1], keepdims=true} : tensor<f32[2, 1]>",
        "outputs: %5",
    ]


def test_an_object_that_is_used_twice_is_evaluated_once() -> None:
    square = X * X
    assert str(square + square) == "let t1 = x * x;\nt1 + t1"
    module = mind_mlir.lower_expression([square + square, square], TABLE)
    assert [operation.opcode for operation in module.operations] == ["Input", "Mul", "Add"]
    assert len(module.outputs) == 2


def test_modules_compute_what_numpy_does() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    step = X - 0.5 * np.ones(3, np.float32)
    module = mind_mlir.lower_expression([step[:, ::2] @ Literal([[1.0], [2.0]]), -X[1, 0:2]], TABLE)
    product, negative = mind_mlir.interpret(module, {"x": x})
    np.testing.assert_array_equal(product, (x - np.float32(0.5))[:, ::2] @ np.array([[1], [2]], np.float32))
    np.testing.assert_array_equal(negative, -x[1, 0:2])


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: -(X + 1) * (2 - X) / X - (X - (X - 1)), "-(x + 1) * (2 - x) / x - (x - (x - 1))"),
        (lambda: (X + Y) * 2 + Y, "(x + y) * 2 + y"),
        (lambda: BinaryOperation("==", X < 1, Y >= 2), "(x < 1) == (y >= 2)"),
        (lambda: ~(P & (X > 1) | P), "!(p && x > 1 || p)"),
        (lambda: Literal(-1)[0] - Literal(-2.5), "(-1)[0] - -2.5"),
        (lambda: X[0, 1:, ::2, -1:N], "x[0, 1:, ::2, -1:i]"),
        (lambda: (X @ Y)[Slice(1, 2)], "matmul(x, y)[1:2]"),
        (
            lambda: Call("conv2d", X, Y, strides=(1, 1), padding="Same"),
            "conv2d(x, y, strides=[1, 1], padding=Same)",
        ),
        (lambda: Call("sum", [X, Y + 1], keepdims=True), "sum([x, y + 1], keepdims=true)"),
        (lambda: Literal([[True], [False]]), "[[true], [false]]"),
        (lambda: Literal(1, "f64") * X, "let t1: f64 = 1;\nt1 * x"),
        (lambda: np.ones((1, 2)) + Variable("t1"), "let t2: Tensor<f64, [1, 2]> = [[1.0, 1.0]];\nt2 + t1"),
    ],
)
def test_text_is_that_of_the_surface_language(make: Callable[[], Expression], text: str) -> None:
    assert str(make()) == text
    assert str(pickle.loads(pickle.dumps(make()))) == text  # noqa: S301 -- our own


@pytest.mark.parametrize(
    ("expression", "text", "result"),
    [
        (Call("sum", X * 2.0 - Y, axes=[1]) / 0.5, "sum(x * 2.0 - y, axes=[1]) / 0.5", "[2]"),
        (-X[1, ::2] + Literal([1.0, -0.25]), "-x[1, ::2] + [1.0, -0.25]", "[2]"),
        (
            Call("reshape", [X, X], [3, 4]) @ Call("eye", 4),
            "matmul(reshape([x, x], [3, 4]), eye(4))",
            "[3, 4]",
        ),
        (
            Call("gather", Y, N) + np.array([3, 4], np.float32),
            "let c: Tensor<f32, [2]> = [3, 4]; gather(y, i) + c",
            "[2]",
        ),
        (Call("select", P, Y, 0.0), "select(p, y, 0.0)", "[3]"),
    ],
)
def test_a_module_is_that_of_the_same_expression_in_a_program(
    expression: Expression, text: str, result: str
) -> None:
    types = {"y": "Tensor<f32, [3]>", "x": "Tensor<f32, [2, 3]>", "i": "Tensor<i64, [2]>", "p": "bool"}
    words = re.findall(r"\w+", text)
    head = ", ".join(f"{name}: {type_}" for name, type_ in types.items() if name in words)
    program = f"fn main({head}) -> Tensor<f32, {result}> {{ {text} }}"
    assert str(mind_mlir.lower_expression(expression, TABLE)) == str(lowered(program))


@pytest.mark.parametrize(
    ("expression", "code", "quoted", "part"),
    [
        (X + Variable("yy"), "E2002", "yy", "did you mean y?"),
        (Call("summ", X), "E2002", "summ", "did you mean sum?"),
        (X * (Y + N), "E2004", "+", "f32 + i64"),
        (Literal([1.0, 2.0]) - X, "E3001", "-", "2 against 3"),
        (Call("sum", X, axis=1), "E2204", "axis", "did you mean axes?"),
        (X @ X, "E3003", "matmul", "3 and 2"),
        (X & P, "E2001", "x", "bool"),
    ],
)
def test_what_is_wrong_is_quoted_from_the_text(
    expression: Expression, code: str, quoted: str, part: str
) -> None:
    with pytest.raises(VerificationError) as caught:
        mind_mlir.lower_expression(expression, TABLE)
    (finding,) = caught.value.diagnostics
    assert finding.code == code
    assert finding.location is not None
    assert (finding.location.source.text, finding.location.text) == (str(expression), quoted)
    assert part in finding.message


def test_everything_wrong_is_reported_at_once() -> None:
    with pytest.raises(VerificationError) as caught:
        mind_mlir.lower_expression([X + N, Variable("z"), Y], TABLE)
    assert [finding.code for finding in caught.value.diagnostics] == ["E2004", "E2002"]


def test_deep_expressions_are_a_finding_and_long_ones_are_not() -> None:
    deep: Expression = X
    for _ in range(100_000):
        deep = -deep
    assert str(deep).startswith("--")
    with pytest.raises(VerificationError, match="E1109"):
        mind_mlir.lower_expression(deep, TABLE)
    nested: Expression = X
    for _ in range(MAX_DEPTH - 1):
        nested = Call("exp", nested)
    assert len(mind_mlir.lower_expression(nested, TABLE).operations) == MAX_DEPTH
    long: Expression = X
    for _ in range(2_000):
        long = (long + Y) * Y
    assert len(mind_mlir.lower_expression(long, TABLE).operations) == 4_002
    doubled: Expression = X
    for _ in range(1_000):
        doubled = Call("exp", doubled + doubled)
    assert len(mind_mlir.lower_expression(doubled, TABLE).operations) == 2_001


@pytest.mark.parametrize(
    ("call", "error", "part"),
    [
        (lambda: Variable("a b"), ValueError, "identifier"),
        (lambda: Variable("while"), ValueError, "keyword"),
        (lambda: Literal("a"), TypeError, "each element"),
        (lambda: Literal(1j), TypeError, "each element"),
        (lambda: Literal(1.0, "f31"), TypeError, "dtype"),
        (lambda: Literal([[1], [2, 3]]), VerificationError, "ragged"),
        (lambda: BinaryOperation("%", X, Y), ValueError, "operator"),
        (lambda: X + "y", TypeError, "each element"),
        (lambda: bool(X), TypeError, "truth value"),
        (lambda: list(cast("Any", X)), TypeError, "iterable"),
        (lambda: SymbolTable({"x": cast("Any", "f32")}), TypeError, "symbol x must be a TensorType"),
        (lambda: SymbolTable({"if": TensorType(DType.F32)}), ValueError, "keyword"),
        (lambda: SymbolTable({"x": TensorType(DType.F32, (SymbolicDim("n"),))}), ValueError, "numbers"),
    ],
)
def test_mistakes_of_python_are_named(call: Callable[[], Any], error: type[Exception], part: str) -> None:
    with pytest.raises(error, match=part):
        call()
