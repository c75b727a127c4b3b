"""Attention by tiles of AMX, by vector code in the place of its instructions, against the interpreter."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import numpy as np
import pytest
from attention_cases import CAUSAL, arguments_of, attention, check, plain
from tile_model import AMX, TILES

import mind_mlir
from mind_mlir.ir.types import DType
from mind_mlir.lowering.pipeline import Lowering
from mind_mlir.target import host_target, named

if TYPE_CHECKING:
    from mind_mlir.ir.module import Module

CASES = {
    "one block": lambda: attention((1, 2, 32, 32, 32, 32), dtype=DType.BF16),
    "ragged": lambda: attention((2, 1, 67, 96, 64, 40), dtype=DType.BF16),
    "causal": lambda: attention((1, 2, 100, 128, 32, 16), dtype=DType.BF16, hidden=CAUSAL),
    "added": lambda: attention((1, 1, 33, 64, 96, 33), dtype=DType.BF16, mask=(33, 64)),
    "plain": lambda: attention((1, 1, 40, 64, 32, 32), plain, dtype=DType.BF16, turned=True),
    "several blocks of keys": lambda: attention((1, 1, 32, 576, 32, 16), dtype=DType.BF16),
}


@pytest.fixture
def tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine counts as one with tiles, which vector code stands for."""
    if not host_target().masks:
        pytest.skip("the machine has no masks")
    monkeypatch.setattr(named, "host_target", lambda: TILES)


used = pytest.mark.usefixtures("tiles")


def has_tiles(module: Module) -> bool:
    text = mind_mlir.compile(module).as_text("schedule")
    return len(re.findall("tiles of 32 x 32 +fits the tile registers", text)) == 2


@used
@pytest.mark.parametrize("case", CASES)
def test_outputs_are_those_of_the_interpreter(case: str) -> None:
    module = CASES[case]()
    assert has_tiles(module)
    check(module, arguments_of(module))


@used
@pytest.mark.parametrize("hidden", [None, CAUSAL], ids=["all", "causal"])
@pytest.mark.parametrize(
    ("place", "value"), [("arg0", 1e-39), ("arg1", math.inf), ("arg2", math.nan), ("arg2", 1e-39)]
)
def test_awkward_numbers_in_tiles(place: str, value: float, hidden: tuple[str, int, float] | None) -> None:
    module = attention((1, 1, 64, 64, 32, 32), dtype=DType.BF16, hidden=hidden)
    arguments = arguments_of(module)
    arguments[place][0, 0, 60, 3] = value
    check(module, arguments)


@used
def test_both_kinds_of_code_give_the_same_bits() -> None:
    """A value that is subnormal has all be computed without tiles; it is of a column of its own."""
    module = attention((1, 1, 50, 64, 32, 32), dtype=DType.BF16)
    arguments = arguments_of(module)
    (before,) = mind_mlir.compile(module)(**arguments)
    arguments["arg2"][..., 5] = 1e-39
    (found,) = mind_mlir.compile(module)(**arguments)
    rest = np.arange(32) != 5
    np.testing.assert_array_equal(found[..., rest], before[..., rest])


@used
@pytest.mark.parametrize(
    "sizes",
    [(1, 1, 31, 64, 32, 32), (1, 1, 64, 65, 32, 32), (1, 1, 64, 64, 48, 32), (1, 1, 32, 4096, 32, 32)],
    ids=["few queries", "odd keys", "odd depth", "many keys"],
)
def test_what_is_no_whole_tiles_is_computed_otherwise(sizes: tuple[int, int, int, int, int, int]) -> None:
    assert not has_tiles(attention(sizes, dtype=DType.BF16))


def test_code_for_amx_multiplies_tiles() -> None:
    lowering = Lowering(target=AMX)
    lowering.run(CASES["ragged"]())
    assert lowering.text().count("llvm.x86.tdpbf16ps") == 8, "of scores and of outputs, four each"
