"""The decisions of a scheduler as text for people: what `--emit=schedule` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.lowering.schedule.emission.decision import Computed, Decision, Decisions, Region
from mind_mlir.mlir.locations import label_of, place_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mind_mlir.diagnostics.checks import Place
    from mind_mlir.mlir.bindings import MLIRLocation
    from mind_mlir.target import Target

#: What the program calls each operation, by the label of its value and its place.
Opcodes: TypeAlias = "Mapping[tuple[str, Place | None], str]"

_INDENT = "  "


def listing(decisions: Decisions, target: Target, opcodes: Opcodes) -> str:
    """Return one paragraph a nest, in the order of the program, under the target that all were chosen for.

    Args:
        decisions: What was decided.
        target: The processor.
        opcodes: Names for the operations; others go by the name that MLIR gives them.
    """
    names = _Names(opcodes)
    lines = [f"target: {_target(target)}"]
    number = 0
    for entry in decisions.in_order():
        indent = _INDENT * entry.depth
        lines.append("")
        if isinstance(entry.what, Decision):
            number += 1
            lines += [f"{indent}{line}" for line in _paragraph(number, entry.what, names)]
        else:
            lines.append(f"{indent}{names.head(entry.what)}")
    return "\n".join(lines) + "\n"


def _paragraph(number: int, decision: Decision, names: _Names) -> Iterator[str]:
    yield f"{number}. {decision.kind} {' x '.join(map(str, decision.extents))}".rstrip()
    for row in _aligned(names.rows(decision.computes)):
        yield f"{_INDENT}{row}"
    for row in _aligned([(choice.name, choice.value, choice.reason) for choice in decision.choices]):
        yield f"{_INDENT * 2}{row}"


class _Names:
    """The names of the operations of a listing."""

    def __init__(self, opcodes: Opcodes) -> None:
        self._opcodes = opcodes

    def rows(self, operations: Sequence[Computed]) -> list[tuple[str, str, str]]:
        """Return value, operation and place of what ``operations`` stem from in the program, each once."""
        rows = [self._row(operation) for operation in operations]
        return list(dict.fromkeys(rows))

    def head(self, region: Region) -> str:
        """Return the line above what stands in ``region``."""
        if region.owner.operation == "func.func":
            return f"func @{region.name}"
        value, operation, place = self._row(region.owner)
        return f"{f'{value} {operation} {place}'.strip()}, {region.name}"

    def _row(self, operation: Computed) -> tuple[str, str, str]:
        location: MLIRLocation = operation.location
        label, place = label_of(location) or "", place_of(location)
        opcode = self._opcodes.get((label, place), operation.operation)
        return label, opcode, "" if place is None else ":".join(map(str, place))


def _aligned(rows: Sequence[tuple[str, str, str]]) -> list[str]:
    """Return ``rows`` with their columns aligned; columns that all leave empty take no room."""
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    return [
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True) if width).rstrip()
        for row in rows
    ]


def _target(target: Target) -> str:
    features = [name for name, on in (("fused multiply-add", target.fma), ("masks", target.masks)) if on]
    caches = (target.l1_bytes, target.l2_bytes, target.l3_bytes)
    sizes = ", ".join(f"L{level} {size >> 10} KB" for level, size in enumerate(caches, 1))
    vectors = f"{target.vector_registers} vector registers of {target.vector_bytes} bytes"
    return "; ".join([", ".join([vectors, *features]), sizes])
