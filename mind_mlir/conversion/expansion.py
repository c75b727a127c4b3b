"""Expand custom calls to operations for the check of legality."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.builders.builder import Builder
from mind_mlir.conversion.walk import VisitKind, walk_program
from mind_mlir.ir.module import CoreOperation, Functions, Module
from mind_mlir.ir.profiles import PTIR
from mind_mlir.ir.types import SymbolicDim
from mind_mlir.ops.custom_targets import custom_target
from mind_mlir.passes.expand import expanded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.conversion.walk import Visit

CUSTOM_CALL = "CustomCall"


def expansion_of(visit: Visit) -> Sequence[Visit] | None:
    """Return the operations that a custom call is made of; None for one of a C function, or no custom call.

    Where extents are symbolic, which an expansion may depend on, nothing is known, and nothing said.
    """
    record = visit.record
    if record is None or record.opcode != CUSTOM_CALL or record.contract is None:
        return None
    target = custom_target(str(visit.attributes["target"]))
    if target is None or target.expand is None:
        return None
    if any(isinstance(extent, SymbolicDim) for type_ in visit.operands for extent in type_.shape):
        return ()
    attributes = visit.attributes
    if not isinstance(visit.part, CoreOperation) and record.contract.read is not None:
        attributes = record.contract.read(attributes, visit.operands)
    builder = Builder(profile=PTIR.name)
    operands = [builder.parameter(type_, f"x{place}") for place, type_ in enumerate(visit.operands)]
    results = builder.emit_all(CUSTOM_CALL, *operands, **dict(attributes))
    module = Module(Functions((builder.function("main", results),)), PTIR.name)
    return [each for each in walk_program(expanded(module)) if each.kind is VisitKind.OPERATION]
