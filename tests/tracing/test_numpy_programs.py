"""Usual programs of numpy run as they are written, and give what numpy gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy_programs as programs
import pytest

import mind_mlir
import mind_mlir.numpy as mnp


def _scan(f: Any, init: Any, xs: Any) -> Any:
    ys = []
    for x in xs:
        init, y = f(init, x)
        ys.append(y)
    return init, np.stack(ys)


_RNG = np.random.default_rng(7)
_POINTS, _LABELS = _RNG.standard_normal((40, 3)), _RNG.integers(0, 3, 40)
_WORDS = [np.frombuffer(word.encode(), np.uint8) for word in ("sitting still", "kitten skill")]

PROGRAMS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "k_means": (programs.k_means, (_POINTS, _POINTS[:4])),
    "principal_component": (programs.principal_component, (_POINTS,)),
    "logistic_regression": (programs.logistic_regression, (_POINTS, (_LABELS > 0).astype(np.int32))),
    "bodies": (programs.bodies, (_POINTS[:6], _POINTS[6:12], _RNG.integers(1, 9, 6))),
    "life": (programs.life, (_RNG.integers(0, 2, (12, 9)).astype(np.uint8),)),
    "histogram": (programs.histogram, (_POINTS[:, 0],)),
    "moving_average": (programs.moving_average, (_POINTS[:, 1],)),
    "sudoku": (programs.sudoku, (_RNG.integers(0, 10, (9, 9)).astype(np.int8),)),
    "convolution": (programs.convolution, (_RNG.integers(0, 256, (8, 7)).astype(np.uint8),)),
    "edit_distance": (programs.edit_distance, tuple(_WORDS)),
    "softmax_regression": (programs.softmax_regression, (_POINTS, _LABELS.astype(np.uint8))),
    "escape_times": (programs.escape_times, ()),
    "page_rank": (programs.page_rank, (_RNG.random((7, 7)) < 0.3,)),
}


#: What is given beside arrays: to numpy's program, and to ours.
_MORE: dict[str, tuple[Any, Any]] = {"edit_distance": (_scan, mind_mlir.scan), "escape_times": (12, 12)}
_HAVE_FLOATS = [
    name for name, (_, given) in PROGRAMS.items() if any(each.dtype.kind == "f" for each in given)
]


def results(name: str, dtype: Any) -> list[tuple[Any, Any]]:
    """Return pairs of what a program gives compiled, and by numpy, where its floats are of ``dtype``."""
    function, arrays = PROGRAMS[name]
    arrays = tuple(each.astype(dtype) if each.dtype.kind == "f" else each for each in arrays)
    of_numpy, ours = [[each] if name in _MORE else [] for each in _MORE.get(name, (None, None))]
    wanted = function(np, *of_numpy, *arrays)
    found = mind_mlir.jit(lambda *arrays: function(mnp, *ours, *arrays))(*arrays)
    return list(zip(found, wanted, strict=True))


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_give_numpys_arrays(name: str) -> None:
    for found, wanted in results(name, np.float64):
        assert found.dtype == wanted.dtype
        if found.dtype.kind == "f":
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
        else:
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", _HAVE_FLOATS)
def test_programs_of_f32_stay_in_f32(name: str) -> None:
    """But for what has met no f32: means of truth values, and quotients of integers."""
    for found, wanted in results(name, np.float32):
        if found.dtype.kind == "f":
            assert found.dtype == np.float32 or not found.ndim or name == "histogram"
            np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=1e-5)
        else:
            np.testing.assert_array_equal(found, wanted)
