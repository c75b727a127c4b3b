"""Regions carry values of every dtype: Cond, While and Scan, of scalars and of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir
from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.types import DType, TensorType, TupleType
from mind_mlir.languages.ptir.program import (
    Function,
    Instruction,
    Operation,
    Program,
    Region,
    TupleElement,
    ValueRef,
)

if TYPE_CHECKING:
    from mind_mlir.languages.ptir.program import Operand

I1, COUNT = TensorType(DType.I1), TensorType(DType.SI32)
ZERO, ONE, THREE = (TensorLiteral.of(number, DType.SI32) for number in (0, 1, 3))


def said(
    number: int, name: str, *operands: Operand, type_: Any, variant: str | None = None, **fields: Any
) -> Instruction:
    return Instruction(number, Operation(name, variant, fields), operands, type_)


def step(number: int, type_: TensorType, left: int, right: int) -> Instruction:
    """Return a sum; of truth values, which have none, whether they differ."""
    operands = (ValueRef(left), ValueRef(right))
    if type_.dtype is DType.I1:
        return said(number, "Compare", *operands, type_=type_, op="NotEqual")
    return said(number, "ElementwiseBinary", *operands, type_=type_, variant="Add")


def program(type_: TensorType) -> Program:
    """Return ``(x, rows, p) -> (chosen, doubled thrice, (last, sums))``."""
    rows = type_.with_shape((4, *type_.shape))
    same: dict[str, Any] = {"new_shape": type_.shape}
    loop_type, scan_type = TupleType((COUNT, type_)), TupleType((type_, rows))
    body = (
        said(3, "Cond", ValueRef(2), ValueRef(0), type_=type_, true_region=0, false_region=1),
        said(4, "While", ZERO, ValueRef(0), type_=loop_type, cond_region=2, body_region=3),
        said(
            5,
            "Scan",
            ValueRef(0),
            ValueRef(1),
            type_=scan_type,
            body_region=4,
            carry_count=1,
            scan_output_count=1,
        ),
        said(6, "Reshape", TupleElement(4, 1), type_=type_, **same),
    )
    regions = (
        Region(0, (type_,), (step(1, type_, 0, 0),), (type_,)),
        Region(1, (type_,), (said(1, "Reshape", ValueRef(0), type_=type_, **same),), (type_,)),
        Region(
            2,
            (COUNT, type_),
            (
                said(2, "Compare", ValueRef(0), THREE, type_=I1, op="Less"),
                said(3, "Reshape", ValueRef(0), type_=COUNT, new_shape=()),
                said(4, "Reshape", ValueRef(1), type_=type_, **same),
            ),
            (I1, COUNT, type_),
        ),
        Region(
            3,
            (COUNT, type_),
            (
                said(2, "ElementwiseBinary", ValueRef(0), ONE, type_=COUNT, variant="Add"),
                step(3, type_, 1, 1),
            ),
            (COUNT, type_),
        ),
        Region(
            4,
            (type_, type_),
            (step(2, type_, 0, 1), said(3, "Reshape", ValueRef(2), type_=type_, **same)),
            (type_, type_),
        ),
    )
    main = Function("main", (type_, rows, I1), (0, 1, 2), body, (type_, type_, scan_type), (3, 6, 5))
    return Program((main,), regions)


@pytest.mark.parametrize("shape", [(), (3,)])
@pytest.mark.parametrize("dtype", DType)
def test_regions_carry_every_dtype(dtype: DType, shape: tuple[int, ...]) -> None:
    text = program(TensorType(dtype, shape))
    executable = mind_mlir.compile(text)
    rng = np.random.default_rng(dtype.bits)
    for chosen in (True, False):
        x, rows = (rng.integers(0, 2, (*before, *shape)).astype(dtype.numpy) for before in ((), (4,)))
        given = (x, rows, np.array(chosen))
        found = executable(*given)
        expected = mind_mlir.interpret(text, dict(zip(("arg0", "arg1", "arg2"), given, strict=True)))
        for actual, wanted in zip((*found[:2], *found[2]), (*expected[:2], *expected[2]), strict=True):
            assert actual.dtype == wanted.dtype
            assert actual.tobytes() == wanted.tobytes()
        if dtype.is_integer and dtype.bits > 4:
            assert found[1].tolist() == (8 * x.astype(np.int64)).tolist()
