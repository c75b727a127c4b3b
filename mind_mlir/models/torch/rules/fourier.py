"""Fourier transforms, and complex numbers: their parts, and what is made of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mind_mlir.builders.compositions import fourier
from mind_mlir.models.torch.rules.values import axis_of, cast, dtype_of, expanded, full, number, select
from mind_mlir.numpy.arrays import op
from mind_mlir.tracing.composing import composed
from mind_mlir.tracing.operators import common_shape, compare

if TYPE_CHECKING:
    from mind_mlir.builders.compositions.composer import Composer
    from mind_mlir.ir.value import Value
    from mind_mlir.models.torch.rules.use import OperatorUse, Rule
    from mind_mlir.tracing.array import TracedArray


def _factor(shape: Sequence[int], axes: Sequence[int], normalization: int) -> float:
    """Return what torch multiplies a transform with: its kinds of normalisation are numbers."""
    count = math.prod(shape[axis] for axis in axes)
    return (1.0, 1 / math.sqrt(count), 1 / count)[normalization]


def _complex_to_complex(
    to: OperatorUse, x: TracedArray, dims: Sequence[int], normalization: int, forward: bool
) -> TracedArray:
    if not x.size or not dims:
        return x
    axes = [axis_of(dim, x.ndim) for dim in dims]

    def append(to: Composer, value: Value) -> Sequence[Value]:
        found = fourier.of_complex(to, fourier.Pair(*to.parts(value)), axes[::-1], inverse=not forward)
        return [fourier.joined(to, fourier.scaled(to, found, _factor(x.shape, axes, normalization)))]

    return composed(append, x)[0]


def _real_to_complex(
    to: OperatorUse, x: TracedArray, dims: Sequence[int], normalization: int, one_sided: bool
) -> TracedArray:
    if not x.size:
        return full(_extents(to), 0, to.dtype)
    axes = [axis_of(dim, x.ndim) for dim in dims]

    def append(to: Composer, value: Value) -> Sequence[Value]:
        found = fourier.of_real(to, value, axes[::-1], one_sided=one_sided)
        return [fourier.joined(to, fourier.scaled(to, found, _factor(x.shape, axes, normalization)))]

    return composed(append, x)[0]


def _complex_to_real(
    to: OperatorUse, x: TracedArray, dims: Sequence[int], normalization: int, count: int
) -> TracedArray:
    axes = [axis_of(dim, x.ndim) for dim in dims]
    shape = [count if axis == axes[-1] else extent for axis, extent in enumerate(x.shape)]
    if not x.size:
        return full(shape, 0, to.dtype)

    def append(to: Composer, value: Value) -> Sequence[Value]:
        found = fourier.to_real(to, fourier.Pair(*to.parts(value)), axes, count)
        return [fourier.scaled(to, fourier.Pair(found, None), _factor(shape, axes, normalization)).real]

    return composed(append, x)[0]


def _extents(to: OperatorUse) -> list[int]:
    """Return the extents of a result without elements."""
    type_ = to.node.types[0]
    return [extent or 0 for extent in (type_.shape if type_ is not None else ())]


def _as_parts(_: OperatorUse, x: TracedArray) -> TracedArray:
    parts = [op("ExpandDims", part, axes=[x.ndim]) for part in (op("Real", x), op("Imag", x))]
    return op("Concat", *parts, axis=x.ndim)


def _of_two(_: OperatorUse, real: TracedArray, imaginary: TracedArray) -> TracedArray:
    shape = common_shape([real.shape, imaginary.shape])
    return op("Complex", expanded(real, shape), expanded(imaginary, shape))


def _part(opcode: str) -> Rule:
    def rule(_: OperatorUse, x: TracedArray) -> TracedArray:
        if dtype_of(x).is_complex:
            return op(opcode, x)
        return x if opcode == "Real" else full(x.shape, 0, dtype_of(x))

    return rule


def _conjugate(_: OperatorUse, x: TracedArray) -> TracedArray:
    return op("Complex", op("Real", x), -op("Imag", x)) if dtype_of(x).is_complex else x


def _angle(to: OperatorUse, x: TracedArray) -> TracedArray:
    if dtype_of(x).is_complex:
        return op("Atan2", op("Imag", x), op("Real", x))
    real = cast(x, to.dtype)
    turned = select(compare("Less", real, number(0.0, to.dtype)), math.pi, 0.0, to.dtype)
    return select(compare("NotEqual", real, real), real, turned, to.dtype)


RULES: Mapping[str, Rule] = {
    "aten._fft_c2c": _complex_to_complex,
    "aten._fft_r2c": _real_to_complex,
    "aten._fft_c2r": _complex_to_real,
    "aten.view_as_real": _as_parts,
    "aten.view_as_complex": lambda _, x: op("Complex", x[..., 0], x[..., 1]),
    "aten.real": _part("Real"),
    "aten.imag": _part("Imag"),
    "aten.complex": _of_two,
    "aten.polar": lambda _, size, angle: _of_two(_, size * op("Cos", angle), size * op("Sin", angle)),
    "aten.angle": _angle,
    "aten._conj": _conjugate,
    "aten._conj_physical": _conjugate,
    "aten.conj_physical": _conjugate,
}
