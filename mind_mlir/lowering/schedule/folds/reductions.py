"""The operations that reductions combine with, and loops that accumulate with them.

A floating-point sum of n terms in a row is off by up to n roundings. Here no accumulator takes more than
`RADIX` terms: it is then added to one of the next level, which takes as many of these, and so on; an error
bound grows with the logarithm of n. `mind_mlir/ops/accumulation.py` states it.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, ClassVar, Self

from mind_mlir.lowering.emission.constants import RADIX
from mind_mlir.lowering.schedule.folds.fold import by_parts
from mind_mlir.lowering.schedule.linalg_view.values import RESHAPES
from mind_mlir.mlir.bindings import Attribute, Block, MLIRLocation, Operation, Type, Value, ir, vector
from mind_mlir.mlir.passes import find_named
from mind_mlir.mlir.values import terminator_of
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.lowering.emission.emitter import Bounds, Emitter, Index, LoopBody
    from mind_mlir.lowering.schedule.folds.fold import Fold


_INFINITY = float("inf")


@dataclass(frozen=True)
class Combiner:
    """An associative, commutative operation (for floats up to rounding).

    Attributes:
        name: the scalar operation that combines two values.
        kind: its name as a ``vector.reduction`` kind.
        neutral: from an integer width, 0 for floats, to the value that changes nothing.
        either_zero: whether either zero may be the greater of two (see `zeros`).
        location: of what is emitted; that at hand for None.
    """

    name: str
    kind: str
    neutral: Callable[[int], float | int]
    either_zero: bool = False
    location: MLIRLocation | None = dataclasses.field(default=None, compare=False)

    parts: ClassVar = 1

    def neutral_attribute(self, element: Type) -> Attribute:
        """Return the neutral value of ``element``."""
        if isinstance(element, ir.IntegerType):
            return ir.IntegerAttr.get(element, self.neutral(element.width))
        return ir.FloatAttr.get(element, self.neutral(0))

    def nothing(self, emitter: Emitter, type_: Type) -> Value:
        """Emit what changes nothing: a constant of a scalar or vector type."""
        element = type_.element_type if isinstance(type_, ir.VectorType) else type_
        return emitter.splat(type_, self.neutral_attribute(element))

    def at(self, location: MLIRLocation) -> Self:
        """Return the same, with the location of what it emits."""
        return dataclasses.replace(self, location=location)

    def nothings(self, emitter: Emitter, types: Sequence[Type]) -> list[Value]:
        """Emit the same, as a `Fold` does."""
        return [self.nothing(emitter, *types)]

    def wider(self, element: Type) -> Type:
        """Return the type that parts are joined in: one that keeps a sum from rounding again."""
        sums = self.name == "arith.addf" and not isinstance(element, ir.F64Type)
        return ir.F64Type.get() if sums else element

    def combine(self, left: Value, right: Value) -> Value:
        """Emit the combination of two scalars or vectors."""
        attributes = {"fastmath": ir.Attribute.parse("#arith.fastmath<nsz>")} if self.either_zero else {}
        return ir.Operation.create(
            self.name, [left.type], [left, right], attributes, loc=self.location
        ).result

    def joined(self, left: Sequence[Value], right: Sequence[Value]) -> list[Value]:
        """Emit the same, as a `Fold` does."""
        return [self.combine(*left, *right)]

    def totals(self, emitter: Emitter, values: Sequence[Value], *, one_step: bool = False) -> list[Value]:
        """Emit the combination of all lanes of a vector, in the order that is cheapest."""
        (value,) = values
        element = ir.VectorType(value.type).element_type
        flags = "reassoc,nsz" if self.either_zero else "reassoc"
        is_float = not isinstance(element, ir.IntegerType)
        fastmath = ir.Attribute.parse(f"#arith.fastmath<{flags}>") if is_float else None
        kind = ir.Attribute.parse(f"#vector.kind<{self.kind}>")
        return [vector.ReductionOp(element, kind, value, fastmath=fastmath, loc=self.location).result]


_COMBINERS = {
    combiner.name: combiner
    for combiner in (
        Combiner("arith.addf", "add", lambda _: -0.0),
        Combiner("arith.addi", "add", lambda _: 0),
        Combiner("arith.mulf", "mul", lambda _: 1.0),
        Combiner("arith.muli", "mul", lambda _: 1),
        Combiner("arith.maximumf", "maximumf", lambda _: -_INFINITY),
        Combiner("arith.minimumf", "minimumf", lambda _: _INFINITY),
        Combiner("arith.maxsi", "maxsi", lambda width: -(1 << (width - 1))),
        Combiner("arith.minsi", "minsi", lambda width: (1 << (width - 1)) - 1),
        Combiner("arith.maxui", "maxui", lambda _: 0),
        Combiner("arith.minui", "minui", lambda _: -1),
        Combiner("arith.andi", "and", lambda _: -1),
        Combiner("arith.ori", "or", lambda _: 0),
        Combiner("arith.xori", "xor", lambda _: 0),
    )
}


def combiner_named(name: str, *, either_zero: bool = False) -> Combiner:
    """Return what combines by operation ``name``."""
    return dataclasses.replace(_COMBINERS[name], either_zero=either_zero)


def match_combiners(block: Block, results: int) -> list[Combiner] | None:
    """Return how ``block``, whose last arguments are ``results`` accumulators, combines with each of them.

    None if it does not: each accumulator must be combined with something that depends on none of them, and
    that combination must be yielded for it and used for nothing else.
    """
    terminator = terminator_of(block)
    if len(terminator.operands) != results:
        return None
    found = [_match(accumulator, value) for accumulator, value in _pairs(block, results)]
    combiners = [combiner for combiner in found if combiner is not None]
    return combiners if len(combiners) == results else None


def combined_value(block: Block, results: int, number: int) -> Value:
    """Return what a block for which `match_combiners` holds combines accumulator ``number`` with."""
    accumulator, value = _pairs(block, results)[number]
    left, right = value.owner.operands
    return right if left == accumulator else left


def _pairs(block: Block, results: int) -> list[tuple[Value, Value]]:
    """Return each accumulator with the value yielded for it."""
    terminator = terminator_of(block)
    arguments = list(block.arguments)
    return list(zip(arguments[len(arguments) - results :], terminator.operands, strict=True))


def _match(accumulator: Value, value: Value) -> Combiner | None:
    if isinstance(value, ir.BlockArgument) or [use.owner for use in accumulator.uses] != [value.owner]:
        return None
    if sum(1 for _ in value.uses) != 1 or len(value.owner.operands) != 2:
        return None
    combiner = _COMBINERS.get(value.owner.name)
    attributes = value.owner.attributes
    if combiner is None or "fastmath" not in attributes or "nsz" not in str(attributes["fastmath"]):
        return combiner
    return dataclasses.replace(combiner, either_zero=True)


class Accumulators:
    """The accumulators of a nest: how many, and how each is combined.

    Args:
        folds: How accumulators are joined, in their order.
        neutral: For each, the vector that changes nothing.
    """

    def __init__(self, emitter: Emitter, folds: Sequence[Fold], neutral: Sequence[Value]) -> None:
        self._e = emitter
        self._folds = folds
        self.neutral = list(neutral)
        self._rounds = any(fold.name == "arith.addf" for fold in folds)

    def folds(self, terms: int) -> bool:
        """Return whether ``terms`` are too many for an accumulator."""
        return self._rounds and terms > RADIX

    def join(self, left: Sequence[Value], right: Sequence[Value]) -> list[Value]:
        """Combine accumulators of two levels."""
        found = (fold.joined(*pair) for fold, pair in by_parts(self._folds, left, right))
        return [value for each in found for value in each]

    def loop(
        self,
        bounds: Bounds,
        most: int,
        terms: int,
        carried: list[Value],
        body: LoopBody,
        *,
        unrolled: bool = False,
    ) -> list[Value]:
        """Emit a loop whose body adds to the accumulators, in as many levels as it takes.

        Args:
            bounds: Lower bound, exclusive upper bound and step.
            most: The most iterations that there are.
            terms: How many terms the body adds to an accumulator.
            carried: Other values, and then the accumulators.
            body: Called once with the induction variable and the carried values; returns their next values.
            unrolled: Whether iterations are emitted one after the other where there is one level.
        """
        radix = max(2, RADIX // terms)
        if most <= radix or not self.folds(most * terms):
            return self._e.loop(bounds, carried, body, unrolled=unrolled)
        span = radix
        while span * RADIX < most:
            span *= RADIX
        lower, upper, step = bounds
        whole = isinstance(lower, int) and isinstance(upper, int) and (upper - lower) % (span * step) == 0
        others = len(carried) - len(self.neutral)

        def block(first: Index, inside: list[Value]) -> list[Value]:
            end = self._e.add(first, span * step)
            end = end if whole else self._e.minimum(end, upper)
            inner = [*inside[:others], *self.neutral]
            inner = self.loop((first, end, step), span, terms, inner, body)
            return [*inner[:others], *self.join(inside[others:], inner[others:])]

        return self._e.loop((lower, upper, span * step), carried, block)


_MAXIMUM = "arith.maximumf"
#: Operations of bodies that leave a zero a zero, and anything else what it is.
_CASTS = ("arith.extf", "arith.truncf")


def ignore_signs_of_zeros(function: Operation) -> None:
    """Mark the reductions in ``function``, linalg operations on tensors, that may give either zero."""
    for reduction in find_named(function, "linalg.reduce"):
        *_, combined, _yield = (op.operation for op in reduction.regions[0].blocks[0].operations)
        if combined.name == _MAXIMUM and not _is_seen(reduction.results[0], subtracted=False):
            combined.attributes["fastmath"] = ir.Attribute.parse("#arith.fastmath<nsz>")


def _is_seen(value: Value, *, subtracted: bool) -> bool:
    """Return whether the sign of a zero is seen: not where it is ``subtracted`` under exponentials, alone."""
    return any(_sees(use.owner.operation, use.operand_number, subtracted) for use in value.uses)


def _sees(op: Operation, operand: int, subtracted: bool) -> bool:
    """Return the same of one operand of an operation, on tensors or in the body of one."""
    if op.name == "math.exp":
        return not subtracted
    if op.name in (*_CASTS, *RESHAPES):
        return _is_seen(op.results[0], subtracted=subtracted)
    if op.name == "arith.subf" and not subtracted:
        return _is_seen(op.results[0], subtracted=True)
    if op.name == "linalg.yield":
        return _is_seen(op.parent.operation.results[0], subtracted=subtracted)
    if not op.name.startswith("linalg.") or len(op.results) != 1:
        return True
    return _is_seen(op.regions[0].blocks[0].arguments[operand], subtracted=subtracted)
