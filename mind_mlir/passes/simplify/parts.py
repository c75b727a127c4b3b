"""Identities of complex numbers and their parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.passes.simplify.pattern import Pattern, beneath

if TYPE_CHECKING:
    from mind_mlir.ir.module import CoreOperation, ValueId
    from mind_mlir.passes.simplify.rewrite import Rewrite


@beneath("Complex")
def _part(at: Rewrite, inner: CoreOperation) -> ValueId:
    return inner.operands[at.operation.opcode == "Imag"]


@beneath("Cast")
def _part_of_real(at: Rewrite, inner: CoreOperation) -> ValueId | None:
    (value,) = inner.operands
    if at.type_of(value).dtype.is_complex:
        return None
    if at.operation.opcode == "Real":
        return at.cast(value, at.type.dtype)
    return at.constant(0.0, at.type.dtype, at.type.extents)


PATTERNS = (
    Pattern("real(complex(x, y)), imag(complex(x, y))", "x, y", "no bit changes", ("Real", "Imag"), _part),
    Pattern(
        "real(cast(x, B)), imag(cast(x, B))",
        "cast(x, C), 0.0",
        "x is real, and C what the parts of B are: a cast to complex numbers rounds as one to their parts",
        ("Real", "Imag"),
        _part_of_real,
        "casts of complex numbers",
    ),
)
