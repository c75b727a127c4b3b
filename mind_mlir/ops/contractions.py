"""Contractions: inner, matrix-vector and (batched) matrix products.

Lowering: the linalg named operation where there is one for the shapes, else a `linalg.generic` whose maps are
projected permutations. A batch that only one side has is merged into the rows of one large product.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import TensorType, format_shape
from mind_mlir.ops import stablehlo_contractions as hlo
from mind_mlir.ops.accumulation import ACCURACY
from mind_mlir.ops.contract_forms import dot_form, matmul_form
from mind_mlir.ops.dims_rules import multiplying
from mind_mlir.ops.opdef import Alias, Example, OpDef, OperandDef, Rounding
from mind_mlir.ops.open_sums import product
from mind_mlir.ops.reassociation import reshape
from mind_mlir.ops.shapes import broadcast

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array, AttributeValue
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.contexts import EvalContext, TypeContext
    from mind_mlir.ops.vjp import VjpContext

#: The linalg operation for each pair of ranks of `Dot`.
_NAMED_PRODUCTS = {(1, 1): "dot", (2, 1): "matvec", (1, 2): "vecmat", (2, 2): "matmul"}


# Types


def _check_ranks(context: TypeContext, lowest: int, highest: float, expected: str) -> None:
    for index, type_ in enumerate(context.operands):
        if lowest <= type_.rank <= highest:
            continue
        name = ("lhs", "rhs")[index]
        context.report(
            "E3002",
            f"{context.opcode} needs operands of {expected}, but its {name} has rank {type_.rank}",
            operand=index,
            notes=(f"{name} has type {type_}",),
            help="ExpandDims adds a dimension of extent 1, Reshape merges dimensions",
            expected=expected,
            found=type_.rank,
        )
    context.stop_if_reported()


def _check_contracted(context: TypeContext) -> None:
    left, right = context.operands
    right_axis = max(right.rank - 2, 0)
    inner, outer = left.shape[-1], right.shape[right_axis]
    if inner == outer:
        return
    context.fail(
        "E3003",
        f"{context.opcode} contracts dimension {left.rank - 1} of its lhs with dimension {right_axis} of its "
        f"rhs, but their extents are {inner} and {outer}",
        notes=(f"lhs has shape {format_shape(left.shape)}", f"rhs has shape {format_shape(right.shape)}"),
        help="the last dimension of the lhs must equal the second to last (or only) one of the rhs; "
        "Transpose can exchange dimensions",
        dimension="K",
        extents=(inner, outer),
    )


def _dot_type(context: TypeContext) -> TensorType:
    _check_ranks(context, 1, 2, "rank 1 or 2")
    _check_contracted(context)
    left, right = context.operands
    return left.with_shape((*left.shape[:-1], *right.shape[1:]))


def _matmul_type(context: TypeContext) -> TensorType:
    _check_ranks(context, 2, math.inf, "rank 2 or more")
    _check_contracted(context)
    left, right = context.operands
    batch = broadcast(context, left.shape[:-2], right.shape[:-2])
    return left.with_shape((*batch, left.shape[-2], right.shape[-1]))


# Values


def _matmul(context: EvalContext) -> Array:
    left, right = context.operands
    if 0 in context.result_type.shape:  # numpy goes through all matrices, be they empty
        return np.zeros(context.result_type.extents, context.result_type.dtype.numpy)
    # For vectors, too: np.dot takes 0 * inf for 0 where the inner extent is 1.
    return np.asarray(np.matmul(left, right))


# Derivatives


def _dot_vjp(context: VjpContext) -> Sequence[Value | None]:
    left, right = context.operands
    if len(left.shape) == len(right.shape) == 2:
        return _matmul_vjp(context)
    return (
        _dot_lhs_vjp(context, left, right) if context.needs[0] else None,
        _dot_rhs_vjp(context, left, right) if context.needs[1] else None,
    )


def _dot_lhs_vjp(context: VjpContext, left: Value, right: Value) -> Value:
    if len(left.shape) == 2:
        return _outer(context, context.cotangent, right)
    if len(right.shape) == 2:
        return context.emit("Dot", right, context.cotangent)  # g . x2^T without the transposition
    return context.emit("Mul", context.cotangent, right)


def _dot_rhs_vjp(context: VjpContext, left: Value, right: Value) -> Value:
    if len(left.shape) == 2:
        return context.emit("Dot", context.cotangent, left)  # x1^T . g without the transposition
    if len(right.shape) == 2:
        return _outer(context, left, context.cotangent)
    return context.emit("Mul", context.cotangent, left)


def _matmul_vjp(context: VjpContext) -> Sequence[Value | None]:
    return (
        _matmul_lhs_vjp(context) if context.needs[0] else None,
        _matmul_rhs_vjp(context) if context.needs[1] else None,
    )


def _matmul_lhs_vjp(context: VjpContext) -> Value:
    _, right = context.operands
    return context.emit("MatMul", context.cotangent, _transposed(context, right))


def _matmul_rhs_vjp(context: VjpContext) -> Value:
    left, right = context.operands
    gradient = context.cotangent
    if _is_one_product(left.shape, right.shape) and 0 not in (*left.shape, *gradient.shape):
        # One matrix serves the whole batch: sum over it inside one product instead of building a batch of
        # gradients for the driver to sum.
        left, gradient = _rows(context, left), _rows(context, gradient)
        product = context.emit("MatMul", _transposed(context, left), gradient)
        return product if product.shape == right.shape else _reshaped(context, product, right.shape)
    return context.emit("MatMul", _transposed(context, left), gradient)


def _is_one_product(left: tuple[int, ...], right: tuple[int, ...]) -> bool:
    """Return whether one matrix on the right multiplies a batch of them on the left."""
    return len(left) > 2 and len(left) >= len(right) and math.prod(right[:-2]) == 1


def _outer(context: VjpContext, column: Value, row: Value) -> Value:
    return context.emit(
        "Mul", context.emit("ExpandDims", column, axes=(1,)), context.emit("ExpandDims", row, axes=(0,))
    )


def _transposed(context: VjpContext, value: Value) -> Value:
    rank = len(value.shape)
    return context.emit("Transpose", value, permutation=(*range(rank - 2), rank - 1, rank - 2))


def _rows(context: VjpContext, value: Value) -> Value:
    return _reshaped(context, value, (math.prod(value.shape[:-1]), value.shape[-1]))


def _reshaped(context: VjpContext, value: Value, shape: tuple[int, ...]) -> Value:
    return context.emit("Reshape", value, new_shape=shape)


# Lowering


def _lower_dot(context: LoweringContext) -> Any:
    left, right = context.operand_types
    if 0 in (*left.extents, *right.extents):
        return context.filled(context.result_type, 0)
    name = _NAMED_PRODUCTS[left.rank, right.rank]
    return context.named(name, context.operands, context.filled(context.result_type, 0), context.result_type)


def _lower_matmul(context: LoweringContext) -> Any:
    left, right = context.operand_types
    result = context.result_type
    if 0 in (*left.extents, *right.extents):
        return context.filled(result, 0)  # nothing to sum over, or nothing to compute
    batch = result.extents[:-2]
    if _is_one_product(left.extents, right.extents):
        return _lower_reshaped(context, "matmul", (math.prod(left.extents[:-1]),), ())
    left_batch, right_batch = (_aligned_batch(type_, len(batch)) for type_ in (left, right))
    if left_batch != right_batch:
        return _lower_broadcast(context, left_batch, right_batch)
    if math.prod(batch) == 1:
        return _lower_reshaped(context, "matmul", (result.extents[-2],), ())
    return _lower_reshaped(
        context, "batch_matmul", (math.prod(batch), result.extents[-2]), (math.prod(batch),)
    )


def _lower_reshaped(
    context: LoweringContext, name: str, left_leading: tuple[int, ...], right_leading: tuple[int, ...]
) -> Any:
    """Append ``linalg.<name>`` of the operands with their leading dimensions merged.

    Args:
        context: A `MatMul` whose operands merge without moving data.
        name: A named operation.
        left_leading: The lhs' shape without K; with N appended, the product's shape.
        right_leading: The rhs' shape without K and N.
    """
    left, right = context.operand_types
    k, n = right.extents[-2:]
    result = context.result_type
    product = result.with_shape((*left_leading, n))
    operands = [
        reshape(context, context.operands[0], left, (*left_leading, k)),
        reshape(context, context.operands[1], right, (*right_leading, k, n)),
    ]
    value = context.named(name, operands, context.filled(product, 0), product)
    return reshape(context, value, product, result.extents)


def _aligned_batch(type_: TensorType, rank: int) -> tuple[int, ...]:
    batch = type_.extents[:-2]
    return (1,) * (rank - len(batch)) + batch


def _lower_broadcast(
    context: LoweringContext, left_batch: tuple[int, ...], right_batch: tuple[int, ...]
) -> Any:
    ir, arith = context.mlir.ir, context.mlir.arith
    result = context.result_type
    loops = result.rank + 1
    *batch, m, n, k = (ir.AffineDimExpr.get(loop) for loop in range(loops))
    left, left_axes = _without_stretched(context, 0, left_batch)
    right, right_axes = _without_stretched(context, 1, right_batch)
    maps = [
        ir.AffineMap.get(loops, 0, [*(batch[axis] for axis in left_axes), m, k]),
        ir.AffineMap.get(loops, 0, [*(batch[axis] for axis in right_axes), k, n]),
        ir.AffineMap.get(loops, 0, [*batch, m, n]),
    ]
    multiply, add = (arith.mulf, arith.addf) if result.dtype.is_float else (arith.muli, arith.addi)
    (value,) = context.generic(
        [left, right],
        maps,
        [context.filled(result, 0)],
        ["parallel"] * result.rank + ["reduction"],
        lambda a, b, accumulator: add(accumulator, multiply(a, b)),
    )
    return value


def _without_stretched(context: LoweringContext, index: int, batch: tuple[int, ...]) -> tuple[Any, list[int]]:
    """Return an operand without the batch axes along which it is repeated, and the axes that are left.

    So the maps stay projected permutations, which every linalg transformation takes.
    """
    type_ = context.operand_types[index]
    axes = [axis for axis, extent in enumerate(batch) if extent == context.result_type.extents[axis]]
    shape = (*(batch[axis] for axis in axes), *type_.extents[-2:])
    return reshape(context, context.operands[index], type_, shape), axes


def _terms(shapes: Sequence[tuple[int, ...]], _: Mapping[str, AttributeValue]) -> int:
    return shapes[0][-1]


INTEGERS_WRAP = "Integers wrap around on overflow (two's complement)."
SUM_ORDER = (
    "The order of the additions, and whether a product is fused with its addition, are not specified; floats "
    "may differ in the last bits from a sum taken in index order. The order depends on the shapes and the "
    f"instruction set alone, never on the number of threads. {ACCURACY}"
)
_EMPTY = "A contraction over extent 0 (from an empty Slice) is 0."

OPERATIONS: tuple[OpDef, ...] = (
    OpDef(
        opcode="Dot",
        summary="Computes the product of two vectors or matrices.",
        description="Contracts the last dimension of `lhs` with the first of `rhs`: `[n] . [n] -> []` (inner "
        "product), `[m, n] . [n] -> [m]`, `[m] . [m, n] -> [n]`, `[m, k] . [k, n] -> [m, n]` (as MatMul). "
        "Other ranks are E3002, inner extents that differ E3003, dtypes that differ E2004.",
        spec="core-ir.md, Linear and tensor algebra",
        operands=(OperandDef("lhs"), OperandDef("rhs")),
        type_rule=_dot_type,
        evaluate=_matmul,
        derivative=_dot_vjp,
        contracts=True,
        dims=multiplying,
        open_axes=product,
        lower=_lower_dot,
        stablehlo=hlo.dot,
        in_contract=dot_form,
        rounding=Rounding.ACCUMULATING,
        terms=_terms,
        choices=(INTEGERS_WRAP, SUM_ORDER, _EMPTY),
        examples=(
            Example(("T[7]", "T[7]"), note="inner product"),
            Example(("T[5, 7]", "T[7]"), note="matrix times vector"),
            Example(("T[5]", "T[5, 7]"), note="vector times matrix"),
            Example(("T[5, 3]", "T[3, 7]"), note="matrix times matrix"),
            Example(("T[1]", "T[1]")),
            Example(("T[37, 1]", "T[1]"), note="K = 1"),
            Example(("T[1]", "T[1, 13]")),
            Example(("T[1, 17]", "T[17, 1]")),
            Example(("T[131]", "T[131]"), note="longer than a vector register, and prime"),
            Example(("T[3, 0]", "T[0]"), note="an empty sum is 0"),
        ),
    ),
    OpDef(
        opcode="MatMul",
        mnemonic="matmul",
        summary="Computes the product of two matrices, or of batches of them.",
        description="`result[..., i, j] = sum over k of lhs[..., i, k] * rhs[..., k, j]` for `lhs: [..., M, "
        "K]` and `rhs: [..., K, N]`; the leading batch dimensions broadcast (E3001 where they do not fit). A "
        "rank below 2 is E3002, a K that differs E3003, dtypes that differ E2004.",
        spec="core-ir.md, Linear and tensor algebra; core-ir-page.md, Matmul validation",
        operands=(OperandDef("lhs"), OperandDef("rhs")),
        type_rule=_matmul_type,
        evaluate=_matmul,
        derivative=_matmul_vjp,
        contracts=True,
        dims=multiplying,
        open_axes=product,
        lower=_lower_matmul,
        stablehlo=hlo.matmul,
        in_contract=matmul_form,
        rounding=Rounding.ACCUMULATING,
        terms=_terms,
        choices=(INTEGERS_WRAP, SUM_ORDER, _EMPTY),
        aliases=(Alias("core-functions", "tensor.matmul"),),
        examples=(
            Example(("T[5, 3]", "T[3, 7]")),
            Example(("T[1, 1]", "T[1, 1]")),
            Example(("T[17, 1]", "T[1, 13]"), note="K = 1"),
            Example(("T[1, 37]", "T[37, 1]")),
            Example(("T[31, 41]", "T[41, 37]"), note="primes: no extent divides a tile"),
            Example(("T[2, 5, 3]", "T[2, 3, 7]"), note="a batch"),
            Example(("T[2, 3, 5, 3]", "T[2, 3, 3, 2]"), note="two batch dimensions"),
            Example(("T[4, 5, 3]", "T[3, 7]"), note="one rhs for the whole batch"),
            Example(("T[5, 3]", "T[4, 3, 7]"), note="one lhs for the whole batch"),
            Example(("T[2, 1, 5, 3]", "T[3, 3, 7]"), note="both batches stretch"),
            Example(("T[1, 5, 3]", "T[1, 1, 3, 2]"), note="batches of one"),
            Example(("T[2, 5, 0]", "T[2, 0, 3]"), note="an empty sum is 0"),
            Example(("T[0, 5, 3]", "T[3, 7]"), note="an empty batch"),
        ),
    ),
)
