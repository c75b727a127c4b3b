"""Linear operations on complex numbers, lowered as the same operations on their parts.

Kernels and vectors are those of floats: there are no vectors of complex numbers. A sum of complex numbers is
that of their real parts and that of their imaginary ones, bit for bit, and is as accurate as these are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.conversion import converted

if TYPE_CHECKING:
    from mind_mlir.mlir.context import LoweringContext


def by_parts(context: LoweringContext, lower: Callable[[LoweringContext], Any]) -> Any:
    """Append what ``lower`` does on the real parts of the complex operands, and on the imaginary ones.

    The operation is linear in its complex operands together, and its result is complex; operands of other
    dtypes stay as they are.
    """
    are_complex = [type_.dtype.is_complex for type_ in context.operand_types]
    real, imaginary = (
        lower(of_parts(context, [side if is_complex else None for is_complex in are_complex]))
        for side in ("re", "im")
    )
    return joined_tensor(context, real, imaginary, context.result_type)


def products_of_parts(context: LoweringContext, lower: Callable[[LoweringContext], Any]) -> Any:
    """Append sums of products of complex numbers: the four that ``lower`` appends of parts, put together.

    The operation has two operands, and accumulates in the complex dtype ``accum_dtype``.
    """
    result, accumulator = context.result_type, context.attributes["accum_dtype"]
    part = context.arithmetic(accumulator.part)
    total = result.with_dtype(accumulator)
    attributes = {**context.attributes, "out_dtype": accumulator}
    inner = replace(context, result_type=total, result_types=(total,), attributes=attributes)
    real, imaginary = (of_parts(inner, (side, side)) for side in ("re", "im"))
    (a, c), (b, d) = real.operands, imaginary.operands
    products = [lower(replace(real, operands=pair)) for pair in ((a, c), (b, d), (a, d), (b, c))]

    def finished(ac: Any, bd: Any, ad: Any, bc: Any) -> Any:
        parts = (part.subtract(ac, bd), part.add(ad, bc))
        number = context.mlir.complex_.create_(context.element(accumulator), *parts)
        return converted(context, number, accumulator, result.dtype)

    return context.elementwise(finished, products)


def of_parts(context: LoweringContext, sides: Sequence[str | None]) -> LoweringContext:
    """Return the operation on one part, ``re`` or ``im``, of each operand; None stands for the whole.

    Dtypes that are its attributes, and its result, become those of parts, too.
    """
    taken = [
        (value, type_) if side is None else (part_tensor(context, value, type_, side), _part_type(type_))
        for value, type_, side in zip(context.operands, context.operand_types, sides, strict=True)
    ]
    operands, types = zip(*taken, strict=True)
    attributes = {
        name: value.part if isinstance(value, DType) else value for name, value in context.attributes.items()
    }
    return replace(
        context,
        operands=operands,
        operand_types=types,
        attributes=attributes,
        result_type=_part_type(context.result_type),
        result_types=tuple(map(_part_type, context.result_types)),
    )


def joined_tensor(context: LoweringContext, real: Any, imaginary: Any, type_: TensorType) -> Any:
    """Append the tensor of complex numbers, of ``type_``, that has these parts."""
    element = context.element(type_.dtype)
    return context.elementwise(
        lambda re, im: context.mlir.complex_.create_(element, re, im), [real, imaginary], type_
    )


def _part_type(type_: TensorType) -> TensorType:
    return type_.with_dtype(type_.dtype.part)


def part_tensor(context: LoweringContext, value: Any, type_: TensorType, side: str) -> Any:
    """Append one part, ``re`` or ``im``, of a tensor of complex numbers of ``type_``."""
    take = getattr(context.mlir.complex_, side)
    return context.elementwise(take, [value], _part_type(type_))
