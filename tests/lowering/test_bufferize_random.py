from __future__ import annotations

import numpy as np
import pytest
from guarded import call
from native_harness import compiled
from random_programs import SHAPES, Generator

#: Programs that have found a defect once.
FOUND = [(455, 8), (403, 8), (5115, 14), (5404, 14), (1108, 10)]


@pytest.mark.parametrize(("seed", "size"), [*((seed, 8) for seed in range(60)), *FOUND])
def test_random_program(seed: int, size: int) -> None:
    text, compute, inputs, results = Generator(seed).program(size)
    native = compiled(text, opt_level=0)
    rng = np.random.default_rng(seed)
    arrays = [rng.integers(-4, 5, SHAPES[type_]).astype(np.float32) for type_ in inputs]
    outputs = [np.empty(SHAPES[type_], np.float32) for type_ in results]
    call(native, arrays, outputs)
    for output, expected in zip(outputs, compute(arrays), strict=True):
        assert np.array_equal(output, expected, equal_nan=True)
