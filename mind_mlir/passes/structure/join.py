"""The join of two branches: what needs a result of the `Cond`, and what is known without one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mind_mlir.passes.structure.graph import Constant
from mind_mlir.passes.structure.multiplexer import FLAG

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.diagnostics import Location
    from mind_mlir.ir.module import ValueId
    from mind_mlir.ir.types import TensorType
    from mind_mlir.passes.structure.emission import Emission, Scope
    from mind_mlir.passes.structure.graph import Argument


@dataclass(slots=True)
class Join:
    """The values that arrive from the two branches of one `Cond`.

    Attributes:
        predicate: What chooses.
        first: Values from here on are defined in the branches.
        types: The types of all that arrives.
        pairs: What arrives from ``then`` and ``else``.
    """

    predicate: ValueId
    first: ValueId
    types: Sequence[TensorType]
    pairs: list[tuple[Argument, Argument]] = field(default_factory=list)

    def add(self, pair: tuple[Argument, Argument]) -> None:
        """Add what arrives next."""
        self.pairs.append(pair)

    def emit(self, out: Emission, scopes: Sequence[Scope], location: Location | None) -> list[Argument]:
        """Write the operation, unless nothing needs it, and return what each pair has become."""
        self.pairs = _complemented(self.pairs, self.types)
        known = [self._known(*pair) for pair in self.pairs]
        needed = {
            pair: type_
            for pair, type_, (is_known, _) in zip(self.pairs, self.types, known, strict=True)
            if not is_known and pair not in _FLAGS
        }
        results: dict[tuple[Argument, Argument], Argument] = {}
        instead = _shared(needed)
        for pair in instead:
            del needed[pair]
        if needed:
            branches = [
                out.end(scope, label, (), [(pair[side], type_) for pair, type_ in needed.items()])
                for side, (scope, label) in enumerate(zip(scopes, ("then", "else"), strict=True))
            ]
            values = out.emit("Cond", (self.predicate,), {}, list(needed.values()), branches, location)
            results.update(zip(needed, values, strict=True))
        results.update((pair, results[other]) for pair, other in instead.items())
        results[_FLAGS[0]] = self.predicate
        if _FLAGS[1] in self.pairs:
            results[_FLAGS[1]] = out.negated(self.predicate)
        return [
            argument if is_known else results[pair]
            for pair, (is_known, argument) in zip(self.pairs, known, strict=True)
        ]

    def _known(self, then: Argument, otherwise: Argument) -> tuple[bool, Argument]:
        """Return whether a pair is known without the operation, and as what."""
        if then == otherwise and self._is_around(then):
            return True, then
        if then is None and self._is_around(otherwise):
            return True, otherwise
        if otherwise is None and self._is_around(then):
            return True, then
        return False, None

    def _is_around(self, argument: Argument) -> bool:
        return type(argument) is not int or argument < self.first


def _complemented(
    pairs: Sequence[tuple[Argument, Argument]], types: Sequence[TensorType]
) -> list[tuple[Argument, Argument]]:
    """Let a tensor that is looked at after one branch only share a result with one of the other branch.

    So a loop that hands on its new state, or leaves with the old one, carries one state.
    """
    found = list(pairs)
    for are_equal in (True, False):
        waiting: dict[tuple[TensorType, Argument], list[int]] = {}
        for index, (type_, (then, otherwise)) in enumerate(zip(types, found, strict=True)):
            if type_.rank and otherwise is None and then is not None:
                waiting.setdefault((type_, then if are_equal else None), []).append(index)
        for index, (type_, (then, otherwise)) in enumerate(zip(types, found, strict=True)):
            if not type_.rank or then is not None or otherwise is None:
                continue
            partners = waiting.get((type_, otherwise if are_equal else None), [])
            if partners:
                partner = partners.pop(0)
                found[index] = found[partner] = (found[partner][0], otherwise)
    return found


def _shared(
    needed: Mapping[tuple[Argument, Argument], TensorType],
) -> dict[tuple[Argument, Argument], tuple[Argument, Argument]]:
    """Return the pairs that are looked at after one branch only, and others that agree with them there."""
    by_side: dict[tuple[int, Argument], tuple[Argument, Argument]] = {}
    for pair in needed:
        if None not in pair:
            by_side.setdefault((0, pair[0]), pair)
            by_side.setdefault((1, pair[1]), pair)
    found = {}
    for pair in needed:
        if None in pair:
            side = 0 if pair[1] is None else 1
            if (side, pair[side]) in by_side:
                found[pair] = by_side[side, pair[side]]
    return found


#: The predicate itself, and its negation.
_TRUE, _FALSE = Constant(1, FLAG), Constant(0, FLAG)
_FLAGS = ((_TRUE, _FALSE), (_FALSE, _TRUE))
