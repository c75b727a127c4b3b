"""Results of random programs are the same bits at any number of threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from budget import examples
from counted import compile_counted
from eager_chunks import eager_chunks
from growth import LARGE
from hypothesis import given
from hypothesis import strategies as st
from programs import Program, programs

import mind_mlir

if TYPE_CHECKING:
    from collections.abc import Iterator

COUNTS = (1, 2, 3, 4)


@pytest.fixture(scope="module", autouse=True)
def shared_loops() -> Iterator[None]:
    """Threads share the loops of small programs, too."""
    before = mind_mlir.get_num_threads()
    with eager_chunks():
        yield
    mind_mlir.set_num_threads(before)


def bits(executable: mind_mlir.Executable, program: Program, seed: int, threads: int) -> list[bytes]:
    mind_mlir.set_num_threads(threads)
    return [output.tobytes() for output in executable(**program.arguments(seed))]


def check(program: Program, seed: int) -> None:
    executable = compile_counted(program.module)
    alone, *others = (bits(executable, program, seed, threads) for threads in COUNTS)
    assert all(found == alone for found in others)


@examples(96)
@given(programs(size=8), st.integers(0, 99))
def test_small_programs(program: Program, seed: int) -> None:
    check(program, seed)


@examples(36)
@given(programs(size=8, sizes=LARGE), st.integers(0, 99))
def test_large_programs(program: Program, seed: int) -> None:
    check(program, seed)


def test_small_programs_share_their_loops() -> None:
    """What the tests above rest on."""
    text = '%0 = Input {name="x"} : tensor<f32[9, 500]>\n%1 = Exp (%0) : tensor<f32[9, 500]>\noutputs: %1\n'
    assert "mind.parallel" in mind_mlir.compile(mind_mlir.parse(text)).as_text("scheduled")
