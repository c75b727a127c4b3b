"""Forms of MLIR as lines: locations are read and taken out, whatever else a line says."""

from __future__ import annotations

import mind_mlir
from mind_mlir.lowering.pipeline import Lowering
from mind_mlir.mlir.bindings import ir, new_context
from mind_mlir.tools.explorer.mlir_text import mlir_lines
from mind_mlir.tools.explorer.numbering import OperationNumbering

#: Names and strings that look as locations do, and end as these do.
HOSTILE = r"""
%x = Input {name="a loc(#loc1) \"b\" {"} : tensor<f32[4]>
%y = Input {name=" loc(unknown)"} : tensor<f32[4]>
%z = Add (%x, %y) : tensor<f32[4]>
outputs: %z
"""


def test_the_text_is_that_without_locations() -> None:
    numbering = OperationNumbering(mind_mlir.parse(HOSTILE, format="core"))
    for form in ("mind", "linalg", "bufferized", "llvm"):
        lowering = Lowering(traced=True)
        lowering.run(numbering.module, form)
        lines, marks = mlir_lines(lowering.mlir, numbering.of_file)
        assert lines == str(lowering.mlir).splitlines(), form
        assert len(marks) == len(lines)
        assert any(2 in each for each in marks), form
        head = next(
            place for place, line in enumerate(lines) if "func @main(" in line or ".func @main(" in line
        )
        assert marks[head] >= {0, 1} or form == "llvm"


def test_operations_with_regions_are_for_the_same_from_the_first_to_the_last_line() -> None:
    text = """
#fused = loc(fused["ops":6:1, callsite("in"("ops":7:1) at "ops":8:1)])
module {
  func.func @f(%c: i1) {
    scf.if %c {
      %0 = arith.constant 1 : i32 loc("ops":5:1)
    } else {
      %1 = arith.constant {name = "} loc(#loc) {"} 2 : i32 loc(#fused)
    } loc("a name that ends with (" ("ops":3:1))
    return loc("other":9:1)
  } loc("ops":1:1)
}
"""
    with new_context(unregistered=True), ir.Location.unknown():
        module = ir.Module.parse(text)
        lines, marks = mlir_lines(module, lambda file, line: frozenset({line} if file == "ops" else ()))
        assert lines == str(module).splitlines()
    of = dict(zip((line.strip() for line in lines), marks, strict=True))
    assert of["scf.if %arg0 {"] == of["} else {"] == {3}
    assert of["return"] == set()
    assert of["func.func @f(%arg0: i1) {"] == {1}
    assert next(found for line, found in of.items() if "2 : i32" in line) == {6, 7, 8}
    assert next(found for line, found in of.items() if "1 : i32" in line) == {5}
