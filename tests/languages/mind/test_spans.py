"""Every code that a program can cause, in its place; and many mistakes in one program, all of them seen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from name_spans import NAMES
from shape_spans import SHAPES
from surface_marks import differences, findings_of, marked, placed, program
from type_spans import TYPES

import mind_mlir
from mind_mlir.diagnostics import ExecutionError
from mind_mlir.diagnostics.codes import CATALOGUE

if TYPE_CHECKING:
    from collections.abc import Callable

PROGRAMS = {**TYPES, **NAMES, **SHAPES}
#: Facts that only a program of Core IR has: the numbers of its values.
OF_THE_IR = {"id", "value"}
MISTAKES = sorted(Path(__file__).parent.glob("mistakes/*.mind"))


@pytest.mark.parametrize("what", PROGRAMS)
def test_a_mistake_is_reported_where_it_is(what: str) -> None:
    text, marks = marked(PROGRAMS[what])
    assert marks
    findings = findings_of(text)
    assert differences(findings, marks) == []
    for finding in findings:
        facts = set(CATALOGUE[finding.code].context) - OF_THE_IR
        assert facts <= set(finding.context), finding


@pytest.mark.parametrize("path", MISTAKES, ids=lambda path: path.stem)
def test_twenty_mistakes_are_twenty_findings(path: Path) -> None:
    text, marks = marked(path.read_text(encoding="utf-8"), keep=True)
    assert len(marks) >= 20
    assert differences(findings_of(text, path.name), marks) == []


ROWS = """\
fn rows(x: Tensor<f32, [4, 2]>, i: Tensor<i64, [2]>) -> Tensor<f32, [2, 2]> {
    let twice = x * 2.0;
    gather(twice, i)
}
"""


def _compiled(arguments: dict[str, Any]) -> object:
    return mind_mlir.jit(program(ROWS), "rows")(**arguments)


def _interpreted(arguments: dict[str, Any]) -> object:
    return mind_mlir.interpret(program(ROWS), arguments)


@pytest.mark.parametrize("run", [_compiled, _interpreted])
def test_an_index_at_run_time_quotes_its_line(run: Callable[[dict[str, Any]], object]) -> None:
    arguments = {"x": np.zeros((4, 2), np.float32), "i": np.array([0, 5])}
    with pytest.raises(ExecutionError) as caught:
        run(arguments)
    (found,) = caught.value.diagnostics
    assert found.message == "gather: index 5 is out of bounds for axis 0 with extent 4"
    assert str(placed(found)) == "3:5+16 E6001"
