"""Reductions of numbers with their places, as jax writes argmax and argmin: read as one operation."""

from __future__ import annotations

import numpy as np
import pytest

import mind_mlir
from mind_mlir.ir.types import DType
from mind_mlir.languages.stablehlo.rules.types import greatest, least

PROGRAM = """
func.func @main(%x: tensor<6x37x{dtype}>) -> (tensor<{left}x{dtype}>, tensor<{left}x{place}>) {{
  %i = stablehlo.iota dim = {counted} : tensor<6x37x{place}>
  %worst = stablehlo.constant dense<{worst}> : tensor<{dtype}>
  %first = stablehlo.constant dense<0> : tensor<{place}>
  %r:2 = stablehlo.reduce(%x init: %worst), (%i init: %first) across dimensions = [{axis}]
      : (tensor<6x37x{dtype}>, tensor<6x37x{place}>, tensor<{dtype}>, tensor<{place}>)
      -> (tensor<{left}x{dtype}>, tensor<{left}x{place}>)
   reducer(%a: tensor<{dtype}>, %b: tensor<{dtype}>) (%j: tensor<{place}>, %k: tensor<{place}>) {{
    %0 = stablehlo.compare {better}, %a, %b, {how} : (tensor<{dtype}>, tensor<{dtype}>) -> tensor<i1>
    %1 = stablehlo.compare NE, %a, %a, {how} : (tensor<{dtype}>, tensor<{dtype}>) -> tensor<i1>
    %2 = stablehlo.or %0, %1 : tensor<i1>
    %3 = stablehlo.compare EQ, %a, %b, {how} : (tensor<{dtype}>, tensor<{dtype}>) -> tensor<i1>
    %4 = stablehlo.compare {earlier}, %j, %k : (tensor<{place}>, tensor<{place}>) -> tensor<i1>
    %5 = stablehlo.and %3, %4 : tensor<i1>
    %6 = stablehlo.or %2, %5 : tensor<i1>
    %7 = stablehlo.select %2, %a, %b : tensor<i1>, tensor<{dtype}>
    %8 = stablehlo.select %6, %j, %k : tensor<i1>, tensor<{place}>
    stablehlo.return %7, %8 : tensor<{dtype}>, tensor<{place}>
  }}
  return %r#0, %r#1 : tensor<{left}x{dtype}>, tensor<{left}x{place}>
}}
"""
FORMS = {
    DType.F32: ("f32", "FLOAT"),
    DType.BF16: ("bf16", "FLOAT"),
    DType.SI8: ("i8", "SIGNED"),
    DType.UI16: ("ui16", "UNSIGNED"),
    DType.SI64: ("i64", "SIGNED"),
    DType.I1: ("i1", "UNSIGNED"),
}


def text(dtype: DType, kind: str, axis: int, **changes: str) -> str:
    spelled, how = FORMS[dtype]
    worst = least(dtype) if kind == "Max" else greatest(dtype)
    infinity = (
        {"f32": "0xFF800000", "bf16": "0xFF80"} if kind == "Max" else {"f32": "0x7F800000", "bf16": "0x7F80"}
    )
    facts = {
        "dtype": spelled,
        "place": "i32",
        "axis": str(axis),
        "counted": str(axis),
        "left": str((37, 6)[axis]),
        "worst": infinity.get(spelled, str(worst).lower()),
        "better": "GT" if kind == "Max" else "LT",
        "earlier": "LT",
        "how": how,
    }
    return PROGRAM.format(**(facts | changes))


@pytest.mark.parametrize("dtype", FORMS)
@pytest.mark.parametrize("kind", ["Max", "Min"])
def test_they_are_the_first_extreme_and_its_place(dtype: DType, kind: str) -> None:
    rng = np.random.default_rng(4)
    x = rng.integers(0, 2 if dtype is DType.I1 else 9, (6, 37)).astype(dtype.numpy)
    if dtype.is_float:
        x[1, 5] = x[1, 30] = np.nan
        x[2] = np.where(rng.random(37) < 0.5, -0.0, 0.0).astype(dtype.numpy)
        x[3] = least(dtype) if kind == "Max" else greatest(dtype)
    elif dtype is not DType.I1:
        x[1, 7], x[2, 9] = least(dtype), greatest(dtype)
    for axis, place in ((1, "i32"), (0, "i64"), (1, "ui8")):
        module = mind_mlir.from_stablehlo(text(dtype, kind, axis, place=place))
        assert len([op for op in module.functions["main"].entry.operations if op.opcode == "ArgMax"]) == 1
        number, found = mind_mlir.compile(module)(x)
        wide = x.astype(np.float64)
        expected = (np.argmax if kind == "Max" else np.argmin)(wide, axis=axis)
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == np.dtype(
            place.replace("ui", "uint").replace("i", "int").replace("uintnt", "uint")
        )
        chosen = np.take_along_axis(wide, np.expand_dims(expected, axis), axis).squeeze(axis)
        np.testing.assert_array_equal(number.astype(np.float64), chosen)


@pytest.mark.parametrize(
    "changes",
    [{"earlier": "GT"}, {"counted": "0"}, {"worst": "3.0"}, {"how": "TOTALORDER"}, {"better": "GE"}],
)
def test_what_is_anything_else_stays_what_it_is(changes: dict[str, str]) -> None:
    module = mind_mlir.from_stablehlo(text(DType.F32, "Max", 1, **changes))
    operations = [op.opcode for op in module.functions["main"].entry.operations]
    assert "ArgMax" not in operations
    x = np.random.default_rng(2).integers(4, 9, (6, 37)).astype(np.float32)
    number, found = mind_mlir.compile(module)(x)
    np.testing.assert_array_equal(number, x.max(axis=1))
    if changes == {"earlier": "GT"}:
        np.testing.assert_array_equal(found, 36 - x[:, ::-1].argmax(axis=1))
