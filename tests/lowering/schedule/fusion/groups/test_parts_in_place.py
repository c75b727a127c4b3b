"""Parts of a tensor that are updated are written where they lie, unless something still reads these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.ir.attributes import Array


def shifted(x: Any, y: Any) -> Any:
    return y[1:] - y[:-1] * x[1:]


@pytest.mark.parametrize(
    ("update", "copies"),
    [
        (lambda x, y: x.at[1:].add(shifted(x, y)), 0),
        (lambda x, y: (x * y).at[2:4, 1:].set(y[2:4, 1:]) + y, 1),  # of what is set
        (lambda x, y: x.at[1:].add(shifted(x, y) + x[:-1]), 1),  # reads its neighbours, too
    ],
    ids=["a part", "what has had a part replaced", "a part whose neighbours are read"],
)
def test_loops_copy_only_what_is_still_read(update: Callable[[Any, Any], Any], copies: int) -> None:
    @mind_mlir.jit
    def run(x: Any, y: Any) -> Any:
        return mind_mlir.fori_loop(0, 3, lambda _, x: update(x, y), x)

    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((40, 20)).astype(np.float32) for _ in range(2))
    text = run.lower(x, y).as_text("bufferized")
    assert text.partition("memref.copy %arg0")[2].count("memref.copy") == copies
    wanted: Array = x
    for _ in range(3):
        wanted = np.asarray(mind_mlir.jit(update)(wanted, y))
    np.testing.assert_array_equal(run(x, y), wanted)
