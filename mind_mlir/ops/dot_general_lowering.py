"""DotGeneral in linalg: one operation over all dimensions, which the scheduler merges where memory allows.

It reads its operands as they lie where a product can.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.types import DType, DTypeKind, TensorType
from mind_mlir.ops.accumulators import Accumulation
from mind_mlir.ops.complex_parts import products_of_parts
from mind_mlir.ops.conversion import converted
from mind_mlir.ops.opdef import COMPLEX
from mind_mlir.ops.reassociation import transposed
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.mlir.context import LoweringContext


@dataclass(frozen=True, slots=True)
class Roles:
    """The axes of one operand by their roles, counted from the front.

    Attributes:
        batch: Those that both operands have, in the given order.
        free: Those that the other one lacks, ascending.
        contracted: Those that are summed over, in the given order.
    """

    batch: tuple[int, ...]
    free: tuple[int, ...]
    contracted: tuple[int, ...]

    def shape(self, shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
        """Return the extents of ``axes``."""
        return tuple(shape[axis] for axis in axes)


def roles_of(attributes: Mapping[str, Any], side: str, rank: int) -> Roles:
    """Return the roles of the ``rank`` axes of the operand on ``side``, ``lhs`` or ``rhs``."""
    batch, contracted = (
        tuple(axis % rank for axis in attributes[f"{role}_{side}"]) for role in ("batch", "contract")
    )
    free = tuple(axis for axis in range(rank) if axis not in (*batch, *contracted))
    return Roles(batch, free, contracted)


#: What no kernel reads: it is converted before the product.
_UNREAD = tuple(dtype for dtype in DType if dtype.is_float and dtype.bits == 8)


def lower(context: LoweringContext) -> Any:
    """Append the product."""
    result, accumulator = context.result_type, context.attributes["accum_dtype"]
    if result.element_count == 0:
        return context.empty(result)
    if any(type_.element_count == 0 for type_ in context.operand_types):
        return context.filled(result, 0)
    if accumulator in COMPLEX:
        return products_of_parts(context, lower)
    dtypes = Accumulation(context, accumulator, accumulator, result.dtype)
    return dtypes.result(_product(context, accumulator, result.with_dtype(dtypes.computed)), result)


def _product(context: LoweringContext, accumulator: DType, type_: TensorType) -> Any:
    """Append the sums of products in ``type_``, whose dtype holds what ``accumulator`` does."""
    affine = context.mlir.ir.AffineMap
    left, right = context.operand_types
    lhs = roles_of(context.attributes, "lhs", left.rank)
    rhs = roles_of(context.attributes, "rhs", right.rank)
    depth, loops = len(lhs.contracted), type_.rank + len(lhs.contracted)
    dims = range(loops)
    batch, summed = dims[: len(lhs.batch)], dims[type_.rank :]
    rows = dims[len(lhs.batch) : len(lhs.batch) + len(lhs.free)]
    columns = dims[len(lhs.batch) + len(lhs.free) : type_.rank]
    order = [(*lhs.batch, *lhs.free, *lhs.contracted), (*rhs.batch, *rhs.contracted, *rhs.free)]
    loops_of = [(*batch, *rows, *summed), (*batch, *summed, *columns)]
    factors, maps = [], []
    for place, type_of in enumerate(context.operand_types):
        value, dtype = factor(context, place, accumulator, type_.dtype)
        moved = order[place]
        if _is_read_in_place((lhs, rhs), place, type_of.rank):
            moved = tuple(range(type_of.rank))
        accessed = dict(zip(order[place], loops_of[place], strict=True))
        access = [context.mlir.ir.AffineDimExpr.get(accessed[axis]) for axis in moved]
        factors.append((transposed(context, value, type_of.with_dtype(dtype), moved), dtype))
        maps.append(affine.get(loops, 0, access))
    maps.append(affine.get(loops, 0, [context.mlir.ir.AffineDimExpr.get(dim) for dim in dims[: type_.rank]]))
    arithmetic = context.arithmetic(type_.dtype)

    def body(a: Any, b: Any, total: Any) -> Any:
        terms = [
            converted(context, value, dtype, type_.dtype)
            for value, (_, dtype) in zip((a, b), factors, strict=True)
        ]
        product = arithmetic.multiply(*terms)
        return arithmetic.add(total, product) if depth else product

    init = context.filled(type_, 0) if depth else context.empty(type_)
    iterators = ["parallel"] * type_.rank + ["reduction"] * depth
    (value,) = context.generic([value for value, _ in factors], maps, [init], iterators, body)
    return value


def _is_read_in_place(roles: tuple[Roles, Roles], place: int, rank: int) -> bool:
    """Return whether products read an operand as it lies; else it is transposed before.

    Of the factor that has the columns, rows along these or along the depth are contiguous; the other factor
    may lie in any order. Where neither has any, or nothing is summed, there is no product: loops run along
    what is contiguous in both.
    """
    lhs, rhs = roles
    if not lhs.contracted or not (lhs.free or rhs.free):
        return False
    with_columns = 1 if rhs.free else 0
    return place != with_columns or (rank - 1) not in roles[place].batch


def factor(context: LoweringContext, place: int, accumulator: DType, computed: DType) -> tuple[Any, DType]:
    """Return an operand in a dtype that a product converts exactly to ``computed``, and that dtype."""
    value, type_ = context.operands[place], context.operand_types[place]
    dtype = type_.dtype
    if _widens(dtype, accumulator):
        return value, dtype

    def term(x: Any) -> Any:
        return converted(context, converted(context, x, dtype, accumulator), accumulator, computed)

    return context.elementwise(term, [value], type_.with_dtype(computed)), computed


def _widens(dtype: DType, accumulator: DType) -> bool:
    """Return whether kernels convert elements of ``dtype`` to ``accumulator`` as they read them."""
    if dtype in _UNREAD:
        return False
    kinds = (dtype.kind, accumulator.kind)
    holds_all = kinds[0] is kinds[1] or kinds == (DTypeKind.UNSIGNED, DTypeKind.SIGNED)
    return dtype is accumulator or (holds_all and dtype.bits < accumulator.bits)
