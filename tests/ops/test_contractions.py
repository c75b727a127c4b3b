"""Dot and MatMul: types and their findings, values against einsum, the linalg form."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest

from mind_mlir import Builder, DType, TensorType, VerificationError
from mind_mlir.interpreter import run as interpret
from mind_mlir.lowering import dialect
from mind_mlir.lowering.dialect.emit import emit
from mind_mlir.lowering.to_linalg import to_linalg
from mind_mlir.mlir.bindings import new_context

if TYPE_CHECKING:
    from mind_mlir.ir.module import Module

Shape = tuple[int, ...]


def product(opcode: str, left: Shape, right: Shape, dtype: DType = DType.F64) -> Module:
    b = Builder()
    x, y = b.input("x", TensorType(dtype, left)), b.input("y", TensorType(dtype, right))
    return b.build([b.emit(opcode, x, y)])


def result_shape(module: Module) -> Shape:
    type_ = module.operations[-1].result_type
    assert isinstance(type_, TensorType)
    return type_.extents


def lowered(module: Module) -> str:
    context = new_context()
    dialect.load(context)
    linalg = to_linalg(emit(module, context)).module
    assert linalg.operation.verify()
    return str(linalg)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ((7,), (7,), ()),
        ((5, 7), (7,), (5,)),
        ((5,), (5, 7), (7,)),
        ((5, 3), (3, 7), (5, 7)),
        ((0,), (0,), ()),
    ],
)
def test_dot_shapes(left: Shape, right: Shape, expected: Shape) -> None:
    assert result_shape(product("Dot", left, right)) == expected


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ((5, 3), (3, 7), (5, 7)),
        ((2, 5, 3), (3, 7), (2, 5, 7)),
        ((5, 3), (4, 3, 7), (4, 5, 7)),
        ((2, 1, 5, 3), (6, 3, 7), (2, 6, 5, 7)),
        ((0, 5, 3), (1, 3, 7), (0, 5, 7)),
        ((2, 5, 0), (0, 7), (2, 5, 7)),
    ],
)
def test_matmul_shapes(left: Shape, right: Shape, expected: Shape) -> None:
    assert result_shape(product("MatMul", left, right)) == expected


@pytest.mark.parametrize(
    ("opcode", "left", "right", "code"),
    [
        ("Dot", (), (3,), "E3002"),
        ("Dot", (3,), (2, 3, 3), "E3002"),
        ("Dot", (3,), (4,), "E3003"),
        ("Dot", (2, 3), (2,), "E3003"),
        ("Dot", (3,), (2, 3), "E3003"),
        ("Dot", (2, 3), (2, 3), "E3003"),
        ("MatMul", (3,), (3, 2), "E3002"),
        ("MatMul", (2, 3), (3,), "E3002"),
        ("MatMul", (2, 3), (2, 3), "E3003"),
        ("MatMul", (4, 2, 1), (4, 3, 5), "E3003"),  # K never broadcasts
        ("MatMul", (2, 5, 3), (3, 3, 7), "E3001"),
        ("MatMul", (2, 4, 5, 3), (2, 2, 3, 7), "E3001"),
    ],
)
def test_findings(opcode: str, left: Shape, right: Shape, code: str) -> None:
    with pytest.raises(VerificationError) as caught:
        product(opcode, left, right)
    assert [d.code for d in caught.value.diagnostics] == [code]
    assert caught.value.diagnostics[0].help


def test_both_ranks_are_reported() -> None:
    with pytest.raises(VerificationError) as caught:
        product("MatMul", (3,), ())
    assert [(d.code, d.context["found"]) for d in caught.value.diagnostics] == [("E3002", 1), ("E3002", 0)]


def test_inner_mismatch_names_both_extents() -> None:
    with pytest.raises(VerificationError) as caught:
        product("MatMul", (2, 3), (4, 5))
    found = caught.value.diagnostics[0]
    assert found.context["extents"] == (3, 4)
    assert "3 and 4" in found.message


@pytest.mark.parametrize("opcode", ["Dot", "MatMul"])
def test_dtypes_must_agree(opcode: str) -> None:
    b = Builder()
    x, y = b.input("x", TensorType(DType.F32, (2, 2))), b.input("y", TensorType(DType.F64, (2, 2)))
    with pytest.raises(VerificationError, match="Dtype mismatch") as caught:
        b.emit(opcode, x, y)
    assert caught.value.code == "E2004"


@pytest.mark.parametrize("opcode", ["Dot", "MatMul"])
def test_booleans_are_not_multiplied(opcode: str) -> None:
    with pytest.raises(VerificationError) as caught:
        product(opcode, (2, 2), (2, 2), DType.I1)
    assert {d.code for d in caught.value.diagnostics} == {"E2005"}


@pytest.mark.parametrize(
    ("left", "right", "subscripts"),
    [
        ((3,), (3,), "k,k->"),
        ((5, 3), (3,), "mk,k->m"),
        ((3,), (3, 4), "k,kn->n"),
        ((5, 3), (3, 4), "mk,kn->mn"),
    ],
)
def test_dot_values(left: Shape, right: Shape, subscripts: str) -> None:
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal(left), rng.standard_normal(right)
    (value,) = interpret(product("Dot", left, right), {"x": x, "y": y})
    np.testing.assert_allclose(value, np.einsum(subscripts, x, y), rtol=1e-13)


def test_matmul_values_of_a_broadcast_batch() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((2, 1, 5, 3)), rng.standard_normal((4, 3, 7))
    (value,) = interpret(product("MatMul", x.shape, y.shape), {"x": x, "y": y})
    expected = np.zeros((2, 4, 5, 7))
    for a, b, i, j in itertools.product(range(2), range(4), range(5), range(7)):
        expected[a, b, i, j] = sum(x[a, 0, i, k] * y[b, k, j] for k in range(3))
    np.testing.assert_allclose(value, expected, rtol=1e-13)


@pytest.mark.parametrize("dtype", [DType.SI32, DType.SI64])
def test_integers_wrap(dtype: DType) -> None:
    largest = np.iinfo(dtype.numpy).max
    x = np.full((1, 2), largest, dtype.numpy)
    (value,) = interpret(product("MatMul", (1, 2), (2, 1), dtype), {"x": x, "y": x.T.copy()})
    assert value.tolist() == [[2]]  # (2^(w-1) - 1)^2 is 1 modulo 2^w


def test_an_empty_sum_is_zero() -> None:
    x, y = np.zeros((2, 3, 0)), np.zeros((0, 4))
    (value,) = interpret(product("MatMul", x.shape, y.shape), {"x": x, "y": y})
    np.testing.assert_array_equal(value, np.zeros((2, 3, 4)))


@pytest.mark.parametrize(
    ("opcode", "left", "right", "operation"),
    [
        ("Dot", (7,), (7,), "linalg.dot "),
        ("Dot", (5, 7), (7,), "linalg.matvec "),
        ("Dot", (5,), (5, 7), "linalg.vecmat "),
        ("Dot", (5, 3), (3, 7), "linalg.matmul "),
        ("MatMul", (5, 3), (3, 7), "linalg.matmul "),
        ("MatMul", (2, 5, 3), (2, 3, 7), "linalg.batch_matmul "),
        ("MatMul", (2, 6, 5, 3), (2, 6, 3, 7), "linalg.batch_matmul "),
        ("MatMul", (2, 6, 5, 3), (3, 7), "linalg.matmul "),
        ("MatMul", (1, 5, 3), (1, 1, 3, 7), "linalg.matmul "),
        ("MatMul", (5, 3), (4, 3, 7), "linalg.generic "),
    ],
)
def test_linalg_form(opcode: str, left: Shape, right: Shape, operation: str) -> None:
    text = lowered(product(opcode, left, right))
    assert operation in text
    assert text.count("linalg.") == 2 + text.count("linalg.yield"), text  # the fill and the contraction


def test_broadcast_maps_are_projected_permutations() -> None:
    text = lowered(product("MatMul", (2, 1, 5, 3), (1, 4, 3, 7)))
    maps = [line for line in text.splitlines() if line.startswith("#map")]
    assert maps == [
        "#map = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d4)>",
        "#map1 = affine_map<(d0, d1, d2, d3, d4) -> (d1, d4, d3)>",
        "#map2 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>",
    ]


@pytest.mark.parametrize("shapes", [((2, 0), (0, 3)), ((0, 2), (2, 3)), ((2, 0, 4), (4, 3))])
def test_empty_operands_need_no_loop(shapes: tuple[Shape, Shape]) -> None:
    text = lowered(product("MatMul", *shapes))
    assert "linalg.fill" in text
    assert "matmul" not in text
