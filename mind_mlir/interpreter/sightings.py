"""What there is to say about a NaN or an infinity: where it is made, of what, and within what (E6006)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mind_mlir.diagnostics import Diagnostic
from mind_mlir.ir.types import TensorType
from mind_mlir.ops.numbers import dtype_of, widened
from mind_mlir.ops.registry import by_opcode
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.diagnostics import Location
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import CoreOperation

NAN, INFINITY = "a NaN", "an infinity"
FINITE, INFINITIES = "finite numbers", "infinities"
_HELP = "bound what it is given, as with maximum(x, 1e-6)"
#: So operations are called that a gradient has appended.
_DERIVED = "in the derivative of "


class RunningWithin(NamedTuple):
    """A loop, branch or call that an operation runs within.

    Attributes:
        operation: The loop, branch or call.
        target: The region by its number, or the function by its name.
        runs: How often that has begun to run for it.
    """

    operation: CoreOperation
    target: int | str
    runs: int


@dataclass(frozen=True, slots=True, eq=False)
class Sighting:
    """A NaN or an infinity where it is made.

    Attributes:
        operation: What makes it.
        what: Which of the two it is.
        index: The first such element of a result.
        count: How many there are.
        operands: What the operation is given.
        result: The result.
        around: What it runs within, the outermost first.
        given: What it is made of: `FINITE` numbers, or `INFINITIES`.
    """

    operation: CoreOperation
    what: str
    index: tuple[int, ...]
    count: int
    operands: tuple[Array, ...]
    result: Array
    around: tuple[RunningWithin, ...]
    given: str

    def finding(self, later: Sighting | None = None) -> Diagnostic:
        """Return what there is to say about it, and what made a NaN of it ``later``."""
        operation = self.operation
        # Calls that are written nowhere only hand on what a program is called with.
        written = [each for each in reversed(self.around) if each.operation.location is not None]
        notes = [*self._operands(), *map(_around, written)]
        if self.result.size > 1:
            notes.append(f"of the {self.result.size:,} elements of its result, {self.count:,} are so")
        if later is not None:
            place = _file_place(later.operation.location)
            notes.append(f"{later._said()} of it{place}")
        if operation.origin and operation.origin.startswith(_DERIVED):
            notes.insert(0, "this is the line whose derivative it is part of: it runs when gradients go back")
        return Diagnostic(
            "E6006",
            f"{self._said()}, of {self.given}",
            operation.location,
            tuple(notes),
            _HELP,
            context=facts_of(operation.opcode, operation.label, self.index, self.what),
        )

    def _said(self) -> str:
        return f"{self.operation.opcode} {self.operation.label} makes {self.what}{place_of(self.index)}"

    def _operands(self) -> list[str]:
        notes = []
        by_element = is_elementwise(self.operation)
        for number, operand in enumerate(self.operands):
            known = _summary(operand)
            if by_element and operand.ndim:
                known = f"{np.broadcast_to(operand, self.result.shape)[self.index]!s} there; it is {known}"
            notes.append(f"operand {number} is {known}")
        return notes


def is_elementwise(operation: CoreOperation) -> bool:
    """Return whether each element of the result is computed of those at its place."""
    return by_opcode()[operation.opcode].vector_operations > 0


def not_finite(array: Array) -> Array | None:
    """Return where an array holds NaN or infinities; None where nowhere, as of what holds no floats."""
    dtype = dtype_of(np.asarray(array))
    if not (dtype.is_float or dtype.is_complex):
        return None
    bad = is_bad(floats_of(array))
    return bad if bad.any() else None


def is_bad(array: Array) -> Array:
    """Return where elements are NaN or infinite."""
    return np.asarray(~np.isfinite(array))


def floats_of(array: Array) -> Array:
    """Return an array as numpy tells whether its elements are finite; zeros for what holds no floats."""
    array = np.asarray(array)
    dtype = dtype_of(array)
    return widened(array) if dtype.is_float or dtype.is_complex else np.zeros(array.shape, np.float32)


def facts_of(operation: str, value: str, index: tuple[int, ...], what: str) -> Mapping[str, object]:
    """Return the facts of E6006."""
    return FrozenDict({"operation": operation, "value": value, "index": index, "found": what})


def _summary(operand: Array) -> str:
    """Return what an operand holds, in short."""
    operand = np.asarray(operand)
    dtype = dtype_of(operand)
    type_ = TensorType(dtype, operand.shape)
    if not dtype.is_float or not operand.size:
        return f"{type_}"
    floats = floats_of(operand)
    known = np.isfinite(floats)
    text = f"{type_}"
    if known.any():
        low = np.unravel_index(np.argmin(np.where(known, floats, np.inf)), floats.shape)
        high = np.unravel_index(np.argmax(np.where(known, floats, -np.inf)), floats.shape)
        ends = [f"{operand[at]!s}{place_of(tuple(map(int, at)))}" for at in (low, high)]
        text += f", from {ends[0]} to {ends[1]}" if operand.size > 1 else f", {operand[low]!s}"
    for what, count in (("NaN", np.isnan(floats).sum()), ("infinite", np.isinf(floats).sum())):
        text += f", {count:,} {what}" if count else ""
    return text


def place_of(index: tuple[int, ...]) -> str:
    """Return an index as messages have it; nothing of a scalar."""
    return f" at [{', '.join(map(str, index))}]" if index else ""


def _around(running: RunningWithin) -> str:
    operation = running.operation
    place = _file_place(operation.location)
    if isinstance(running.target, str):
        return f"in the call of @{running.target}{place}"
    region = by_opcode()[operation.opcode].regions[running.target].name
    return f"in run {running.runs:,} of the region '{region}' of {operation.opcode} {operation.label}{place}"


def _file_place(location: Location | None) -> str:
    return "" if location is None else f", {location.source.name}:{location.line}:{location.column}"
