"""Loops whose length can be seen, compared with counting."""

from __future__ import annotations

import numpy as np
import pytest

from mind_mlir import Builder, DType, TensorType
from mind_mlir.ops.trip_count import trip_count

I64 = DType.SI64
INDEX = TensorType(I64)
COMPARISONS = {
    "Less": np.less,
    "LessEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
    "NotEqual": np.not_equal,
}


def counting(start: int, end: int, step: int, op: str, *, turned: bool, subtract: bool) -> int | None:
    b = Builder(profile="core-functions")
    first, last, by = (b.constant(value, I64) for value in (start, end, step))
    with b.region([INDEX]) as condition:
        (i,) = condition.parameters
        condition.yield_([b.emit("Compare", *((last, i) if turned else (i, last)), op=op), i])
    with b.region([INDEX]) as body:
        (i,) = body.parameters
        body.yield_(b.emit("Sub", i, by) if subtract else b.emit("Add", by, i))
    b.emit_all("While", first, regions=(condition, body))
    return trip_count(b.operations[-1], {first.id: start, last.id: end, by.id: step})


@pytest.mark.parametrize("op", COMPARISONS)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("subtract", [False, True])
def test_it_counts_what_runs(op: str, turned: bool, subtract: bool) -> None:
    for start in range(-3, 4):
        for end in range(-3, 4):
            for step in range(-3, 4):
                value, expected = start, 0
                while expected < 50:
                    sides = (end, value) if turned else (value, end)
                    if not COMPARISONS[op](*sides):
                        break
                    value += -step if subtract else step
                    expected += 1
                found = counting(start, end, step, op, turned=turned, subtract=subtract)
                assert found == (expected if expected < 50 else None)


def test_a_counter_that_wraps_around_is_not_counted() -> None:
    top = 2**63 - 1
    assert counting(0, top, 2, "Less", turned=False, subtract=False) is None
    assert counting(0, top, 1, "LessEqual", turned=False, subtract=False) is None
    assert counting(0, top, 1, "Less", turned=False, subtract=False) == top
