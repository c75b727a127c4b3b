"""Updates that are prepared in vectors, a block at a time, before they are added one by one.

Where an update belongs, and what it is, is arithmetic on elements that lie side by side: that is done in
vectors and kept in the first-level cache. What is looked up at a computed place is looked up one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.linalg_view.values import copied, repeat
from mind_mlir.mlir.bindings import Operation, Type, Value, arith, ir
from mind_mlir.mlir.values import constant_of, definition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.emission.emitter import Emitter, Index
    from mind_mlir.lowering.schedule.movement.scatter_body import ScatterBody

#: Bits of the least numbers that memory has.
_BYTE = 8

#: Bits of integers, and of floats, that are computed with in vectors. What narrower integers are clamped to
#: they mostly are by nature.
_WIDE_INTEGER, _WIDE_FLOAT = 32, 16

#: Updates in a block.
BLOCK = 256


class UpdateBlocks:
    """Emits blocks of updates.

    Args:
        emitter: Emits.
        body: What the loop does with one update.
        ends: What is wanted of each update.
        lanes: How many updates are prepared at once.
    """

    def __init__(self, emitter: Emitter, body: ScatterBody, ends: Sequence[Value], lanes: int) -> None:
        self._e, self._body, self._lanes, self._ends = emitter, body, lanes, ends
        #: What is the same for all updates, and what is computed in vectors.
        self._uniform: list[Operation] = []
        self._vectors: list[Operation] = []
        self._singles: list[Operation] = []
        varying: set[Value] = {body.number, body.column}
        vectors: set[Value] = set()
        needed = _needed(body.operations, ends)
        for op in needed:
            if not any(value in varying for value in op.operands):
                self._uniform.append(op)
                continue
            varying.update(op.results)
            if self._in_vectors(op, varying, vectors):
                self._vectors.append(op)
                vectors.update(op.results)
            else:
                self._singles.append(op)
        read = [*(value for op in self._singles for value in op.operands), *ends]
        repeated = [value.owner for value in read if value in vectors and _is_repeated(value.owner)]
        for op in repeated:  # what these read, in turn
            source = op.operands[0]
            repeated += [source.owner] if source in vectors and _is_repeated(source.owner) else []
        self._singles = [op for op in needed if op in self._singles or op in repeated]
        read = [*(value for op in self._singles for value in op.operands), *ends]
        self._kept = [each for each in dict.fromkeys(read) if each in vectors and each.owner not in repeated]

    def prepared(self, start: Index) -> tuple[dict[Value, Value], list[Value]]:
        """Emit what a block of updates, from ``start`` on, has in common and what is kept of it."""
        e, lanes = self._e, self._lanes
        same = copied(self._uniform, {})
        empty = [e.empty([BLOCK], _stored(value.type)) for value in self._kept]

        def several(place: Index, inside: list[Value]) -> list[Value]:
            made = self._vector(e.add(start, place), same)
            kept = [_converted(made[each], e.vector_type(lanes, _stored(each.type))) for each in self._kept]
            return [e.write(value, into, [place]) for value, into in zip(kept, inside, strict=True)]

        return same, e.loop((0, BLOCK, lanes), empty, several) if empty else []

    def single(
        self, start: Index, place: Index, prepared: tuple[dict[Value, Value], list[Value]]
    ) -> list[Value]:
        """Emit what is wanted of an update of the block from ``start`` on."""
        e, body, (same, kept) = self._e, self._body, prepared
        made = {**same, body.number: e.index(e.add(start, place)), body.column: e.index(0)}
        for value, stored in zip(self._kept, kept, strict=True):
            made[value] = _converted(e.extract(stored, [place]), value.type)
        made = copied(self._singles, made)
        return [made.get(value, value) for value in self._ends]

    def _in_vectors(self, op: Operation, varying: set[Value], vectors: set[Value]) -> bool:
        """Return whether ``op`` is computed in vectors, which what it reads is, too."""
        if op.name == "tensor.extract":
            return len(op.operands) == 2 and self._counts(op.operands[1]) and _is_wide(op.results[0].type)
        is_ready = all(value in vectors or value not in varying for value in op.operands)
        return op.name.startswith("arith.") and is_ready

    def _counts(self, value: Value) -> bool:
        """Return whether ``value`` is the number of the update."""
        op = definition(value)
        if op is None or len(op.operands) != 2:
            return bool(value == self._body.number)
        first, second = op.operands
        is_same = (op.name == "arith.muli" and constant_of(second) == 1) or (
            op.name == "arith.addi" and second == self._body.column
        )
        return is_same and self._counts(first)

    def _vector(self, start: Index, same: dict[Value, Value]) -> dict[Value, Value]:
        """Emit the values of the updates from ``start`` on that are computed in vectors."""
        e, lanes, made = self._e, self._lanes, dict[Value, Value]()

        def spread(value: Value) -> Value:
            if value in made:
                return made[value]
            return e.broadcast(e.vector_type(lanes, value.type), same.get(value, value))

        for op in self._vectors:
            if op.name == "tensor.extract":
                element = op.results[0].type
                type_, padding = e.vector_type(lanes, element), e.number(element, 0)
                made[op.results[0]] = e.read(type_, op.operands[0], [start], padding)
            else:
                found = repeat(op, [spread(value) for value in op.operands], (lanes,))
                made.update(zip(op.results, found, strict=True))
        return made


def _needed(operations: list[Operation], ends: Sequence[Value]) -> list[Operation]:
    """Return those of ``operations`` that compute ``ends``, in order."""
    wanted, found = set(ends), []
    for op in reversed(operations):
        if any(result in wanted for result in op.results):
            wanted.update(op.operands)
            found.append(op)
    return found[::-1]


def _is_repeated(op: Operation) -> bool:
    """Return whether ``op`` reads, or makes more bits of an integer, as reading does for nothing."""
    is_place = op.name == "arith.index_cast" and isinstance(op.results[0].type, ir.IndexType)
    return is_place or op.name in ("tensor.extract", "arith.extsi")


def _is_wide(type_: Type) -> bool:
    """Return whether numbers of a type, as they are in memory, are computed with in vectors."""
    if isinstance(type_, ir.IntegerType):
        return bool(type_.width >= _WIDE_INTEGER)
    return bool(ir.FloatType(type_).width >= _WIDE_FLOAT)


def _stored(type_: Type) -> Type:
    """Return the type that numbers are kept as; truth values are bytes."""
    if isinstance(type_, ir.IndexType):
        return ir.IntegerType.get_signless(64)
    is_part = isinstance(type_, ir.IntegerType) and type_.width < _BYTE
    return ir.IntegerType.get_signless(_BYTE) if is_part else type_


def _converted(value: Value, type_: Type) -> Value:
    """Emit integers, or indices, as those of another type."""
    if value.type == type_:
        return value
    element = type_.element_type if isinstance(type_, ir.VectorType) else type_
    before = value.type.element_type if isinstance(type_, ir.VectorType) else value.type
    if isinstance(element, ir.IndexType) or isinstance(before, ir.IndexType):
        return arith.IndexCastOp(type_, value).result
    return (arith.ExtUIOp if element.width > before.width else arith.TruncIOp)(type_, value).result
