"""Transposes tensors in squares that fit the vector registers.

Squares at the end of a dimension overlap their neighbours rather than be smaller: what is written twice is
written the same.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.bindings import ir
from mind_mlir.lowering.schedule.emission.decision import Choice
from mind_mlir.lowering.schedule.emission.emitter import zero
from mind_mlir.lowering.schedule.emission.shuffle import transpose

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.bindings import Value
    from mind_mlir.lowering.schedule.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.reading.view import Access, Env, View
    from mind_mlir.target import Target

#: Larger squares than this take more registers than there are.
_LARGEST = 16


@dataclasses.dataclass(frozen=True)
class Transposition:
    """A copy whose source and result are contiguous along different loops, all of more than one iteration.

    Attributes:
        view: the operation: one input, one result of the same element type, a body that copies.
        row: the loop along which the source is contiguous.
        column: the loop along which the result is contiguous.
    """

    view: View
    row: int
    column: int


def match_transposition(view: View) -> Transposition | None:
    """Return ``view`` as a transposition if it is one."""
    if len(view.operands) != 2 or view.reductions or not view.extents or 0 in view.extents:
        return None
    last = view.body.operations[len(view.body.operations) - 1].operation
    if list(last.operands) != [view.body.arguments[0]]:
        return None
    if not all(isinstance(operand.type, ir.RankedTensorType) for operand in view.operands):
        return None
    source, result = ([index.dim for index in access] for access in view.accesses)
    dims = set(range(len(view.extents)))
    if set(source) != dims or set(result) != dims or len(source) != len(result):
        return None
    row, column = source[-1], result[-1]
    if row is None or column is None or row == column or 1 in (view.extents[row], view.extents[column]):
        return None
    return Transposition(view, row, column)


class TranspositionEmitter:
    """Emits one transposition."""

    def __init__(self, emitter: Emitter, transposition: Transposition, target: Target) -> None:
        self._e = emitter
        self._t = transposition
        self._view = transposition.view
        element = ir.RankedTensorType(self._view.operands[0].type).element_type
        self._element = element
        smallest = min(self._view.extents[transposition.row], self._view.extents[transposition.column])
        fitting = min(smallest, target.lanes(max(8, element.width)), _LARGEST)
        self._lanes = 1 << (fitting.bit_length() - 1)
        self._vector = emitter.vector_type(self._lanes, element)
        self._padding = emitter.splat(element, zero(element))

    def choices(self) -> tuple[Choice, ...]:
        """Return what is chosen for the nest, and why."""
        square = f"{self._lanes} x {self._lanes}"
        return (Choice("square", square, f"elements of {self._element.width} bits, shuffled in registers"),)

    def emit(self) -> Value:
        """Emit the nest at the insertion point and return the result tensor."""
        shape = list(self._view.operands[1].type.shape)
        result = self._e.empty(shape, self._element)
        outer = [dim for dim in range(len(self._view.extents)) if dim not in (self._t.row, self._t.column)]
        return self._loops(outer, {}, [result])[0]

    def _loops(self, dims: list[int], env: Env, carried: list[Value]) -> list[Value]:
        if dims:
            return self._e.loop(
                (0, self._view.extents[dims[0]], 1),
                carried,
                lambda i, inside: self._loops(dims[1:], env | {dims[0]: i}, inside),
            )
        return self._squares(
            self._t.column,
            carried,
            lambda i, outer: self._squares(
                self._t.row,
                outer,
                lambda j, inner: [self._square(env | {self._t.column: i, self._t.row: j}, inner[0])],
            ),
        )

    def _squares(
        self, dim: int, carried: list[Value], body: Callable[[Index, list[Value]], list[Value]]
    ) -> list[Value]:
        extent = self._view.extents[dim]
        last = extent - self._lanes
        return self._e.loop(
            (0, extent, self._lanes),
            carried,
            lambda i, inside: body(self._e.minimum(i, last) if extent % self._lanes else i, inside),
        )

    def _square(self, env: Env, result: Value) -> Value:
        source = self._view.operands[0]
        rows = [
            self._e.read(self._vector, source, self._place(0, env, self._t.column, lane), self._padding)
            for lane in range(self._lanes)
        ]
        for lane, value in enumerate(transpose(rows)):
            result = self._e.write(value, result, self._place(1, env, self._t.row, lane))
        return result

    def _place(self, operand: int, env: Env, dim: int, lane: int) -> list[Index]:
        """Return the indices of an operand ``lane`` steps along ``dim`` from the corner of a square."""
        access: Access = self._view.accesses[operand]
        here = env | {dim: self._e.add(env[dim], lane)}
        return [index.emit(self._e, here) for index in access]


def through_transposes(view: View) -> View:
    """Return ``view`` reading the sources of transposes instead of their results."""
    operands, accesses, shapes = list(view.operands), list(view.accesses), list(view.shapes)
    for number in range(len(view.inputs)):
        op = None if isinstance(operands[number], ir.BlockArgument) else operands[number].owner
        if op is None or op.name != "linalg.transpose":
            continue
        permutation = list(ir.DenseI64ArrayAttr(op.attributes["permutation"]))
        operands[number] = op.operands[0]
        inverse = [permutation.index(place) for place in range(len(permutation))]
        accesses[number] = tuple(accesses[number][place] for place in inverse)
        shapes[number] = tuple(shapes[number][place] for place in inverse)
    return dataclasses.replace(view, operands=tuple(operands), accesses=tuple(accesses), shapes=tuple(shapes))
