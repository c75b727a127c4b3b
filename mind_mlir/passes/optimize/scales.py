"""Folds what multiplies the features of a convolution into its filter, where both are constants.

Before: a function in structured form, whose constant parameters are literals. After: the same, where a
number for each feature that multiplies a convolution, as the norms of batches do, multiplies its filter
instead, and what is added before that is multiplied by itself: `(convolution(x, w) + b) * s` is
`convolution(x, w * s) + b * s`. `prepare` evaluates both products when the program is compiled.

The error: the product of an element of the filter and its scale is rounded once, and the sum is not scaled.
So a result is off by at most `roundings(terms) + 1` unit roundoffs (`ops/accumulation.py`) of the sum of
its terms' magnitudes times that of the scale, where it was `roundings(terms)` and one of the result's own
magnitude; what is added is rounded once more. That holds as long as the products are no subnormal numbers
and do not overflow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.ops.convolution_form import CONVOLUTIONS
from mind_mlir.ops.registry import by_opcode
from mind_mlir.passes.simplify.shapes import aligned, permutation_of
from mind_mlir.passes.simplify.sweep import rewritten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.module import CoreOperation, Function, ValueId
    from mind_mlir.passes.simplify.rewrite import Rewrite

#: Constants that take more operations to be made of literals are not looked through.
_DEEPEST = 16


class _Scaled(NamedTuple):
    """A convolution, and what is done to its result.

    Attributes:
        convolution: The operation.
        transposes: Permutations of its result, one after the other.
        sums: Additions of constants behind these, the last one first.
        axis: Where its features are in the end.
    """

    convolution: CoreOperation
    transposes: Sequence[tuple[int, ...]]
    sums: Sequence[CoreOperation]
    axis: int


def fold_scales(function: Function) -> Function:
    """Return ``function``, in structured form, with scales in filters; itself where there are none."""
    return rewritten(function, {"Mul": (_fold,)})


def _fold(at: Rewrite) -> ValueId | None:
    for value, scale in at.orders():
        found = _scaled(at, value)
        if found is None or at.type_of(value) != at.type or not _is_constant(at, scale):
            continue
        shape = aligned(at.shape_of(scale), at.type.rank)
        if any(extent != 1 for axis, extent in enumerate(shape) if axis != found.axis):
            continue
        return _folded(at, found, at.reshaped(scale, (shape[found.axis],)), at.reshaped(scale, shape))
    return None


def _folded(at: Rewrite, found: _Scaled, features: ValueId, scale: ValueId) -> ValueId:
    """Return the convolution with a filter that is multiplied by ``features``, and what follows it."""
    image, filter_ = found.convolution.operands
    scaled = at.emit("Mul", (filter_, features), at.type_of(filter_))
    value = at.moved(found.convolution, (image, scaled), found.convolution.tensor_type)
    for permutation in found.transposes:
        value = at.transposed(value, permutation)
    for operation in reversed(found.sums):
        added = at.reshaped(operation.operands[1], aligned(at.shape_of(operation.operands[1]), at.type.rank))
        type_ = at.type_of(added)
        if type_.extents[found.axis] == 1:
            type_ = at.type_of(scale)
        value = at.moved(operation, (value, at.emit("Mul", (added, scale), type_)), at.type)
    return value


def _scaled(at: Rewrite, value: ValueId) -> _Scaled | None:
    """Return the convolution of a constant filter that ``value`` is, seen through what is done to it."""
    sums: list[CoreOperation] = []
    rank = at.type.rank
    while (added := at.maker(value, "Add", "Sub")) is not None and at.is_read_once(value):
        before, constant = added.operands
        if not _is_constant(at, constant) or at.type_of(before) != at.type:
            return None
        sums.append(added)
        value = before
    permutations: list[tuple[int, ...]] = []
    axis = rank - 1
    while (moved := at.maker(value, "Transpose")) is not None and at.is_read_once(value):
        permutations.append(permutation_of(moved))
        (value,) = moved.operands
    convolution = at.maker(value, *CONVOLUTIONS)
    if convolution is None or not at.is_read_once(value):
        return None
    for permutation in reversed(permutations):
        axis = permutation.index(axis)
    types = {at.type_of(each).dtype for each in (value, *convolution.operands)}
    accumulator = convolution.attributes.get("accum_dtype", at.type.dtype)
    plain = at.type.dtype.is_float and types == {at.type.dtype} == {accumulator}
    if not plain or not _is_constant(at, convolution.operands[1]):
        return None
    if any(_varies(at, each.operands[1], axis) for each in sums):
        return None
    return _Scaled(convolution, tuple(reversed(permutations)), tuple(sums), axis)


def _varies(at: Rewrite, constant: ValueId, axis: int) -> bool:
    """Return whether a constant has several numbers for a feature."""
    shape = aligned(at.shape_of(constant), at.type.rank)
    return any(extent != 1 for place, extent in enumerate(shape) if place != axis)


def _is_constant(at: Rewrite, value: ValueId, depth: int = _DEEPEST) -> bool:
    """Return whether a value is made of literals alone, in few steps."""
    maker = at.maker(value)
    if maker is None or not depth:
        return False
    if not maker.operands:
        return at.literal(value) is not None or by_opcode()[maker.opcode].is_static
    return all(_is_constant(at, each, depth - 1) for each in maker.operands)
