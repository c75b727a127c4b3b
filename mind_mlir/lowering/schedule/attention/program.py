"""The computation of an attention from its scores, in passes over them.

A reduction along a row needs all of the row, so that what depends on it is computed by a later pass. What
later passes need of earlier ones takes the place of the scores, where one value is all that they need.
"""

from __future__ import annotations

import dataclasses
import math
from functools import cached_property
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.attention.nodes import Node, levels, ordered
from mind_mlir.mlir.bindings import ir

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

_SUM, _MAX = "arith.addf", "arith.maximumf"


@dataclasses.dataclass(frozen=True)
class Output:
    """A sum of products of ``node`` and something: along ``j`` for each row, or else along ``i``."""

    node: Node
    by_row: bool


@dataclasses.dataclass(frozen=True)
class Scaling:
    """A product that is scaled once it is complete: what its terms have in common is left out of them.

    Attributes:
        term: What is multiplied instead.
        node: The operation that scales; its other operand is the same along a row.
    """

    term: Node
    node: Node

    @property
    def factor(self) -> Node:
        """The operand that the product is multiplied with, or divided by."""
        left, right = self.node.operands
        return right if left is self.term else left


@dataclasses.dataclass(frozen=True)
class Stage:
    """One pass over the scores.

    Attributes:
        rows: The reductions along rows that it completes.
        stores: Values that it keeps, each with the number of the array where.
    """

    rows: tuple[Node, ...]
    stores: tuple[tuple[int, Node], ...]


@dataclasses.dataclass(frozen=True)
class AttentionProgram:
    """Outputs as graphs over dimensions, of which ``row`` counts queries and ``column`` keys.

    Attributes:
        outputs: What is computed.
        row: The dimension ``i``.
        column: The dimension ``j``.
        kept: Elements that are results themselves, or of which batches are summed.
    """

    outputs: tuple[Output, ...]
    row: int
    column: int
    kept: tuple[Node, ...] = ()

    @cached_property
    def scalings(self) -> tuple[Scaling | None, ...]:
        """For each output, what it is scaled by at the end: of a stable softmax, the sums of its rows."""
        return tuple(_scaling(each.node, self.column) if each.by_row else None for each in self.outputs)

    @cached_property
    def terms(self) -> tuple[Node, ...]:
        """The node that is multiplied for each output: its own, or the term of its scaling."""
        pairs = zip(self.outputs, self.scalings, strict=True)
        return tuple(output.node if scaling is None else scaling.term for output, scaling in pairs)

    @property
    def column_terms(self) -> tuple[Node, ...]:
        """The terms that are multiplied for outputs with rows for keys: sums along the queries."""
        pairs = zip(self.outputs, self.terms, strict=True)
        return tuple(dict.fromkeys(term for output, term in pairs if not output.by_row))

    @cached_property
    def nodes(self) -> list[Node]:
        """All nodes, operands first."""
        return ordered([*(output.node for output in self.outputs), *self.kept])

    @property
    def ends(self) -> tuple[Node, ...]:
        """The nodes that have to be known of each score when all passes are done."""
        return (*self.terms, *self.kept)

    @cached_property
    def scores(self) -> list[Node]:
        """The scores, by number."""
        return sorted((node for node in self.nodes if node.kind == "score"), key=lambda node: node.number)

    @cached_property
    def inputs(self) -> list[Node]:
        """The elements of other tensors, by number."""
        return sorted((node for node in self.nodes if node.kind == "input"), key=lambda node: node.number)

    def is_wide(self, node: Node) -> bool:
        """Return whether ``node`` differs from element to element."""
        return self.row in node.dims and self.column in node.dims

    def _fits(self, node: Node) -> bool:
        """Return whether an array of scores can hold ``node``: floats, of f64 where scores are."""
        widest = max(32, *(ir.FloatType(score.type).width for score in self.scores))
        return isinstance(node.type, ir.FloatType) and node.type.width <= widest

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """The passes over the scores; the last one has no reductions, and may store nothing."""
        scalings = [each.factor for each in self.scalings if each is not None]
        depth = levels([*self.ends, *scalings])
        stored = list(self.scores)
        found: list[Stage] = []
        for level in range(max(depth.values(), default=-1) + 1):
            rows = tuple(row for row, at in depth.items() if at == level)
            later = [row.operands[0] for row, at in depth.items() if at > level] + list(self.ends)
            now = ordered((row.operands[0] for row in rows), stop=stored)
            stores: list[tuple[int, Node]] = []
            for place, old in enumerate(stored):
                others = {each for each in stored if each is not old}
                for node in reversed(now):
                    if node in stored or not self.is_wide(node) or not self._fits(node):
                        continue
                    if old not in ordered([node], stop=others):
                        continue
                    needed = _needed(later, {*others, node})
                    if node in needed and old not in needed:
                        stores.append((place, node))
                        stored[place] = node
                        break
            found.append(Stage(rows, tuple(stores)))
        missing = [term for term in dict.fromkeys(self.ends) if term not in stored]
        free = [place for place, node in enumerate(stored) if node not in self.ends]
        free += range(len(stored), len(stored) + len(missing))
        found.append(Stage((), tuple(zip(free, missing, strict=False))))
        return tuple(found)

    @cached_property
    def arrays(self) -> int:
        """The number of arrays of scores."""
        places = [place for stage in self.stages for place, _ in stage.stores]
        return max([len(self.scores), *(place + 1 for place in places)])

    @cached_property
    def is_online(self) -> bool:
        """Return whether rows may be computed block by block: each output is a stable softmax."""
        rows = [node for node in self.nodes if node.kind == "row"]
        scaling = self.scalings[0]
        is_alone = len(self.outputs) == len(self.scores) == 1 and not self.kept
        return is_alone and scaling is not None and len(rows) == 2

    @cached_property
    def vanishing(self) -> frozenset[Node]:
        """The maxima of rows whose sign is not seen where they are zero (see `ignore_signs_of_zeros`)."""
        seen = {output.node for output in self.outputs}
        found = []
        for row in (node for node in self.nodes if node.combiner == _MAX):
            differences = self._users(row)
            users = [user for each in differences for user in self._users(each)]
            names = {each.name for each in differences}, {each.name for each in users}
            if names == ({"arith.subf"}, {"math.exp"}) and seen.isdisjoint([row, *differences]):
                found.append(row)
        return frozenset(found)

    def _users(self, node: Node) -> list[Node]:
        return [user for user in self.nodes if node in user.operands]

    @cached_property
    def visible(self) -> int | None:
        """The number ``c`` for which no key ``j > i + c`` counts, whatever its score; None if there is none.

        That is so where a selection makes scores there minus infinity, which has no share in a maximum, and
        whose exponential has none in a sum. Where a row's maximum is not finite, all of the row becomes NaN,
        of the keys that are looked at, too. Outputs for keys have no such row: of them it is said of finite
        tensors only (`needs_finite`). Elements that are results are all computed.
        """
        if self.kept:
            return None
        for node in self.nodes:
            bound = _hides(node, self.row, self.column)
            if bound is not None and self._without(node) and self._leaves_some(node, bound):
                return bound
        return None

    @property
    def needs_finite(self) -> bool:
        """Return whether `visible` holds only where all queries, keys and values are finite."""
        return not all(output.by_row for output in self.outputs)

    def _leaves_some(self, hidden: Node, bound: int) -> bool:
        """Return whether rows have a key that ``hidden`` leaves, and nothing else hides, where that matters.

        Outputs for keys have a share of rows that see no key, whose sums are not finite.
        """
        if not self.needs_finite:
            return True
        below = ordered(node.operands[0] for node in self.nodes if node.kind == "row")
        others = [node for node in below if node.name in ("arith.select", "input") and node is not hidden]
        return bound >= 0 and hidden.operands[0].name == "arith.cmpi" and not others

    def _without(self, hidden: Node) -> bool:
        """Return whether an element has no share in anything where ``hidden`` is minus infinity."""
        condition = hidden.operands[0]
        values: dict[Node, float] = {hidden: -math.inf, condition: float(_is_infinite(hidden.operands[1]))}
        for node in self.nodes:
            if node not in values:
                found = _number(node) if node.kind == "constant" else self._limit(node, values)
                if found is not None:
                    values[node] = found
        for node in self.nodes:
            if node.kind != "row":
                continue
            if values.get(node.operands[0]) != (0.0 if node.combiner == _SUM else -math.inf):
                return False
        return all(values.get(output.node) == 0.0 for output in self.outputs)

    def _limit(self, node: Node, values: dict[Node, float]) -> float | None:
        """Return the number or the condition that ``node`` is, its rows being finite; None if any other."""
        known = [values.get(operand) for operand in node.operands]
        if node.kind != "op" or all(each is None for each in known):
            return None
        if node.name == "arith.select":
            return None if known[0] is None else known[1 if known[0] else 2]
        if node.name == "arith.cmpf":
            return self._compared(node, known)
        if len(known) == 1:
            return _SIMPLE[node.name](known[0]) if node.name in _SIMPLE and known[0] is not None else None
        if len(known) != 2:
            return None
        left, right = known
        if left is not None and right is not None:
            return _BOTH[node.name](left, right) if node.name in _BOTH else None
        other = node.operands[0 if left is None else 1]
        return _beside_finite(node.name, left, right) if self._is_finite(other) else None

    def _compared(self, node: Node, known: list[float | None]) -> float | None:
        """Return the outcome of a comparison of floats, 0 or 1."""
        assert node.op is not None
        predicate = int(ir.IntegerAttr(node.op.attributes["predicate"]).value)
        left, right = known
        if predicate not in (_EQUAL, _UNEQUAL):
            return None
        if left is not None and right is not None:
            return float((left == right) == (predicate == _EQUAL))
        other = node.operands[0 if left is None else 1]
        is_unlike = -math.inf in known and self._is_finite(other)
        return 0.0 if predicate == _EQUAL and is_unlike else None

    def _is_finite(self, node: Node) -> bool:
        """Return whether ``node`` may be taken to be finite: where it is not, `visible` says what happens."""
        if node.kind == "row" or self._is_of_rows(node):
            return True
        return self.needs_finite and all(each.kind != "input" for each in ordered([node]))

    def _is_of_rows(self, node: Node) -> bool:
        return node.scored and self.column not in node.dims


def _needed(roots: Iterable[Node], stop: Collection[Node]) -> set[Node]:
    """Return what ``roots`` are computed from by elements, down to ``stop``; reductions are known."""
    found: set[Node] = set()
    work = list(roots)
    while work:
        node = work.pop()
        if node in found:
            continue
        found.add(node)
        if node not in stop and node.kind != "row":
            work += node.operands
    return found


def _scaling(node: Node, column: int) -> Scaling | None:
    """Return how a weight of a stable softmax is an exponential, scaled by what its row has in common.

    The largest exponential of a row is one, so that sums are neither too large nor zero.
    """
    if node.name not in ("arith.divf", "arith.mulf"):
        return None
    for place, term in enumerate(node.operands if node.name == "arith.mulf" else node.operands[:1]):
        factor = node.operands[1 - place]
        rows = [each for each in ordered([factor], stop=[term]) if each.kind == "row"]
        sums = all(row.combiner == _SUM and row.operands[0] is term for row in rows)
        if _is_stable(term) and rows and sums and column not in factor.dims:
            return Scaling(term, node)
    return None


def _is_stable(node: Node) -> bool:
    """Return whether ``node`` is an exponential of scores from which their row's maximum was subtracted."""
    if node.name != "math.exp" or node.operands[0].name != "arith.subf":
        return False
    score, greatest = node.operands[0].operands
    return greatest.kind == "row" and greatest.combiner == _MAX and greatest.operands[0] is score


def _number(node: Node) -> float | None:
    """Return the finite number that ``node`` is, if it is a constant."""
    if node.kind != "constant" or not isinstance(node.value, ir.FloatAttr):
        return None
    value = float(node.value.value)
    return value if math.isfinite(value) else None


def _beside_finite(name: str, left: float | None, right: float | None) -> float | None:
    """Return what is known of operation ``name`` of zero or minus infinity and any finite number."""
    if left == -math.inf and name in ("arith.addf", "arith.subf"):
        return left
    if right == -math.inf and name == "arith.addf":
        return right
    if name == "arith.mulf" and 0.0 in (left, right):
        return 0.0
    return 0.0 if name == "arith.divf" and left == 0.0 else None


def _positive(left: float, right: float) -> float | None:
    """Return the product of zero or minus infinity with a number, if that is either."""
    product = left * right
    return product if product in (0.0, -math.inf) else None


#: What is known of operations with one operand, and with two, that are numbers.
_SIMPLE: dict[str, Callable[[float], float | None]] = {
    "math.exp": lambda value: 0.0 if value == -math.inf else None,
    "arith.negf": lambda value: 0.0 if value == 0.0 else None,
    "arith.uitofp": lambda value: value,
    "arith.extf": lambda value: value,
    "arith.truncf": lambda value: value if value in (0.0, -math.inf) else None,
}
_BOTH: dict[str, Callable[[float, float], float | None]] = {
    "arith.addf": lambda left, right: left + right if math.inf not in (left, right) else None,
    "arith.subf": lambda left, right: left - right if math.isfinite(right) else None,
    "arith.mulf": _positive,
    "arith.divf": lambda left, right: left / right if right > 0.0 and math.isfinite(right) else None,
    "arith.ori": max,
    "arith.andi": min,
}
#: The numbers of the predicates "ordered and equal" and "unordered or not equal".
_EQUAL, _UNEQUAL = 1, 13


#: Comparisons of ``i + c`` with ``j`` that hold where a key is visible, and what ``c`` is then greater by.
_VISIBLE = {"sge": 0, "sgt": -1}
_MIRRORED = {"sle": "sge", "slt": "sgt", "sge": "sle", "sgt": "slt"}
_NEGATED = {"slt": "sge", "sle": "sgt", "sgt": "sle", "sge": "slt"}
_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge")


def _hides(node: Node, row: int, column: int) -> int | None:
    """Return ``c`` if ``node`` is minus infinity wherever ``j > i + c``."""
    if node.name != "arith.select":
        return None
    condition, on, off = node.operands
    for hidden, negated in ((off, False), (on, True)):
        if _is_infinite(hidden):
            return _visible(condition, row, column, negated=negated)
    return None


def _is_infinite(node: Node) -> bool:
    """Return whether ``node`` is minus infinity."""
    is_float = node.kind == "constant" and isinstance(node.value, ir.FloatAttr)
    return is_float and float(ir.FloatAttr(node.value).value) == -math.inf


def _visible(condition: Node, row: int, column: int, *, negated: bool) -> int | None:
    """Return ``c`` if ``condition``, or its contrary, is false wherever ``j > i + c``."""
    joins = "arith.ori" if negated else "arith.andi"
    if condition.name == joins:
        for operand in condition.operands:
            found = _visible(operand, row, column, negated=negated)
            if found is not None:
                return found
    if condition.op is None or condition.name != "arith.cmpi":
        return None
    number = int(ir.IntegerAttr(condition.op.attributes["predicate"]).value)
    if number >= len(_PREDICATES):
        return None
    predicate = _PREDICATES[number]
    left, right = (_affine(operand) for operand in condition.operands)
    if left is None or right is None:
        return None
    if left[0] == {column: 1}:
        left, right, predicate = right, left, _MIRRORED.get(predicate, predicate)
    if negated:
        predicate = _NEGATED.get(predicate, predicate)
    if left[0] != {row: 1} or right[0] != {column: 1} or predicate not in _VISIBLE:
        return None
    return left[1] - right[1] + _VISIBLE[predicate]


def _affine(node: Node) -> tuple[dict[int, int], int] | None:
    """Return an integer as a position plus a constant: by which dimension, and the constant."""
    if node.kind == "index":
        return {node.number: 1}, 0
    if node.kind == "constant":
        is_integer = isinstance(node.value, ir.IntegerAttr)
        return ({}, int(ir.IntegerAttr(node.value).value)) if is_integer else None
    if node.name in ("arith.index_cast", "arith.extsi"):
        return _affine(node.operands[0])
    if node.name not in ("arith.addi", "arith.subi"):
        return None
    left, right = (_affine(operand) for operand in node.operands)
    if left is None or right is None or (left[0] and right[0]) or (node.name == "arith.subi" and right[0]):
        return None
    sign = 1 if node.name == "arith.addi" else -1
    return {**left[0], **right[0]}, left[1] + sign * right[1]
