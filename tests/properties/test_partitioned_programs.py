"""Random programs with random annotations compute in parts what they compute whole."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from budget import examples
from hypothesis import given
from hypothesis import strategies as st
from partition_harness import check_alike

import mind_mlir
from mind_mlir.builders.builder import Builder
from mind_mlir.ir.module import Functions, Module
from mind_mlir.ir.profiles import EXTENDED_FUNCTIONS
from mind_mlir.ir.types import DType, TensorType

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.ir.value import Value

_MESH = "a=2,b=2"
_SHAPES = ((4, 8), (8, 4), (4,), (2, 4, 4), (8, 8), (6, 4))
_AXES = ("*", "a", "b", "a+b", "b+a")


class _Programs:
    """Draws operations: numbers are whole and small, so that the order of sums is nothing."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self.draw, self.builder = draw, Builder(profile=EXTENDED_FUNCTIONS.name)
        shapes = draw(st.lists(st.sampled_from(_SHAPES), min_size=2, max_size=3))
        self.shapes = shapes
        self.values = [
            self.builder.parameter(TensorType(DType.F64, shape), f"x{place}")
            for place, shape in enumerate(shapes)
        ]

    def any(self, least: int = 0) -> Value | None:
        found = [each for each in self.values if len(each.shape) >= least]
        return self.draw(st.sampled_from(found)) if found else None

    def number(self, count: int) -> int:
        return int(self.draw(st.integers(0, count - 1)))

    def step(self) -> None:
        kinds = (
            self.shard,
            self.shard,
            self.add,
            self.multiply,
            self.total,
            self.turned,
            self.cut,
            self.same,
        )
        value = self.draw(st.sampled_from((*kinds, self.joined, self.again, self.scanned, self.greatest)))()
        if value is not None and math.prod(value.shape) <= 512:
            self.values.append(value)

    def shard(self) -> Value | None:
        value = self.any(1)
        if value is None:
            return None
        used: set[str] = set()
        dims = []
        for extent in value.shape:
            axes = self.draw(st.sampled_from(_AXES))
            names = set(axes.split("+")) - {"*"}
            fits = not names & used and extent % 2 ** len(names) == 0
            dims.append(axes if fits else "*")
            used |= names if fits else set()
        return self.builder.emit("Shard", value, mesh=_MESH, sharding=",".join(dims))

    def add(self) -> Value | None:
        one, other = self.any(), self.any()
        assert one is not None
        assert other is not None
        try:
            return self.builder.emit(self.draw(st.sampled_from(("Add", "Sub", "Maximum"))), one, other)
        except mind_mlir.VerificationError:
            return None

    def multiply(self) -> Value | None:
        one, other = self.any(2), self.any(2)
        if one is None or other is None or one.shape[-1] != other.shape[-2]:
            return None
        try:
            return self.small(self.builder.emit("MatMul", one, other))
        except mind_mlir.VerificationError:
            return None

    def small(self, value: Value) -> Value:
        """Return the remainders of numbers, that they do not grow."""
        ten = self.builder.constant(8.0, DType.F64)
        return self.builder.emit(
            "Sub",
            value,
            self.builder.emit("Mul", self.builder.emit("Floor", self.builder.emit("Div", value, ten)), ten),
        )

    def total(self) -> Value | None:
        value = self.any(1)
        keep = self.draw(st.booleans())
        return value and self.builder.emit("Sum", value, axes=(self.number(len(value.shape)),), keepdims=keep)

    def greatest(self) -> Value | None:
        value = self.any(1)
        form: dict[str, Any] = {
            "accum_dtype": DType.F64,
            "out_dtype": DType.F64,
            "keepdims": True,
            "kind": "Max",
        }
        return value and self.builder.emit("Reduce", value, axes=(self.number(len(value.shape)),), **form)

    def turned(self) -> Value | None:
        value = self.any(2)
        return value and self.builder.emit(
            "Transpose", value, permutation=tuple(self.draw(st.permutations(range(len(value.shape)))))
        )

    def cut(self) -> Value | None:
        value = self.any(1)
        if value is None:
            return None
        size = math.prod(value.shape)
        shapes = [each for each in ((size,), (2, -1), (4, -1), (-1, 2, 2), (2, 2, -1)) if size % 4 == 0]
        return (
            self.builder.emit("Reshape", value, new_shape=self.draw(st.sampled_from(shapes)))
            if shapes
            else None
        )

    def same(self) -> Value | None:
        value = self.any(1)
        if value is None:
            return None
        at, ends = self.number(len(value.shape)), list(value.shape)
        ends[at] = max(1, ends[at] // 2)
        zeros = (0,) * len(ends)
        return self.builder.emit("Slice", value, starts=zeros, ends=tuple(ends), steps=(1,) * len(ends))

    def joined(self) -> Value | None:
        value = self.any(1)
        return value and self.builder.emit("Concat", value, value, axis=self.number(len(value.shape)))

    def again(self) -> Value | None:
        """Repeat an operation on a value, which goes round with what is made of it."""
        value = self.any(2)
        if value is None:
            return None
        builder = self.builder
        with builder.region([value.type, TensorType(DType.SI64, ())]) as condition:
            array, index = condition.parameters
            more = builder.emit("Compare", index, builder.constant(2, DType.SI64), op="Less")
            condition.yield_([more, array, index])
        with builder.region([value.type, TensorType(DType.SI64, ())]) as body:
            array, index = body.parameters
            keep = builder.emit("Sum", array, axes=(self.number(len(value.shape)),), keepdims=True)
            least = builder.emit("Minimum", builder.emit("Sub", array, keep), value)
            body.yield_([least, builder.emit("Add", index, builder.constant(1, DType.SI64))])
        first, _ = builder.emit_all(
            "While", value, builder.constant(0, DType.SI64), regions=(condition, body)
        )
        return first

    def scanned(self) -> Value | None:
        """Go over the rows of a value: what is carried, or the rows that are made of it."""
        value = self.any(2)
        if value is None:
            return None
        builder, row = self.builder, value.type.with_shape(value.shape[1:])
        zero = builder.emit("Sum", builder.emit("Sub", value, value), axes=(0,), keepdims=False)
        with builder.region([row, row]) as body:
            carried, given = body.parameters
            body.yield_([builder.emit("Maximum", carried, given), builder.emit("Sub", given, carried)])
        results = builder.emit_all("Scan", zero, value, regions=(body,), carry_count=1, scan_output_count=1)
        return results[self.number(2)]

    def module(self) -> Module:
        for _ in range(self.draw(st.integers(2, 10))):
            self.step()
        results = [self.small(each) for each in self.values[len(self.shapes) :][-3:]] or self.values
        return Module(Functions([self.builder.function("main", results)]), EXTENDED_FUNCTIONS.name)


@examples(60)
@given(st.data())
def test_programs_in_parts_compute_the_same(data: st.DataObject) -> None:
    programs = _Programs(data.draw)
    module = programs.module()
    rng = np.random.default_rng(0)
    arguments = {
        f"x{place}": rng.integers(-4, 5, shape).astype(float) for place, shape in enumerate(programs.shapes)
    }
    check_alike(module, arguments, exact=True)
