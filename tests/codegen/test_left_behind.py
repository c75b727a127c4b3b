"""An interrupt while LLVM makes the code of a large module leaves it behind; the next compilation works."""

from __future__ import annotations

import numpy as np
import pytest

import mind_mlir
import mind_mlir.numpy as mnp
from mind_mlir.codegen import ahead, engines
from mind_mlir.codegen.contexts import is_small
from mind_mlir.support.resources import usable_cores


def test_an_interrupt_leaves_llvm_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    def deep(x: np.ndarray[tuple[int, int], np.dtype[np.float32]]) -> mnp.Array:
        found = mnp.asarray(x)
        for number in range(70):
            found = mnp.tanh(found * number + 1) + mnp.cumsum(found, axis=1)
        return found

    if usable_cores() < 2:
        pytest.skip("there is no thread to leave behind")
    lowered = mind_mlir.jit(deep).lower(np.ones((3, 5), np.float32))
    assert not is_small(lowered.module)
    looks = []

    def interrupt() -> None:
        looks.append(1)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(engines, "deliver", interrupt)
        patch.setattr(engines, "_LOOK", 0.0)
        with pytest.raises(KeyboardInterrupt):
            lowered.compile()
    assert looks == [1]
    ahead.finish()  # the threads that were left behind end
    (found,) = lowered.compile()(np.ones((3, 5), np.float32))
    assert np.isfinite(found).all()
