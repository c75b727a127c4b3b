"""Large windows in stages: all elements of a window are read once each, and fewer in all."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from harness import run_both

from mind_mlir.ir.types import DType
from mind_mlir.ops.registry import by_opcode
from mind_mlir.ops.sliding import Sliding
from mind_mlir.ops.window_stages import stages

WINDOW = by_opcode()["ReduceWindow"]

#: The windows along each axis, and how many stages they take.
CASES: list[tuple[list[Sliding], int]] = [
    ([Sliding(29, 3), Sliding(31, 3)], 1),
    ([Sliding(29, 5), Sliding(31, 7)], 2),
    ([Sliding(97, 24)], 2),
    ([Sliding(97, 24, 6, 5, 2, spacing=2)], 1),  # so few results share little
    ([Sliding(197, 24, 3, 5, 2, spacing=2)], 2),
    ([Sliding(83, 23)], 1),
    ([Sliding(13, 1, 3), Sliding(61, 25, 1, 3, 3), Sliding(17, 5, 2, base=2)], 3),
    ([Sliding(64, 64)], 1),
    ([Sliding(40, 8, 8), Sliding(40, 8, 8)], 1),
]


@pytest.mark.parametrize(("axes", "count"), CASES, ids=range(len(CASES)))
@pytest.mark.parametrize("reduce", ["Sum", "Max"])
def test_stages(axes: list[Sliding], count: int, reduce: str) -> None:
    found = stages(axes)
    assert len(found) == count
    assert [axis.count for axis in found[-1]] == [axis.count for axis in axes]
    elements = (math.prod(axis.window for axis in stage) for stage in found)
    assert math.prod(elements) == math.prod(axis.window for axis in axes)
    names = {
        "window_dims": "window",
        "strides": "stride",
        "padding_low": "low",
        "padding_high": "high",
        "base_dilation": "base",
        "window_dilation": "spacing",
    }
    lists: dict[str, Any] = {
        name: tuple(getattr(axis, field) for axis in axes) for name, field in names.items()
    }
    x = np.random.default_rng(count).standard_normal([axis.extent for axis in axes])
    run_both(WINDOW, [x], {**lists, "reduce": reduce, "accum_dtype": DType.F64})
    run_both(WINDOW, [(8 * x).astype(np.int32)], {**lists, "reduce": reduce, "accum_dtype": DType.SI32})
