"""`mind-mlir run --seed`: the seed of a program's random operations."""

from __future__ import annotations

import numpy as np
import pytest
from cli_harness import invoke, succeed

from mind_mlir.ops.philox import words

PROGRAM = """\
func @main(%x: tensor<ui32, 2>) -> (tensor<ui32, 3>, tensor<ui32, 2>) {
  %u = rng_uniform shape[3] dtype[ui32] -> tensor<ui32, 3>
  return %u, %x
}
"""


def drawn(seed: int) -> str:
    return ", ".join(str(int(word)) for word in words(seed, 0, 3))


@pytest.mark.parametrize("how", [(), ("--interpret",)], ids=["compiled", "interpreted"])
@pytest.mark.parametrize(
    ("options", "seed"),
    [
        (("--input", "x=[1, 2]"), 0),
        (("--input", "x=[1, 2]", "--seed=7"), 7),
        (("--input=random", f"--seed={2**64 - 1}"), 2**64 - 1),
        (("--input=ones", "--seed=7", "--input", "seed=9"), 9),
    ],
)
def test_the_seed_is_an_option(how: tuple[str, ...], options: tuple[str, ...], seed: int) -> None:
    shown = succeed("run", "-", *how, *options, stdin=PROGRAM).replace(" ", "")
    assert drawn(seed).replace(" ", "") in shown


def test_a_seed_that_does_not_fit() -> None:
    result = invoke("run", "-", "--input=ones", f"--seed={2**64}", stdin=PROGRAM)
    assert result.exit_code == 2
    assert "--seed" in result.stderr


def test_words_are_what_the_recipe_says() -> None:
    assert drawn(0) == ", ".join(str(each) for each in np.array([0x6627E8D5, 0xE169C58D, 0xBC57AC4C]))
