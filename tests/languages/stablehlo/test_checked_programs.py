"""Programs that say what they are to give (`programs/`), run as StableHLO's own tests are (`suite.py`)."""

from __future__ import annotations

from pathlib import Path

import pytest
import suite

FILES = sorted((Path(__file__).parent / "programs").glob("*.mlir"))
PROGRAMS = dict(program for path in FILES for program in suite.programs(path))


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_give_what_they_say(name: str) -> None:
    assert suite.guarded(PROGRAMS[name]) == suite.Outcome("pass")


def test_programs_that_give_something_else_fail() -> None:
    program = """
      func.func @main() {
        %0 = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
        check.expect_eq_const %0, dense<[1, 3]> : tensor<2xi32>
        func.return
      }
    """
    assert suite.guarded(program).kind == "fail"
    assert suite.guarded(program.replace("1, 3", "1, 2")).kind == "pass"
