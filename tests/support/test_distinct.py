"""`distinct` gives what numpy's function of sets gives."""

from __future__ import annotations

import numpy as np
import pytest

from mind_mlir.support.distinct import distinct


@pytest.mark.parametrize("numbers", [[], [3], [5, 5], [4, -1, 4, 9, -1, 0], [2**62, -(2**62), 2**62]])
def test_numbers(numbers: list[int]) -> None:
    array = np.array(numbers, np.int64)
    assert distinct(array).tolist() == np.unique(array).tolist()


@pytest.mark.parametrize("rows", [[[1, 2]], [[3, 1], [1, 9], [3, 1], [1, 2], [3, 0]]])
def test_rows(rows: list[list[int]]) -> None:
    array = np.array(rows, np.int64)
    assert distinct(array).tolist() == np.unique(array, axis=0).tolist()
