"""Random programs, compiled for other processors than this one, against interpreted."""

from __future__ import annotations

import pytest
from budget import examples
from growth import LARGE
from hypothesis import given
from hypothesis import strategies as st
from programs import Program, programs

from mind_mlir.target import NATIVE, TARGETS, host_target, named_target, runs_here
from mind_mlir.tools.comparison import first_difference

OTHERS = [
    name
    for name in TARGETS
    if runs_here(named_target(name)) and named_target(name).vector_bytes != host_target().vector_bytes
]

pytestmark = pytest.mark.skipif(not OTHERS, reason="this machine runs no code but its own")


@examples(30)
@given(programs(size=14, wild=True), st.sampled_from(OTHERS or [NATIVE]), st.integers(0, 99))
def test_every_operation_agrees_on_awkward_values(program: Program, target: str, seed: int) -> None:
    assert first_difference(program.module, program.arguments(seed, wild=True), target=target) is None


@examples(20)
@given(programs(size=8, sizes=LARGE), st.sampled_from(OTHERS or [NATIVE]), st.integers(0, 99))
def test_large_programs_agree(program: Program, target: str, seed: int) -> None:
    assert first_difference(program.module, program.arguments(seed), target=target) is None
