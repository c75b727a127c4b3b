"""Find a region's results: its last instructions, or a tuple's elements (ptir-formats.md, "JSON")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.ir.types import TupleType
from mind_mlir.languages.ptir.program import TupleElement, ValueRef

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.types import ValueType
    from mind_mlir.languages.ptir.program import Instruction


def region_results(
    body: Sequence[Instruction], results: Sequence[ValueType]
) -> list[ValueRef | TupleElement] | None:
    """Return the values that a region gives, or None where it has too few instructions for its results."""
    last = body[-1] if body else None
    of_last = last.output.elements if last and isinstance(last.output, TupleType) else ()
    if last and results and len(of_last) == len(results) and last.output != results[-1]:
        return [TupleElement(last.id, index) for index in range(len(results))]
    if len(results) > len(body):
        return None
    return [ValueRef(instruction.id) for instruction in body[len(body) - len(results) :]]
