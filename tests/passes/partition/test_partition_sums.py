"""Sums of parts are made once, where they are needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from partition_harness import check_alike, collectives

from mind_mlir.builders.builder import Builder
from mind_mlir.ir.module import Functions, Module
from mind_mlir.ir.profiles import EXTENDED_FUNCTIONS
from mind_mlir.ir.types import DType, TensorType

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.ir.value import Value

_MESH = "a=2,b=2"


def _module(make: Callable[[Builder, Value, Value], Value], axes: tuple[str, str]) -> Module:
    """Return what is made of two products, whose long sums are divided along ``axes``."""
    builder = Builder(profile=EXTENDED_FUNCTIONS.name)
    values = [
        builder.parameter(TensorType(DType.F64, shape), f"x{n}") for n, shape in enumerate(((2, 64), (64, 2)))
    ]
    products = []
    for axis in axes:
        rows = builder.emit("Shard", builder.emit("Exp", values[0]), mesh=_MESH, sharding=f"*,{axis}")
        products.append(builder.emit("MatMul", builder.emit("Neg", rows), values[1]))
    result = make(builder, *products)
    return Module(Functions([builder.function("main", [result])]), EXTENDED_FUNCTIONS.name)


@pytest.mark.parametrize(
    ("make", "axes", "sums"),
    [
        (lambda b, p, q: b.emit("Add", p, q), ("a", "a"), 1),
        (
            lambda b, p, q: b.emit("Sub", b.emit("Neg", p), b.emit("Transpose", q, permutation=(1, 0))),
            ("a", "a"),
            1,
        ),
        (lambda b, p, q: b.emit("Add", p, q), ("a", "b"), 2),
        (lambda b, p, q: b.emit("Mul", p, q), ("a", "a"), 2),
        (lambda b, p, q: b.emit("Sum", b.emit("Add", p, q), axes=(0,)), ("a", "a"), 1),
        (lambda b, p, q: b.emit("Sum", b.emit("Exp", b.emit("Add", p, q)), axes=(0,)), ("a", "a"), 1),
        (lambda b, p, q: b.emit("Add", p, b.emit("Add", q, b.constant(1.0, DType.F64))), ("a", "a"), 2),
    ],
    ids=["added", "subtracted", "along-other-axes", "multiplied", "summed", "not-linear", "with-a-number"],
)
def test_sums_wait_until_they_are_added(
    make: Callable[[Builder, Value, Value], Value], axes: tuple[str, str], sums: int
) -> None:
    rng = np.random.default_rng(1)
    arguments = {"x0": rng.normal(size=(2, 64)), "x1": rng.normal(size=(64, 2))}
    assert collectives(check_alike(_module(make, axes), arguments)) == {"AllReduce": sums}
