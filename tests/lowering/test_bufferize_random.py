from __future__ import annotations

import numpy as np
import pytest
from native_harness import call, compiled
from random_programs import SHAPES, Generator


@pytest.mark.parametrize("seed", range(60))
def test_random_program(seed: int) -> None:
    text, compute, inputs, results = Generator(seed).program(size=8)
    native = compiled(text, opt_level=0)
    rng = np.random.default_rng(seed)
    arrays = [rng.integers(-4, 5, SHAPES[type_]).astype(np.float32) for type_ in inputs]
    for _ in range(2):  # the second call finds the scratch memory as the first one left it
        outputs = [np.empty(SHAPES[type_], np.float32) for type_ in results]
        call(native, arrays, outputs)
        for output, expected in zip(outputs, compute(arrays), strict=True):
            assert np.array_equal(output, expected)
