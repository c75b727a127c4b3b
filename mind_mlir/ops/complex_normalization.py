"""LayerNorm of complex numbers: the variance is the mean of the squared magnitudes, a real number.

Features are divided by one standard deviation, whatever their direction in the plane, and `gamma` scales and
turns them. Lowering: as that of floats, on the parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops import complex_numbers
from mind_mlir.ops.complex_numbers import joined
from mind_mlir.ops.complex_parts import of_parts
from mind_mlir.ops.reductions import reduced_shape

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.mlir.context import LoweringContext

CHOICE = (
    "The variance of complex numbers is that of numpy: the mean of the squared magnitudes of `x - mean`, a "
    "real number. There is no gradient then, since magnitudes have no complex derivative."
)


def normalized(x: Array, gamma: Array, beta: Array, axis: int, epsilon: float) -> Array:
    """Return the numpy rule's result, in cf64; ``gamma`` and ``beta`` broadcast to ``x``."""
    centered, scale = centered_and_scale(x, axis, epsilon)
    unit = joined(centered.real * scale, centered.imag * scale)
    scaled = complex_numbers.multiply(unit, gamma)
    return joined(scaled.real + beta.real, scaled.imag + beta.imag)


def centered_and_scale(x: Array, axis: int, epsilon: float) -> tuple[Array, Array]:
    """Return the elements less their mean, and one over the standard deviation, which is real."""
    real, imaginary = (part - np.mean(part, axis=axis, keepdims=True) for part in (x.real, x.imag))
    variance = np.mean(real * real + imaginary * imaginary, axis=axis, keepdims=True)
    return joined(real, imaginary), 1 / np.sqrt(variance + epsilon)


def lower_complex(context: LoweringContext) -> Any:
    """Append the linalg rule's operations; the result is not empty."""
    ir, mlir, result = context.mlir.ir, context.mlir, context.result_type
    rank, axis, epsilon = result.rank, context.attributes["feature_axis"], context.attributes["epsilon"]
    dtype: DType = result.dtype.part
    number = context.arithmetic(dtype)
    rows = TensorType(dtype, reduced_shape(result.shape, (axis,), keepdims=False))
    dims = [ir.AffineDimExpr.get(dim) for dim in range(rank)]
    whole = ir.AffineMap.get_identity(rank)
    row = ir.AffineMap.get(rank, 0, [dim for place, dim in enumerate(dims) if place != axis])
    feature = ir.AffineMap.get(rank, 0, [dims[axis]])
    # Each of x, gamma and beta: its real and its imaginary parts.
    xs, gammas, betas = zip(*(of_parts(context, [side] * 3).operands for side in ("re", "im")), strict=True)

    def mean(total: Any) -> Any:
        return number.divide(total, number.constant(result.extents[axis]))

    def squares(re: Any, im: Any, mean_re: Any, mean_im: Any, total: Any) -> Any:
        for part, middle in ((re, mean_re), (im, mean_im)):
            difference = number.subtract(part, middle)
            total = number.add(total, number.multiply(difference, difference))
        return total

    def scale(total: Any) -> Any:
        return mlir.math.rsqrt(number.add(mean(total), number.constant(epsilon)))

    def normal(re: Any, im: Any, mean_re: Any, mean_im: Any, factor: Any, *affine: Any) -> Any:
        gamma_re, gamma_im, beta_re, beta_im, _ = affine
        a = number.multiply(number.subtract(re, mean_re), factor)
        b = number.multiply(number.subtract(im, mean_im), factor)
        real = number.subtract(number.multiply(a, gamma_re), number.multiply(b, gamma_im))
        imaginary = number.add(number.multiply(a, gamma_im), number.multiply(b, gamma_re))
        parts = (number.add(real, beta_re), number.add(imaginary, beta_im))
        return mlir.complex_.create_(context.element(result.dtype), *parts)

    means = [
        context.elementwise(mean, [context.reduce(x, context.filled(rows, 0), [axis], number.add)], rows)
        for x in xs
    ]
    iterators = ["reduction" if dim == axis else "parallel" for dim in range(rank)]
    maps = [whole, whole, row, row, row]
    (total,) = context.generic([*xs, *means], maps, [context.filled(rows, 0)], iterators, squares)
    scales = context.elementwise(scale, [total], rows)
    inputs = [*xs, *means, scales, *gammas, *betas]
    maps = [whole, whole, row, row, row, *[feature] * 4, whole]
    (value,) = context.generic(inputs, maps, [context.empty(result)], ["parallel"] * rank, normal)
    return value
