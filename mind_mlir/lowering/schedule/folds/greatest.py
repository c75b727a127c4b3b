"""The greatest or the least term so far, and where it lies: a fold of pairs.

A term takes the place of the best one so far only where it is better, so that of equal ones the first wins,
and the first NaN, which is better than all numbers. Lanes hold terms in no order; among them the least index
decides. What stands for no terms is the worst number there is, at index 0: the right answer where all terms
are that number, and anywhere else it wins against none.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, ClassVar, Self

from mind_mlir.lowering.schedule.folds.reductions import combiner_named
from mind_mlir.mlir.bindings import Attribute, Block, MLIRLocation, Type, Value, arith, ir, vector
from mind_mlir.mlir.bindings import math as math_
from mind_mlir.mlir.values import definition, integer_of, terminator_of
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.emission.emitter import Emitter


@dataclass(frozen=True)
class Greatest:
    """The fold: a term, and an index that grows from term to term.

    Attributes:
        predicate: Compares a term with the best one so far; true, too, where either is NaN.
        extreme: The operation that gives the better one of two.
        kind: The same as a ``vector.reduction`` kind; of two floats that are none of them NaN.
        location: Of what is emitted; that at hand for None.
    """

    predicate: arith.CmpFPredicate | arith.CmpIPredicate
    extreme: str
    kind: str
    location: MLIRLocation | None = dataclasses.field(default=None, compare=False)

    name: ClassVar = "greatest"
    parts: ClassVar = 2

    def at(self, location: MLIRLocation) -> Self:
        """Return the same, with the location of what it emits."""
        return dataclasses.replace(self, location=location)

    def nothings(self, emitter: Emitter, types: Sequence[Type]) -> list[Value]:
        """Emit the worst number, and index 0."""
        elements = [type_.element_type if isinstance(type_, ir.VectorType) else type_ for type_ in types]
        attributes = self.neutral(elements)
        return [emitter.splat(*pair) for pair in zip(types, attributes, strict=True)]

    def neutral(self, elements: Sequence[Type]) -> list[Attribute]:
        """Return the same for scalar types."""
        best, place = elements
        return [combiner_named(self.extreme).neutral_attribute(best), ir.IntegerAttr.get(place, 0)]

    def wider(self, element: Type) -> Type:
        """Return ``element``: nothing is rounded."""
        return element

    def joined(self, left: Sequence[Value], right: Sequence[Value]) -> list[Value]:
        """Emit the better one of two pairs; of equal ones, that on the left, whose index is less."""
        with self._here():
            better = self._better(right[0], left[0])
            pairs = zip(right, left, strict=True)
            return [arith.SelectOp(better, new, old).result for new, old in pairs]

    def totals(self, emitter: Emitter, values: Sequence[Value], *, one_step: bool = False) -> list[Value]:
        """Emit the best pair among all lanes: with the least index, of ``one_step`` the first lane."""
        terms, places = values
        with self._here():
            if isinstance(ir.VectorType(terms.type).element_type, ir.FloatType):
                best, is_best = self._best_float(emitter, terms)
            else:
                best = _reduced(self.kind, terms)
                same = emitter.broadcast(terms.type, best)
                is_best = arith.CmpIOp(arith.CmpIPredicate.eq, terms, same).result
            if one_step:
                return [best, _first(emitter, is_best, ir.VectorType(places.type).element_type)]
            nowhere = combiner_named("arith.minsi").nothing(emitter, places.type)
            return [best, _reduced("minsi", emitter.select(is_best, places, nowhere))]

    def _best_float(self, emitter: Emitter, terms: Value) -> tuple[Value, Value]:
        """Emit the best one of all lanes, and which ones are: the numbers that it equals, or all NaNs."""
        element = ir.VectorType(terms.type).element_type
        is_nan = arith.CmpFOp(arith.CmpFPredicate.UNO, terms, terms).result
        any_nan = _reduced("or", is_nan)
        worst = combiner_named(self.extreme).nothing(emitter, terms.type)
        best = _reduced(self.kind, emitter.select(is_nan, worst, terms), "reassoc,nnan,nsz")
        same = arith.CmpFOp(arith.CmpFPredicate.OEQ, terms, emitter.broadcast(terms.type, best)).result
        best = emitter.select(any_nan, emitter.number(element, math.nan), best)
        return best, emitter.select(any_nan, is_nan, same)

    def _better(self, term: Value, best: Value) -> Value:
        if isinstance(self.predicate, arith.CmpIPredicate):
            return arith.CmpIOp(self.predicate, term, best).result
        better = arith.CmpFOp(self.predicate, term, best).result
        return arith.AndIOp(better, arith.CmpFOp(arith.CmpFPredicate.ORD, best, best).result).result

    def _here(self) -> MLIRLocation:
        return ir.Location.current if self.location is None else self.location


def _first(emitter: Emitter, is_best: Value, index: Type) -> Value:
    """Emit the number of the first lane that is on, of which there is one."""
    (lanes,) = is_best.type.shape
    bits = ir.IntegerType.get_signless(lanes)
    mask = vector.ExtractOp(vector.BitCastOp(emitter.vector_type(1, bits), is_best).result, [], [0]).result
    count = math_.CountTrailingZerosOp(mask).result
    if lanes == index.width:
        return count
    return (arith.ExtUIOp if lanes < index.width else arith.TruncIOp)(index, count).result


def _reduced(kind: str, value: Value, flags: str = "") -> Value:
    """Emit the reduction of all lanes."""
    fastmath = ir.Attribute.parse(f"#arith.fastmath<{flags}>") if flags else None
    element = ir.VectorType(value.type).element_type
    return vector.ReductionOp(
        element, ir.Attribute.parse(f"#vector.kind<{kind}>"), value, fastmath=fastmath
    ).result


_FLOAT, _INTEGER = arith.CmpFPredicate, arith.CmpIPredicate
_FOLDS = {
    (op, int(predicate)): Greatest(predicate, extreme, kind)
    for op, predicate, extreme, kind in (
        ("arith.cmpf", _FLOAT.UGT, "arith.maximumf", "maxnumf"),
        ("arith.cmpi", _INTEGER.sgt, "arith.maxsi", "maxsi"),
        ("arith.cmpi", _INTEGER.slt, "arith.minsi", "minsi"),
        ("arith.cmpi", _INTEGER.ugt, "arith.maxui", "maxui"),
        ("arith.cmpi", _INTEGER.ult, "arith.minui", "minui"),
    )
}


def match_greatest(block: Block) -> Greatest | None:
    """Return the fold that ``block``, the body of a linalg operation of two results, is a step of, if any.

    Where its term is better than the best one so far, it yields that and its index, along the one loop that
    is reduced, in place of the best pair.
    """
    best, place = list(block.arguments)[-2:]
    chosen = [definition(value) for value in terminator_of(block).operands]
    if any(op is None or op.name != "arith.select" for op in chosen):
        return None
    (condition, term, old), (other, index, old_place) = (list(op.operands) for op in chosen if op is not None)
    if condition != other or (old, old_place) != (best, place) or not _counts(index, block):
        return None
    tests = [definition(condition)]
    if tests[0] is not None and tests[0].name == "arith.andi":  # of floats: and the best one is a number
        tests = [definition(operand) for operand in tests[0].operands]
    if any(op is None or op.name not in ("arith.cmpf", "arith.cmpi") for op in tests):
        return None
    found = [(op.name, integer_of(op, "predicate"), *op.operands) for op in tests if op is not None]
    is_number = ("arith.cmpf", int(_FLOAT.ORD), best, best)
    fold = _FOLDS.get(found[0][:2])
    if fold is None or found[0][2:] != (term, best):
        return None
    if found[1:] != ([is_number] if found[0][0] == "arith.cmpf" else []):
        return None
    users = [{use.owner.operation for use in each.uses} for each in (best, place)]
    return fold if users == [{*tests, chosen[0]}, {chosen[1]}] else None


def _counts(index: Value, block: Block) -> bool:
    """Return whether ``index`` is the number of the iteration of the one loop that is reduced."""
    op = definition(index)
    op = definition(op.operands[0]) if op is not None and op.name == "arith.index_cast" else None
    kinds = [str(kind) for kind in ir.ArrayAttr(block.owner.attributes["iterator_types"])]
    reduced = [dim for dim, kind in enumerate(kinds) if "reduction" in kind]
    return op is not None and op.name == "linalg.index" and reduced == [integer_of(op, "dim")]
