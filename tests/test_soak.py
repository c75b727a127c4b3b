"""Several Python threads at once: right answers, and memory that does not grow."""

from __future__ import annotations

import mind_mlir
from benchmarks import soak


def test_many_callers_get_the_right_answers() -> None:
    before = mind_mlir.get_num_threads()
    mind_mlir.set_num_threads(2)
    try:
        found = soak.soak(3.0)
    finally:
        mind_mlir.set_num_threads(before)
    assert found.wrong == 0
    assert found.calls >= 16
    assert found.growth < 64 << 20
