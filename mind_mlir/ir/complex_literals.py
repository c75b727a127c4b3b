"""Literals of complex numbers as those of their parts."""

from __future__ import annotations

import numpy as np

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.types import DTypeKind


def complex_parts(literal: TensorLiteral) -> tuple[TensorLiteral, ...]:
    """Return the real and the imaginary parts of a complex literal; nothing of another."""
    if literal.type.dtype.kind is not DTypeKind.COMPLEX:
        return ()
    array = literal.array
    # Copies are contiguous, and of rank 0 where the literal is.
    return tuple(TensorLiteral.from_array(part.copy()) for part in (array.real, array.imag))


def complex_literal(real: TensorLiteral, imaginary: TensorLiteral) -> TensorLiteral:
    """Return the complex literal of these parts, bit for bit.

    Raises:
        ValueError: The parts are not f32, or f64, of one shape.
    """
    first, second = real.array, imaginary.array
    if real.type != imaginary.type or real.type.dtype.numpy not in (np.float32, np.float64):
        raise ValueError(f"{real.type} and {imaginary.type} are no parts of complex numbers")
    parts = np.stack([first, second], axis=-1)
    return TensorLiteral.from_array(parts.view(f"c{2 * parts.itemsize}")[..., 0])
