"""The general gather and the general scatter, which every operation that reads or writes by index is made of.

An operation says which windows of its operand it means (`mind_mlir.ops.windows`); its numpy rule and its
linalg rule are made here. A gather reads the windows. A scatter combines them with its third operand, the
updates, one after the other in row-major order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DType, DTypeKind, TensorType
from mind_mlir.ops.accumulators import computed_dtype
from mind_mlir.ops.even_windows import affine_places
from mind_mlir.ops.reassociation import reshape
from mind_mlir.ops.row_loops import counted_loop
from mind_mlir.ops.windows import Bounds, Windows, WindowsRule, narrowest

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext, TypeContext
    from mind_mlir.ops.rules import EvalRule, LinalgRule


#: How updates are combined with elements of the operand: the operation that does it, if one does.
COMBINATIONS = {"Add": "Add", "Mul": "Mul", "Max": "Maximum", "Min": "Minimum", "Replace": None}
KINDS = tuple(COMBINATIONS)


#: The order in which floats are added, for the records.
ADDITIONS = (
    "Additions to one element happen in the row-major order of `updates`. Where many more single floats are "
    "added than the result has elements, runs of `updates` have partial sums, which are added in order. "
    "Shapes and target alone say which: the result is the same bits every time, with any number of threads."
)


# Types


def check_combination(context: TypeContext, kinds: Sequence[str] = KINDS, more_help: str = "") -> None:
    """Report updates of another dtype than the operand's (E2004), and what is not combined so (E2005).

    Args:
        context: A scatter; without an attribute `reduce`, it adds.
        kinds: What `reduce` may be.
        more_help: What else can be done with truth values.
    """
    operand, _, updates = context.operands
    reduce: str = context.attributes.get("reduce", "Add")
    if updates.dtype is not operand.dtype:
        context.fail(
            "E2004",
            f"Dtype mismatch: {context.opcode} of {updates.dtype.core_name} to {operand.dtype.core_name}",
            operand=2,
            notes=(f"operand is {operand}", f"updates is {updates}"),
            help="give both the same dtype; there is no implicit promotion",
            left=operand.dtype.core_name,
            right=updates.dtype.core_name,
        )
    is_order = reduce in ("Max", "Min")
    if is_order and operand.dtype.kind is DTypeKind.COMPLEX:
        *others, last = (kind for kind in kinds if kind not in ("Max", "Min"))
        allowed, help_ = "real dtypes", f"complex numbers have no order: use {', '.join(others)} or {last}"
    elif reduce in ("Add", "Mul") and operand.dtype is DType.I1:
        truths = "truth values are no numbers: Max says whether any is true, Min whether all are"
        allowed, help_ = "numbers", truths + more_help
    else:
        return
    context.fail(
        "E2005",
        f"{context.opcode} with reduce={reduce} does not take {operand.dtype.core_name}",
        operand=0,
        help=help_,
        found=operand.dtype.core_name,
        allowed=allowed,
        dtype=operand.dtype.core_name,
    )


# numpy


def evaluate_gather(windows_of: WindowsRule) -> EvalRule:
    """Return the numpy rule of a gather of these windows."""

    def rule(context: EvalContext) -> Array:
        operand, indices = context.operands
        shapes = (operand.shape, indices.shape, context.result_type.extents)
        windows = windows_of(context.attributes, shapes)
        windows.require(context, indices)
        if 0 in windows.shape:
            return np.empty(windows.shape, operand.dtype)
        return np.asarray(operand[tuple(windows.places(indices))]).reshape(windows.shape)

    return rule


def evaluate_scatter(windows_of: WindowsRule) -> EvalRule:
    """Return the numpy rule of a scatter to these windows."""

    def rule(context: EvalContext) -> Array:
        operand, indices, updates = context.operands
        windows = windows_of(context.attributes, [array.shape for array in context.operands])
        windows.require(context, indices)
        places = windows.places(indices)
        inside = np.ones(updates.shape, np.bool_)
        for place, extent in zip(places, operand.shape, strict=True):
            inside &= (place >= 0) & (place < extent)
        return combined(context, [place[inside] for place in places], updates[inside])

    return rule


def combined(context: EvalContext, places: Sequence[Array], updates: Array) -> Array:
    """Return the operand of a scatter combined with ``updates`` at ``places`` in its dimensions, in order."""
    operand, dtype = context.operands[0], context.result_type.dtype
    reduce: str = context.attributes.get("reduce", "Add")
    at: Array = np.zeros(updates.shape, np.int64)
    for place, extent in zip(places, operand.shape, strict=True):
        at = np.asarray(at * extent + place)
    at, added, result = at.reshape(-1), updates.reshape(-1), operand.reshape(-1)
    if reduce == "Replace":
        result = result.copy()
        for where, update in zip(at, added, strict=True):  # the last one stays
            result[where] = update
        return result.reshape(operand.shape)
    wide = computed_dtype(dtype).numpy
    result, added = result.astype(wide), added.astype(wide)
    if reduce in ("Max", "Min"):
        _extreme_at(result, at, added, reduce)
    else:
        (np.add if reduce == "Add" else np.multiply).at(result, at, added)
    return rounded_once(result, dtype).reshape(operand.shape)


def _extreme_at(result: Array, places: Array, updates: Array, reduce: str) -> None:
    """Let each element of ``result`` be the extreme of it and its updates; -0.0 is less than +0.0."""
    kept = np.maximum if reduce == "Max" else np.minimum
    if result.dtype.kind != "f":
        kept.at(result, places, updates)
        return
    # Of two zeros, numpy gives either: a zero has the sign of Max's, or Min's, if any of them has it.
    wanted = reduce == "Min"
    zero = (result == 0) & (np.signbit(result) == wanted)
    np.logical_or.at(zero, places, (updates == 0) & (np.signbit(updates) == wanted))
    kept.at(result, places, updates)
    result[(result == 0) & zero] = -0.0 if wanted else 0.0
    result[(result == 0) & ~zero] = 0.0 if wanted else -0.0


# linalg


def lower_gather(windows_of: WindowsRule) -> LinalgRule:
    """Return the linalg rule of a gather of these windows: a loop over the result."""

    def rule(context: LoweringContext) -> Any:
        result, operand = context.result_type, context.operands[0]
        shapes = [type_.extents for type_ in (*context.operand_types, result)]
        windows = windows_of(context.attributes, shapes)
        numbers = windows.unchecked(context)
        read = affine_places(context, windows, numbers)
        if read is not None:
            maps = [read, context.mlir.ir.AffineMap.get_identity(result.rank)]
            parallel = ["parallel"] * result.rank
            return context.generic([operand], maps, [context.empty(result)], parallel, lambda x, _: x)[0]
        windows.check(context, numbers)
        if result.element_count == 0 or context.operand_types[0].element_count == 0:
            return context.filled(result, 0)  # there is nothing to read

        def body(places: Sequence[Any]) -> Any:
            return context.mlir.tensor.extract(operand, places)

        return _over_windows(context, windows, numbers, result, len(windows.operand), body)

    return rule


def lower_scatter(windows_of: WindowsRule) -> LinalgRule:
    """Return the linalg rule of a scatter to these windows: a loop over rows of the updates."""

    def rule(context: LoweringContext) -> Any:
        operand, _, updates = context.operand_types
        windows = windows_of(context.attributes, [type_.extents for type_ in context.operand_types])
        numbers = windows.numbers(context)
        if operand.element_count == 0 or updates.element_count == 0:
            return context.operands[0]
        kept = updates.rank - windows.full_rank
        row_shape, width = updates.extents[:kept], math.prod(updates.extents[kept:])
        may_wrap = windows.bounds is Bounds.SKIPPED
        dtype = DType.SI64 if may_wrap else narrowest(math.prod(operand.extents))
        rows = _row_numbers(context, windows, numbers, TensorType(dtype, row_shape))

        def row(at: Any) -> Any:
            found = context.mlir.tensor.extract(rows, [at])
            return context.mlir.arith.index_cast(context.mlir.ir.IndexType.get(), found)

        number = context.arithmetic(computed_dtype(operand.dtype))
        combine = {
            "Add": number.add,
            "Mul": number.multiply,
            "Max": number.maximum,
            "Min": number.minimum,
            "Replace": None,
        }
        return scatter_rows(
            context,
            row,
            math.prod(row_shape),
            width,
            combine[context.attributes.get("reduce", "Add")],
            windows.lines,
            skips=windows.bounds is Bounds.SKIPPED,
        )

    return rule


def _row_numbers(
    context: LoweringContext, windows: Windows, numbers: Sequence[Any], type_: TensorType
) -> Any:
    """Append a flat tensor of ``type_``: where each row of the updates goes; the count of rows for nowhere.

    Sums of positions that may be outside may wrap around, which takes them outside as well.
    """
    arith, dtype = context.mlir.arith, type_.dtype
    extents = windows.operand[: len(windows.operand) - windows.full_rank]

    def body(places: Sequence[Any]) -> Any:
        row, inside = None, None
        for dim, (extent, index) in enumerate(zip(extents, places, strict=True)):
            place, end = _as_number(context, index, dtype), context.scalar(extent, dtype)
            if windows.bounds is Bounds.SKIPPED and dim in windows.indexed:
                fits = arith.cmpi(arith.CmpIPredicate.ult, place, end)
                inside = fits if inside is None else arith.andi(inside, fits)
            row = place if row is None else arith.addi(arith.muli(row, end), place)
        if row is None:
            return context.scalar(0, dtype)
        if inside is None:
            return row
        return arith.select(inside, row, context.scalar(math.prod(extents), DType.SI64))

    rows = _over_windows(context, windows, numbers, type_, len(extents), body)
    return reshape(context, rows, type_, (type_.element_count,))


def _as_number(context: LoweringContext, place: Any, dtype: DType) -> Any:
    """Append a place, of type `index`, as a number of ``dtype``: that which it was made of, if it was one."""
    type_, op = context.element(dtype), place.owner
    if getattr(op, "name", "") == "arith.index_cast" and op.operands[0].type == type_:
        return op.operands[0]
    return context.mlir.arith.index_cast(type_, place)


def _over_windows(
    context: LoweringContext,
    windows: Windows,
    numbers: Sequence[Any],
    type_: TensorType,
    rank: int,
    body: Callable[[Sequence[Any]], Any],
) -> Any:
    """Append a tensor of ``type_``, of all windows or their first dimensions, and return it.

    ``body`` gives an element for where it lies in the first ``rank`` dimensions of the operand. Numbers that
    were broadcast, and are read again and again, are brought within bounds before that.
    """
    affine = context.mlir.ir.AffineMap
    dims = [context.mlir.ir.AffineDimExpr.get(dim) for dim in windows.scattered]
    pairs = [context.read_through(each, affine.get(type_.rank, 0, dims)) for each in numbers]
    sources, maps = [each for each, _ in pairs], [access for _, access in pairs]
    count = math.prod(windows.shape[dim] for dim in windows.scattered)
    settled = [
        dim
        for dim, source in zip(windows.indexed, sources, strict=False)
        if math.prod(source.type.shape) < count
    ]
    for place, dim in enumerate(windows.indexed):
        if dim in settled:
            sources[place] = windows.settled(context, sources[place], dim)

    def element(*elements: Any) -> Any:
        return body(windows.places_in(context, elements[:-1], rank, settled))

    maps.append(affine.get_identity(type_.rank))
    (found,) = context.generic(sources, maps, [context.empty(type_)], ["parallel"] * type_.rank, element)
    return found


# The loop over rows of updates, which is scheduled as a whole. Operand and updates are flat tensors of rows
# of some width, so that a row of any rank is contiguous. The rows are combined one after the other: what two
# updates of one row give does not depend on who combines them.


#: Marks the loop over the rows of updates, whose body ends with the loop over the columns.
SCATTER_ATTRIBUTE = "mind.scatter"
#: Says how updates of single elements lie, `[outer, along, inner]`: those that differ in the first or in the
#: last of the three go to different elements.
LINES_ATTRIBUTE = "mind.lines"


def rounded_once(total: Array, dtype: DType) -> Array:
    """Return numbers of the accumulator's dtype as those of ``dtype``: rounded, or wrapped around."""
    if dtype.bits != 4:
        return total.astype(dtype.numpy)
    low = np.asarray(total & 15)
    return np.asarray(np.where(low > 7, low - 16, low) if dtype is DType.SI4 else low, dtype.numpy)


def scatter_rows(
    context: LoweringContext,
    row: Callable[[Any], Any],
    count: int,
    width: int,
    combine: Callable[[Any, Any], Any] | None,
    lines: tuple[int, int, int] | None = None,
    *,
    skips: bool = False,
) -> Any:
    """Append the combination of rows of the third operand with those of the first, and return the result.

    Args:
        context: The operation being lowered, of an operand, indices and updates, neither empty.
        row: From the number of a row of updates to that of the operand's row, both of type `index`.
        count: How many rows of updates there are.
        width: The elements of a row.
        combine: From the old element and the update to the new element, of the accumulator's dtype and, but
            for complex numbers, by a single operation; None where the update takes the old element's place.
        lines: Three factors of ``count``, where rows are single elements: updates whose numbers differ in the
            first or the last of these digits go to different elements. None where nothing is known of that.
        skips: Whether a row of updates may have no place: ``row`` gives then how many rows there are.
    """
    result = context.result_type
    dtype = computed_dtype(result.dtype) if combine else result.dtype
    flat = result.with_dtype(dtype).with_shape((result.element_count,))
    start = _copied(context, context.operands[0], context.operand_types[0], flat)
    updates = _flat(context, context.operands[2], context.operand_types[2], dtype)
    arith, tensor, index = context.mlir.arith, context.mlir.tensor, context.mlir.ir.IndexType.get()

    def add_row(at: Any, carried: Sequence[Any]) -> Sequence[Any]:
        to = row(at)
        stride = end = arith.constant(index, width)
        first_target, first_update = (
            (to, at) if width == 1 else (arith.muli(to, stride), arith.muli(at, stride))
        )

        def add_element(column: Any, target: Sequence[Any]) -> Sequence[Any]:
            position = [arith.addi(first_target, column)]
            element = tensor.extract(updates, [arith.addi(first_update, column)])
            if combine is not None:
                element = combine(tensor.extract(target[0], position), element)
            return [tensor.insert(element, target[0], position)]

        if skips:
            rows, nothing = (arith.constant(index, n) for n in (result.element_count // width, 0))
            end = arith.select(arith.cmpi(arith.CmpIPredicate.ult, to, rows), stride, nothing)
        return counted_loop(context, 0, end, carried, add_element)

    (scattered,) = counted_loop(context, 0, arith.constant(index, count), [start], add_row)
    # Vectors hold no complex numbers: theirs stays a loop over single ones.
    if dtype not in (DType.CF32, DType.CF64):
        scattered.owner.attributes[SCATTER_ATTRIBUTE] = context.mlir.ir.UnitAttr.get()
        if width == 1:
            attribute = context.mlir.ir.DenseI64ArrayAttr.get(list(lines or (1, count, 1)))
            scattered.owner.attributes[LINES_ATTRIBUTE] = attribute
    shaped = reshape(context, scattered, flat, result.extents)
    if dtype is result.dtype:
        return shaped
    return context.elementwise(context.arithmetic(result.dtype).rounded, [shaped])


def _copied(context: LoweringContext, value: Any, type_: TensorType, flat: TensorType) -> Any:
    """Append a copy of ``value`` of type ``flat``; a fill is repeated instead of read."""
    if context.element(type_.dtype) != context.element(flat.dtype):
        return _flat(context, value, type_, flat.dtype)
    source = value.owner
    if getattr(source, "name", "") == "linalg.fill":
        return context.named("fill", [source.operands[0]], context.empty(flat), flat)
    return context.named("copy", [_flat(context, value, type_, type_.dtype)], context.empty(flat), flat)


def _flat(context: LoweringContext, value: Any, type_: TensorType, dtype: DType) -> Any:
    """Append ``value`` as a flat tensor, of wider numbers where ``dtype`` is another than its own."""
    if context.element(type_.dtype) != context.element(dtype):
        number = context.arithmetic(type_.dtype)
        value = context.elementwise(number.widened, [value], type_.with_dtype(dtype))
    return reshape(context, value, type_.with_dtype(dtype), (type_.element_count,))
