"""Constants of a function, each emitted once, and arithmetic of indices.

Indices are ``int | Value``: what is known stays a Python integer until an operation needs it, so constant
arithmetic costs no operations.
"""

from __future__ import annotations

import functools
import math
import operator
from typing import TYPE_CHECKING, Any, TypeAlias

from mind_mlir.mlir.bindings import Attribute, Operation, Type, Value, arith, ir

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Index: TypeAlias = "int | Value"


class Constants:
    """Emits constants at the head of a function's entry block, and arithmetic at the insertion point."""

    def __init__(self, function: Operation) -> None:
        self._entry = function.regions[0].blocks[0]
        self._constants: dict[Attribute, Value] = {}
        self._indices: dict[int, Value] = {}
        self.index_type = ir.IndexType.get()
        self._boolean = ir.IntegerType.get_signless(1)

    def constant(self, type_: Type, attribute: Attribute) -> Value:
        """Return the constant ``attribute``, which is of ``type_``, emitted once a function."""
        value = self._constants.get(attribute)
        if value is None:
            with ir.InsertionPoint.at_block_begin(self._entry), ir.Location.unknown():
                value = arith.ConstantOp(type_, attribute).result
            self._constants[attribute] = value
        return value

    def index(self, value: Index) -> Value:
        """Return ``value`` as an SSA value of type ``index``."""
        if not isinstance(value, int):
            return value
        known = self._indices.get(value)
        if known is None:
            known = self.constant(self.index_type, ir.IntegerAttr.get(self.index_type, value))
            self._indices[value] = known
        return known

    def number(self, type_: Type, value: float) -> Value:
        """Return a number as a constant of a scalar or vector type, of floats or of integers."""
        element = type_.element_type if isinstance(type_, ir.VectorType) else type_
        is_integer = isinstance(element, ir.IntegerType | ir.IndexType)
        kind = ir.IntegerAttr if is_integer else ir.FloatAttr
        return self.splat(type_, kind.get(element, int(value) if is_integer else float(value)))

    def flag(self, value: bool) -> Value:
        """Return a constant of type ``i1``."""
        return self.constant(self._boolean, ir.BoolAttr.get(value))

    def splat(self, type_: Type, element: Attribute) -> Value:
        """Return ``element`` as a constant of ``type_``: of the scalar type itself or of a vector type."""
        if isinstance(type_, ir.VectorType):
            return self.constant(type_, ir.DenseElementsAttr.get_splat(type_, element))
        return self.constant(type_, element)

    def _computed(self, op: Any, known: Callable[[int, int], int], left: Index, right: Index) -> Index:
        """Return what ``op`` makes of two indices, or ``known`` where these are."""
        if isinstance(left, int) and isinstance(right, int):
            return known(left, right)
        return op(self.index(left), self.index(right)).result

    def add(self, left: Index, right: Index) -> Index:
        """Return ``left + right``."""
        if isinstance(left, int) and left == 0:
            return right
        if isinstance(right, int) and right == 0:
            return left
        return self._computed(arith.AddIOp, operator.add, left, right)

    def sub(self, left: Index, right: Index) -> Index:
        """Return ``left - right``."""
        if isinstance(right, int) and right == 0:
            return left
        return self._computed(arith.SubIOp, operator.sub, left, right)

    def mul(self, left: Index, right: int) -> Index:
        """Return ``left * right``."""
        return left if right == 1 else self._computed(arith.MulIOp, operator.mul, left, right)

    def floordiv(self, left: Index, right: int) -> Index:
        """Return ``left // right`` for a non-negative ``left``."""
        return left if right == 1 else self._computed(arith.DivUIOp, operator.floordiv, left, right)

    def modulo(self, left: Index, right: int) -> Index:
        """Return ``left % right`` for a non-negative ``left``."""
        return 0 if right == 1 else self._computed(arith.RemUIOp, operator.mod, left, right)

    def minimum(self, left: Index, right: Index) -> Index:
        """Return the smaller of two non-negative indices."""
        return self._computed(arith.MinUIOp, min, left, right)

    def maximum(self, left: Index, right: Index) -> Index:
        """Return the greater of two non-negative indices."""
        return self._computed(arith.MaxUIOp, max, left, right)

    def compare(self, predicate: str, left: Index, right: Index) -> Value:
        """Return whether ``left`` is to ``right`` as ``predicate``, one of `arith.cmpi`, says."""
        kind = getattr(arith.CmpIPredicate, predicate)
        return arith.CmpIOp(kind, self.index(left), self.index(right)).result

    def all(self, conditions: Sequence[Value]) -> Value:
        """Return whether all of ``conditions``, at least one, hold."""
        return functools.reduce(lambda left, right: arith.AndIOp(left, right).result, conditions)

    def digits(self, number: Index, extents: Sequence[int]) -> list[Index]:
        """Return ``number``, below the product of ``extents``, as an index below each, the fastest first."""
        digits: list[Index] = []
        for place, extent in enumerate(extents):
            is_last = math.prod(extents[place:]) == extent
            digits.append(0 if extent == 1 else number if is_last else self.modulo(number, extent))
            number = 0 if is_last else self.floordiv(number, extent)
        return digits


def zero(element: Type) -> Attribute:
    """Return the attribute of zero of a float or integer element type."""
    if isinstance(element, ir.IntegerType | ir.IndexType):
        return ir.IntegerAttr.get(element, 0)
    return ir.FloatAttr.get(element, 0.0)
