"""Vectors of truth values in memory, where each is a byte: MLIR would load and store them as bits.

In registers they are masks, which processors compare into and choose by, but hardly move: what only moves and
joins truth values from memory, or makes numbers of them, works on the bytes, which are zeros and ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.mlir.bindings import arith, ir
from mind_mlir.mlir.values import definition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mind_mlir.mlir.bindings import Operation, Type, Value

#: What moves elements between vectors.
_MOVES = ("vector.shuffle", "vector.broadcast")
#: What joins two truth values as it does bytes that are zeros and ones.
_JOINS = ("arith.andi", "arith.ori", "arith.xori", "arith.maxui", "arith.minui")

#: What makes numbers, zeros and ones, of truth values as it does of such bytes.
_NUMBERS = ("arith.extui", "arith.uitofp")


def move_as_bytes(transfers: Iterable[Operation]) -> None:
    """Let those ``transfers`` of vectors that are of truth values move bytes, in a bufferized module."""
    boolean, byte = (ir.IntegerType.get_signless(width) for width in (1, 8))
    bytes_ = _Bytes()
    writes = []
    for op in transfers:
        is_read = op.name == "vector.transfer_read"
        type_ = ir.VectorType((op.results[0] if is_read else op.operands[0]).type)
        if type_.element_type != boolean:
            continue
        if not is_read:
            writes.append(op)
            continue
        with ir.InsertionPoint(op), op.location:
            bytes_.read(op, ir.VectorType.get(type_.shape, byte))
        op.operation.erase()
    bytes_.widen()
    for op in writes:
        with op.location:
            _write(op, bytes_.of(op.operands[0], op))
        op.operation.erase()


class _Bytes:
    """Vectors of truth values as bytes."""

    def __init__(self) -> None:
        self._known: dict[Value, Value] = {}

    def read(self, op: Operation, type_: Type) -> None:
        """Read bytes of ``type_`` in place of ``op``."""
        operands = list(op.operands)
        padding = 1 + len(operands[0].type.shape)
        operands[0] = as_bytes(operands[0])
        operands[padding] = arith.extui(type_.element_type, operands[padding])
        found = ir.Operation.create(op.name, [type_], operands, _attributes(op)).result
        truth = arith.trunci(op.results[0].type, found)
        op.results[0].replace_all_uses_with(truth)
        self._known[truth] = found

    def widen(self) -> None:
        """Let what makes numbers of the truth values that were read make them of the bytes."""
        for truth, found in self._known.items():
            for user in [use.owner for use in truth.uses if use.owner.name in _NUMBERS]:
                if user.results[0].type == found.type:
                    user.results[0].replace_all_uses_with(found)
                else:
                    user.operands[0] = found

    def of(self, value: Value, user: Operation) -> Value:
        """Return the bytes of ``value`` for ``user``; emits them where ``value`` is, or before ``user``."""
        if value not in self._known:
            op = definition(value)
            if op is not None and (op.name in _MOVES or self._are_bytes(value)):
                self._known[value] = self._copied(op)
            else:
                with ir.InsertionPoint(user):
                    return arith.extui(_type_of(value), value)
        return self._known[value]

    def _are_bytes(self, value: Value) -> bool:
        """Return whether ``value`` is made of bytes alone."""
        if value in self._known:
            return True
        op = definition(value)
        if op is None or op.name not in (*_MOVES, *_JOINS):
            return op is not None and op.name == "arith.constant"
        return all(not _is_vector(each) or self._are_bytes(each) for each in op.operands)

    def _copied(self, op: Operation) -> Value:
        """Emit the same as ``op`` of bytes, behind it."""
        vectors = {each: self.of(each, op) for each in op.operands if _is_vector(each)}
        type_ = _type_of(op.results[0])
        with ir.InsertionPoint(op), op.location:
            operands = [vectors.get(each) or arith.extui(type_.element_type, each) for each in op.operands]
            if op.name == "arith.constant":
                return arith.extui(type_, op.results[0])
            return ir.Operation.create(op.name, [type_], operands, _attributes(op)).result


def _is_vector(value: Value) -> bool:
    return isinstance(value.type, ir.VectorType)


def _type_of(value: Value) -> Type:
    return ir.VectorType.get(ir.VectorType(value.type).shape, ir.IntegerType.get_signless(8))


def _write(op: Operation, value: Value) -> None:
    _, buffer, *rest = op.operands
    with ir.InsertionPoint(op):
        ir.Operation.create(op.name, [], [value, as_bytes(buffer), *rest], _attributes(op))


def as_bytes(buffer: Value) -> Value:
    """Return ``buffer`` as bytes if it is of truth values: in the LLVM dialect it is that anyway."""
    type_ = ir.MemRefType(buffer.type)
    if type_.element_type != ir.IntegerType.get_signless(1):
        return buffer
    seen = ir.MemRefType.get(type_.shape, ir.IntegerType.get_signless(8), type_.layout, type_.memory_space)
    return ir.Operation.create("builtin.unrealized_conversion_cast", [seen], [buffer]).result


def _attributes(op: Operation) -> dict[str, ir.Attribute]:
    return {name: op.attributes[name] for name in op.attributes}
