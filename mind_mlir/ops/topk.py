"""TopK: the greatest or least elements of an axis, in order, and where they lie (ptir-v0.4.md, extensions).

Lowering: few elements are kept in lists (`topk_lists`). For more of them the indices of each row are sorted
by merging runs of twice the length in each pass, which is stable and takes time in proportion to n log n
whatever the values are.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops import numbers
from mind_mlir.ops import stablehlo_reductions as hlo
from mind_mlir.ops.argmax import check_index_dtype
from mind_mlir.ops.attribute_kinds import AttrKind
from mind_mlir.ops.axes import NEGATIVE_AXIS, counted_from_front, require_axis
from mind_mlir.ops.contract import Contract, Field, FieldKind
from mind_mlir.ops.opdef import ALL_REAL, BOOL, NO_ORDER, AttributeDef, Example, OpDef, OperandDef
from mind_mlir.ops.reassociation import reshape
from mind_mlir.ops.topk_lists import LONGEST, Lists

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext, TypeContext
    from mind_mlir.ops.opdef import DTypeSet
    from mind_mlir.ops.vjp import VjpContext

_DTYPES: DTypeSet = BOOL + ALL_REAL


def _type(context: TypeContext) -> tuple[TensorType, ...]:
    (operand,), attributes = context.operands, context.attributes
    axis = require_axis(context, operand.rank)
    extent, k = operand.shape[axis], attributes["k"]
    check_index_dtype(context, "indices_dtype", extent)
    if k < 0 or (isinstance(extent, int) and k > extent):
        context.fail(
            "E4123",
            f"TopK takes {k} elements along axis {axis}, which has {extent}",
            attribute="k",
            notes=(f"the operand has type {operand}",),
            help=f"k must lie in [0, {extent}]",
            dimension=axis,
            extents=(k, extent),
        )
    shape = tuple(k if place == axis else each for place, each in enumerate(operand.shape))
    return operand.with_shape(shape), TensorType(attributes["indices_dtype"], shape)


def _evaluate(context: EvalContext) -> tuple[Array, ...]:
    (operand,), attributes = context.operands, context.attributes
    axis = attributes["axis"] % operand.ndim
    keys = numbers.widened(operand)
    if attributes["largest"]:
        # A stable sort of the reverse, read backwards, has equal elements in order.
        reverse = np.flip(keys, axis)
        order = np.flip(np.argsort(reverse, axis=axis, kind="stable"), axis)
        order = operand.shape[axis] - 1 - order
    else:
        order = np.argsort(keys, axis=axis, kind="stable")
    indices = np.take(order, range(attributes["k"]), axis=axis)
    values = np.take_along_axis(operand, indices, axis=axis)
    return np.asarray(values), np.asarray(indices, context.result_types[1].dtype.numpy)


def _vjp(context: VjpContext) -> Sequence[Value | None]:
    (operand,), cotangent = context.operands, context.cotangents[0]
    if cotangent is None:
        return (None,)
    zeros = context.zeros(operand.type)
    if 0 in cotangent.shape:
        return (zeros,)
    axis = context.attributes["axis"]
    indices = context.results[1]
    return (context.emit("ScatterReduce", zeros, indices, cotangent, axis=axis, reduce="Add"),)


def _lower(context: LoweringContext) -> Any:
    (operand,), (source,), results = context.operands, context.operand_types, context.result_types
    if results[0].element_count == 0:
        return [context.empty(type_) for type_ in results]
    axis = context.attributes["axis"] % source.rank
    last = (*(place for place in range(source.rank) if place != axis), axis)
    moved = source.with_shape(tuple(source.extents[place] for place in last))
    rows = moved.with_shape((math.prod(moved.extents[:-1]), moved.extents[-1]))
    keys = reshape(context, _transposed(context, operand, moved, last), moved, rows.extents)
    sort, k = _Sort(context, keys, rows), context.attributes["k"]
    taken = rows.with_shape((rows.extents[0], k))
    if k <= LONGEST:
        values, order = Lists(context, keys, rows, sort.before).emit(k)
    else:
        order = sort.emit(k)
        values = _gathered(context, keys, order, taken)
    back = tuple(last.index(place) for place in range(source.rank))
    found = []
    for value, type_ in zip((values, order), results, strict=True):
        shape = type_.with_shape(tuple(type_.extents[place] for place in last))
        whole = reshape(context, value, type_.with_shape(taken.extents), shape.extents)
        found.append(_transposed(context, whole, type_, back))
    return found


def _transposed(context: LoweringContext, value: Any, type_: TensorType, axes: tuple[int, ...]) -> Any:
    """Return ``value`` with ``axes`` in this order, which is of ``type_``."""
    if axes == tuple(range(type_.rank)):
        return value
    permutation = context.mlir.ir.DenseI64ArrayAttr.get(list(axes))
    return context.named("transpose", [value], context.empty(type_), type_, permutation=permutation)


def _gathered(context: LoweringContext, keys: Any, order: Any, type_: TensorType) -> Any:
    """Append the elements of each row of ``keys`` at the indices that ``order`` has of it."""
    mlir = context.mlir
    identity = mlir.ir.AffineMap.get_identity(type_.rank)

    def body(index: Any, _: Any) -> Any:
        at = mlir.arith.index_cast(mlir.ir.IndexType.get(), index)
        return mlir.tensor.extract(keys, [mlir.linalg.IndexOp(0).result, at])

    (values,) = context.generic(
        [order], [identity, identity], [context.empty(type_)], ["parallel"] * type_.rank, body
    )
    return values


class _Sort:
    """Emits the loops that sort the indices of each row.

    Args:
        context: The operation.
        keys: What the indices are sorted by, of rank 2.
        type_: Its type.
    """

    def __init__(self, context: LoweringContext, keys: Any, type_: TensorType) -> None:
        self._c, self._keys, self._type = context, keys, type_
        self._mlir, self._arith = context.mlir, context.mlir.arith
        self._dtype: DType = context.attributes["indices_dtype"]
        self._length = type_.extents[1]
        self._index = self._mlir.ir.IndexType.get()
        self._line = TensorType(self._dtype, (self._length,))

    def emit(self, k: int) -> Any:
        """Return a tensor of the first ``k`` indices of each row."""
        count = self._type.extents[0]
        result = self._c.empty(TensorType(self._dtype, (count, k)))

        def row(number: Any, carried: Sequence[Any]) -> Sequence[Any]:
            order = self._sorted(number)

            def place(at: Any, inside: Sequence[Any]) -> Sequence[Any]:
                return [self._mlir.tensor.insert(self._read(order, at), inside[0], [number, at])]

            return self._loop(k, carried, place)

        return self._loop(count, [result], row)[0]

    def _sorted(self, row: Any) -> Any:
        """Return the sorted indices of one row; None where they are in order as they are."""
        order, spare = None, self._c.empty(self._line)
        width = 1
        while width < self._length:
            target = self._c.empty(self._line) if width == 2 else spare
            # What a pass has read is written over by the next one: there are two lines of memory in all.
            order, spare = self._merged(row, order, target, width), order
            width *= 2
        return order

    def _merged(self, row: Any, order: Any, start: Any, width: int) -> Any:
        """Return ``order``, in which runs of ``width`` are sorted, with runs of twice that sorted.

        The result is written over ``start``. For the first pass, whose runs are single elements, ``order``
        is None: the indices in order.

        One loop goes through the result. It takes from the left run unless the right one's next element
        comes before; where a run is used up, what is read of it is any element.
        """
        arith, predicate = self._arith, self._arith.CmpIPredicate
        end = self._at(self._length)

        def step(at: Any, carried: Sequence[Any]) -> Sequence[Any]:
            target, left, right = carried
            begin = arith.muli(arith.divui(at, self._at(2 * width)), self._at(2 * width))
            middle = arith.minui(arith.addi(begin, self._at(width)), end)
            stop = arith.minui(arith.addi(begin, self._at(2 * width)), end)
            begins = arith.cmpi(predicate.eq, at, begin)
            left, right = arith.select(begins, begin, left), arith.select(begins, middle, right)
            mine, other = (self._read(order, self._within(place)) for place in (left, right))
            has_left = arith.cmpi(predicate.ult, left, middle)
            has_right = arith.cmpi(predicate.ult, right, stop)
            before = self.before(self._key(row, other), self._key(row, mine))
            takes = arith.andi(has_right, arith.ori(before, arith.xori(has_left, self._true())))
            target = self._mlir.tensor.insert(arith.select(takes, other, mine), target, [at])
            further = arith.index_castui(self._index, takes)
            return [
                target,
                arith.addi(left, arith.subi(self._at(1), further)),
                arith.addi(right, further),
            ]

        return self._loop(self._length, [start, self._at(0), self._at(0)], step)[0]

    def before(self, right: Any, left: Any) -> Any:
        """Emit whether element ``right`` comes before ``left`` though it has the greater index."""
        arithmetic, arith = self._c.arithmetic(self._type.dtype), self._arith
        largest = self._c.attributes["largest"]
        before = arithmetic.compare("Greater" if largest else "Less", right, left)
        if not self._type.dtype.is_float:
            return before
        # NaN is greater than all numbers, and equal to NaN.
        nans = [arithmetic.compare("NotEqual", value, value) for value in (right, left)]
        greater, lesser = nans if largest else reversed(nans)
        return arith.ori(before, arith.andi(greater, arith.xori(lesser, self._true())))

    def _key(self, row: Any, index: Any) -> Any:
        return self._mlir.tensor.extract(self._keys, [row, self._arith.index_cast(self._index, index)])

    def _read(self, order: Any, at: Any) -> Any:
        if order is None:
            return self._arith.index_cast(self._c.element(self._dtype), at)
        return self._mlir.tensor.extract(order, [at])

    def _within(self, at: Any) -> Any:
        return self._arith.minui(at, self._at(self._length - 1))

    def _at(self, number: int) -> Any:
        return self._arith.constant(self._index, number)

    def _true(self) -> Any:
        return self._c.scalar(1, DType.I1)

    def _loop(
        self, count: int, carried: Sequence[Any], body: Callable[[Any, Sequence[Any]], Sequence[Any]]
    ) -> list[Any]:
        """Append a loop: ``body`` maps the step and what is carried to what is carried on."""
        mlir = self._mlir
        loop = mlir.scf.ForOp(self._at(0), self._at(count), self._at(1), list(carried))
        with mlir.ir.InsertionPoint(loop.body):
            mlir.scf.YieldOp(list(body(loop.induction_variable, list(loop.inner_iter_args))))
        return list(loop.results)


def _form(k: int, axis: int, dtype: DType, *, largest: bool = True) -> dict[str, Any]:
    return {"k": k, "axis": axis, "largest": largest, "indices_dtype": dtype}


OPERATIONS = (
    OpDef(
        opcode="TopK",
        summary="Computes the greatest or the least elements along an axis, and where they lie.",
        description="The first result holds the `k` greatest elements along `axis`, the greatest one first, "
        "or without `largest` the `k` least ones, the least one first. The second one, of `indices_dtype`, "
        "which is i32 or i64 (E2005), holds their indices. An axis outside the rank is E3004, a `k` that is "
        "negative or exceeds the axis E4123. The gradient of the values goes to the elements they are.",
        spec="ptir-v0.4.md, Randomness, top-k, segments, quantization",
        operands=(OperandDef("input", _DTYPES),),
        attributes=(
            AttributeDef("k", AttrKind.I64, "how many elements"),
            AttributeDef("axis", AttrKind.I64, "the axis to search"),
            AttributeDef(
                "largest", AttrKind.BOOL, "whether the greatest or the least elements", default=True
            ),
            AttributeDef("indices_dtype", AttrKind.DTYPE, "the dtype of the indices, i32 or i64"),
        ),
        results=("values", "indices"),
        type_rule=_type,
        evaluate=_evaluate,
        derivative=_vjp,
        lower=_lower,
        stablehlo=hlo.top_k,
        normalize=counted_from_front,
        choices=(
            NEGATIVE_AXIS,
            "Elements are in order, and of equal ones that with the smaller index comes first; -0.0 equals "
            "0.0.",
            "NaN counts as greater than all numbers: it comes first among the greatest elements and last "
            "among the least ones.",
            "The values are elements of the input, bit for bit.",
        ),
        extension=True,
        never=(NO_ORDER,),
        contract=Contract(
            "TopK",
            fields=(
                Field("k", FieldKind.INTEGER),
                Field("axis", FieldKind.INTEGER),
                Field("largest", FieldKind.BOOLEAN),
                Field("indices_dtype", FieldKind.DTYPE),
            ),
        ),
        examples=(
            Example(("T[5, 37]",), _form(4, 1, DType.SI32)),
            Example(("T[37, 5]",), _form(7, 0, DType.SI64), "another axis"),
            Example(("T[2, 3, 4]",), _form(2, -2, DType.SI64, largest=False), "the least elements"),
            Example(("T[131]",), _form(131, 0, DType.SI32), "all elements, sorted"),
            Example(("T[3, 1]",), _form(1, 1, DType.SI32), "one element each"),
            Example(("T[3, 4]",), _form(0, 1, DType.SI32), "no elements"),
            Example(("T[0, 3]",), _form(2, 1, DType.SI64), "no rows"),
        ),
    ),
)
