"""The types that examples of records spell, and what their ``T`` may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.ir.types import DType, TensorType

if TYPE_CHECKING:
    from mind_mlir.ops.opdef import OpDef


def parse_type(spelled: str, dtype: DType | None) -> TensorType:
    """Return the type an example spells, with ``dtype`` for its ``T``."""
    name, _, extents = spelled.removesuffix("]").partition("[")
    element = dtype if name == "T" else DType.from_name(name)
    assert element is not None, f"{spelled} names no dtype"
    return TensorType(element, tuple(int(extent) for extent in extents.split(",") if extent.strip()))


def dtypes_of(record: OpDef) -> list[DType | None]:
    """Return what ``T`` may be in the record's examples; [None] where no example says ``T``."""
    allowed: list[DType | None] | None = None
    for example in record.examples:
        for index, spelled in enumerate(example.operands):
            if spelled.startswith("T"):
                operand = record.operand(index)
                allowed = [each for each in allowed or operand.dtypes if each in operand.dtypes]
    return [None] if allowed is None else allowed
