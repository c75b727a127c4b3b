"""Reductions of numbers together with their places, which find an extreme one: `argmax`, `argmin`.

What the region of such a reduction does is found by applying it to each case that it can tell apart: it only
compares and chooses, so that no other numbers than those of `_CASES` need be tried.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.comparisons import COMPARISONS
from mind_mlir.ir.types import DType
from mind_mlir.languages.stablehlo.rules.types import keyword_of
from mind_mlir.mlir.bindings import Block, Operation, ir

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value
    from mind_mlir.languages.stablehlo.rules.use import Use

#: Two numbers whose order a region may look at; those with NaN are of floats only.
_CASES = ((0.0, 1.0), (1.0, 0.0), (0.0, 0.0), (-0.0, 0.0), (0.0, -0.0))
_UNORDERED = ((math.nan, 0.0), (0.0, math.nan), (math.nan, math.nan))
_DIRECTIONS = {each.direction: each.function for each in COMPARISONS.values()}
_LOGIC: Mapping[str, Callable[..., bool]] = {
    "stablehlo.and": operator.and_,
    "stablehlo.or": operator.or_,
    "stablehlo.xor": operator.xor,
    "stablehlo.not": operator.not_,
}


def extreme_of(use: Use, values: Sequence[Value], axes: Sequence[int]) -> str | None:
    """Return ``Max`` or ``Min`` where a reduction of two tensors finds that of the first, and where it is.

    Of several, that is the first one; NaN is the extreme where there is one. None where it is anything else.
    """
    dtype = values[0].type.dtype
    if len(axes) != 1 or not values[0].type.extents[axes[0]] or not values[1].type.dtype.is_integer:
        return None
    numbers = use.operation.operands[1].owner
    if isinstance(numbers, ir.Block) or numbers.operation.name != "stablehlo.iota":
        return None
    if int(numbers.operation.attributes["iota_dimension"].value) != axes[0]:
        return None
    block = use.body()
    for kind in ("Max", "Min"):
        if all(_applied(block, *case) == found for case, found in _expected(kind, dtype)):
            return kind
    return None


def places(use: Use, kind: str, value: Value, axis: int, dtype: DType) -> Value:
    """Append where the greatest or the least element of each row along ``axis`` is, in ``dtype``."""
    if kind == "Min":  # the greatest of the numbers in the opposite order
        value = use.emit("Neg" if value.type.dtype.is_float else "Not", value)
    wide = dtype if dtype in (DType.SI32, DType.SI64) else DType.SI64
    return use.cast(use.emit("ArgMax", value, axis=axis, keepdims=False, output_dtype=wide), dtype)


def _expected(kind: str, dtype: DType) -> Iterator[tuple[tuple[float, int, float, int], int]]:
    """Yield the numbers and places of two elements, and the place of the one that is to be chosen."""
    cases = (*_CASES, *_UNORDERED) if dtype.is_float else _CASES[:3]
    for (left, right), (here, there) in itertools.product(cases, ((0, 1), (1, 0))):
        is_before = left > right if kind == "Max" else left < right
        if math.isnan(left) and math.isnan(right):
            if here < there:  # elements are combined in their order
                yield (left, here, right, there), here
        elif left == right:
            yield (left, here, right, there), min(here, there)
        else:
            yield (left, here, right, there), here if is_before or math.isnan(left) else there


def _applied(block: Block, left: float, here: int, right: float, there: int) -> int | None:
    """Return which place a region chooses; None where it does not only compare, or chooses another number."""
    arguments = dict(zip(block.arguments, (left, here, right, there), strict=True))
    for each in block.operations:
        operation = each.operation
        if operation.name == "stablehlo.return":
            number, place = (arguments[value] for value in operation.operands)
            chosen = {here: left, there: right}.get(place)
            return place if number == chosen or number is chosen else None  # NaN equals nothing
        found = _evaluated(operation, [arguments.get(value) for value in operation.operands])
        if found is None:
            return None
        arguments[operation.results[0]] = found
    return None


def _evaluated(operation: Operation, operands: Sequence[Any]) -> Any:
    """Return what an operation that compares or chooses gives; None of any other.

    Numbers are floats here, places integers and truth values themselves: no two kinds are taken together.
    """
    if operation.name == "stablehlo.select":
        condition, chosen, other = operands
        return chosen if condition is True else other if condition is False else None
    kinds = {type(operand) for operand in operands}
    if operation.name in _LOGIC and kinds == {bool}:
        return _LOGIC[operation.name](*operands)
    if operation.name != "stablehlo.compare" or kinds not in ({float}, {int}):
        return None
    if "compare_type" in operation.attributes and keyword_of(operation, "compare_type") == "TOTALORDER":
        return None
    return bool(_DIRECTIONS[keyword_of(operation, "comparison_direction")](*operands))
