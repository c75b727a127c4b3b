"""Where windows lie, as plain numbers (shapes.md, "Convolution shape inference")."""

from __future__ import annotations

import pytest

from mind_mlir.ir.attributes import Padding, PaddingMode
from mind_mlir.ops.sliding import spatial_padding


@pytest.mark.parametrize(
    ("extent", "kernel", "stride", "expected"),
    [
        (5, 3, 1, (1, 1)),
        (5, 2, 1, (0, 1)),
        (5, 3, 2, (1, 1)),
        (6, 3, 2, (0, 1)),
        (1, 1, 1, (0, 0)),
        (7, 4, 3, (1, 2)),
        (5, 1, 3, (0, 0)),  # windows with gaps between them, the last of which lies inside
        (6, 2, 4, (0, 0)),
        (9, 3, 8, (1, 1)),
    ],
)
def test_same_gives_as_many_windows_as_strides(
    extent: int, kernel: int, stride: int, expected: tuple[int, int]
) -> None:
    padding = Padding(PaddingMode.SAME)
    assert spatial_padding(padding, (extent, 5), (kernel, 3), (stride, 1)) == (expected, (1, 1))
    assert spatial_padding(padding, (5, extent), (3, kernel), (1, stride)) == ((1, 1), expected)
    low, high = expected
    assert (low + extent + high - kernel) // stride + 1 == -(-extent // stride)


def test_other_modes() -> None:
    assert spatial_padding(Padding(PaddingMode.VALID), (5, 5), (3, 3), (1, 1)) == ((0, 0), (0, 0))
    custom = Padding(PaddingMode.CUSTOM, ((1, 2), (3, 4)))
    assert spatial_padding(custom, (5, 5), (3, 3), (1, 1)) == ((1, 2), (3, 4))
