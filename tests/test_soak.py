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


def test_compilations_are_looked_at_from_the_first_to_the_last() -> None:
    stretches = soak.soak_compiler(20)
    assert [each.first for each in stretches] == [2, 9, 18]
    assert all(0 < each.seconds < 60 and each.resident > 1 << 20 for each in stretches)


def test_programs_of_a_soak_are_no_two_alike() -> None:
    programs = [str(soak.small_program(number)) for number in range(12)]
    assert len(set(programs)) == len(programs)
