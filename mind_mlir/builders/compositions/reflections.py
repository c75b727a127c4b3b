"""QR factors of matrices, as LAPACK keeps them: R, and reflections below it.

Reflections come in blocks of columns, which stand as rows while they are made. A block of them is applied to
all the rest as two products: together they are ``I - V T V^H``, where ``T`` is triangular.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mind_mlir.builders.compositions.complex_numbers import magnitude
from mind_mlir.builders.compositions.matrices import (
    adjoint_numbers,
    block_of,
    counted,
    counted_along,
    cut,
    less,
    replaced,
    scalar,
    staged,
    swapped,
    taken,
    times,
    where,
)
from mind_mlir.builders.compositions.triangular import forward
from mind_mlir.ir.types import TensorType

if TYPE_CHECKING:
    from mind_mlir.builders.compositions.composer import Composer
    from mind_mlir.ir.value import Value


def qr(to: Composer, matrix: Value) -> tuple[Value, Value]:
    """Append the factors of ``matrix``: R, with the reflections below it, and the scales of these.

    Returns:
        f[batch..., m, n], and f[batch..., min(m, n)].
    """
    *_, rows, columns = matrix.type.extents
    wide, block, count = _in_blocks(to, matrix, min(rows, columns))

    def step(number: Value, found: Value, scales: Value) -> Sequence[Value]:
        first = to.emit("Mul", number, scalar(to, block))
        panel, chosen = _panel(to, swapped(to, taken(to, found, -1, first, block)), first)
        scales = replaced(to, scales, chosen, -1, first)
        found = replaced(to, found, swapped(to, panel), -1, first)
        if count == 1 and columns <= block:
            return found, scales
        vectors = _vectors(to, panel, first)
        turned = _triangle(to, vectors, chosen)
        behind = to.emit("Add", first, scalar(to, block))

        def rest(start: int, _end: int) -> Value:
            return _applied(to, turned, vectors, found, start * block, behind)

        return staged(to, number, count, rest), scales

    *batch, _, _ = wide.type.extents
    scales = to.full(0, TensorType(matrix.type.dtype, (*batch, count * block)))
    found, scales = counted(to, count, [wide, scales], step)
    return cut(to, found, rows, columns), to.part(scales, len(batch), 0, min(rows, columns))


def reflected(to: Composer, vectors: Value, scales: Value) -> Value:
    """Append the product of reflections, as far as it has columns: Q of `qr`'s factors, f[batch..., m, n]."""
    *batch, rows, columns = vectors.type.extents
    wide, block, count = _in_blocks(to, vectors, scales.type.extents[-1])
    behind = count * block - scales.type.extents[-1]
    scales = to.padded(scales, [0] * scales.type.rank, [*[0] * len(batch), behind], [0] * scales.type.rank, 0)
    down, across = counted_along(to, wide, -2), counted_along(to, wide, -1)
    unit = where(to, down, "Equal", across, to.like(1, wide))

    def step(number: Value, found: Value) -> Sequence[Value]:
        first = to.emit("Mul", to.emit("Sub", scalar(to, count - 1), number), scalar(to, block))
        rows_of = _vectors(to, swapped(to, taken(to, wide, -1, first, block)), first)
        turned = _triangle(to, rows_of, taken(to, scales, -1, first, block))
        triangle = adjoint_numbers(to, swapped(to, turned))

        def changed(start: int, end: int) -> Value:
            return _applied(to, triangle, rows_of, found, (count - end) * block)

        return [staged(to, number, count, changed)]

    (result,) = counted(to, count, [unit], step)
    return cut(to, result, rows, columns)


def _applied(
    to: Composer, triangle: Value, vectors: Value, found: Value, start: int, behind: Value | None = None
) -> Value:
    """Append a matrix with a block of reflections applied from row and column ``start`` on.

    Args:
        to: Appends the operations.
        triangle: What stands between the vectors and their adjoints.
        vectors: The vectors, as rows.
        found: The matrix.
        start: Where it begins to change.
        behind: The first column that changes; None for that of ``start``.
    """
    *batch, rows, columns = found.type.extents
    rank = found.type.rank
    vectors = to.part(vectors, rank - 1, start, rows)
    part = to.sliced(found, [*[0] * len(batch), start, start], [*batch, rows, columns])
    weights = times(to, triangle, times(to, adjoint_numbers(to, vectors), part))
    if behind is not None:
        place = to.emit("Sub", behind, scalar(to, start))
        weights = where(to, counted_along(to, weights, -1), "GreaterEqual", place, weights)
    return less(to, found, swapped(to, vectors), weights, start)


def _in_blocks(to: Composer, matrix: Value, least: int) -> tuple[Value, int, int]:
    """Append zeros behind a matrix, which nothing is reflected in; return a block's columns, and blocks."""
    *batch, rows, columns = matrix.type.extents
    block = block_of(least)
    count = -(-least // block)
    high = [*[0] * len(batch), max(0, count * block - rows), max(0, count * block - columns)]
    zeros = [0] * matrix.type.rank
    return to.padded(matrix, zeros, high, zeros, 0), block, count


def _panel(to: Composer, panel: Value, first: Value) -> tuple[Value, Value]:
    """Append the factors of a block of columns, which are rows here, and the scales of their reflections."""
    *batch, block, _ = panel.type.extents
    across = counted_along(to, to.part(panel, len(batch), 0, 1), -1)
    down = counted_along(to, to.part(panel, len(batch) + 1, 0, 1), -2)

    def step(number: Value, found: Value, scales: Value) -> Sequence[Value]:
        place = to.emit("Add", first, number)
        row = taken(to, found, -2, number)
        head = taken(to, row, -1, place)
        tail = where(to, across, "Greater", place, row)
        beta, scale, divisor = _reflection(to, head, tail)
        vector = to.emit("Div", tail, to.stretched(divisor, tail.shape))
        vector = where(to, across, "Equal", place, to.like(1, vector), vector)
        row = where(to, across, "Greater", place, vector, row)
        row = where(to, across, "Equal", place, to.stretched(beta, row.shape), row)
        weights = where(to, down, "Greater", number, times(to, found, vector, turned=True))
        weights = to.emit("Mul", weights, to.stretched(adjoint_numbers(to, scale), weights.shape))
        outer = (to.stretched(each, found.shape) for each in (weights, vector))
        found = to.emit("Sub", found, to.emit("Mul", *outer))
        scale = to.reshaped(scale, (*batch, 1))
        return replaced(to, found, row, -2, number), replaced(to, scales, scale, -1, number)

    scales = to.full(0, TensorType(panel.type.dtype, (*batch, block)))
    panel, scales = counted(to, block, [panel, scales], step)
    return panel, scales


def _vectors(to: Composer, panel: Value, first: Value) -> Value:
    """Append the vectors of a block of reflections, as rows, from what is kept of them."""
    across = counted_along(to, panel, -1)
    place = to.emit("Add", counted_along(to, panel, -2), to.stretched(first, panel.shape))
    vectors = where(to, across, "Greater", place, panel)
    return where(to, across, "Equal", place, to.like(1, panel), vectors)


def _triangle(to: Composer, vectors: Value, scales: Value) -> Value:
    """Append ``T^H``, for the adjoint of a block: ``D^H (I + L D^H)^-1`` of the scales ``D``.

    ``L`` is what ``V^H V`` has below its diagonal.
    """
    *batch, block, _ = vectors.type.extents
    turned = adjoint_numbers(to, scales)
    every = times(to, adjoint_numbers(to, vectors), swapped(to, vectors))
    down, across = counted_along(to, every, -2), counted_along(to, every, -1)
    along = to.stretched(to.reshaped(turned, (*batch, 1, block)), every.shape)
    below = where(to, down, "Greater", across, to.emit("Mul", every, along))
    unit = where(to, down, "Equal", across, to.like(1, every))
    inverse = forward(to, below, unit, unit=True)
    return to.emit("Mul", inverse, to.stretched(to.reshaped(turned, (*batch, block, 1)), every.shape))


def _reflection(to: Composer, head: Value, tail: Value) -> tuple[Value, Value, Value]:
    """Append what a reflection makes of a column's head, its scale, and what its vector's tail is divided by.

    It is LAPACK's: where the tail is zero, and the head real, nothing is reflected and the scale is zero.
    """
    is_complex = head.type.dtype.is_complex
    real = to.parts(head)[0] if is_complex else head
    sizes = magnitude(to, tail) if is_complex else to.emit("Abs", tail)
    rank, shape = tail.type.rank, head.shape
    most = to.reshaped(to.reduced(sizes, "Max", (rank - 2, rank - 1)), shape)
    is_zero = to.emit("Compare", most, to.like(0, most), op="Equal")
    unit = to.emit("Select", is_zero, to.like(1, most), most)
    scaled = to.emit("Div", sizes, to.stretched(unit, sizes.shape))
    squares = to.reduced(to.emit("Mul", scaled, scaled), "Sum", (rank - 2, rank - 1))
    length = to.emit("Mul", unit, to.emit("Sqrt", to.reshaped(squares, shape)))
    whole = _hypotenuse(to, magnitude(to, head) if is_complex else to.emit("Abs", head), length)
    is_negative = to.emit("Compare", real, to.like(0, real), op="Less")
    beta = to.emit("Select", is_negative, whole, to.emit("Neg", whole))
    if is_complex:
        _, imaginary = to.parts(head)
        is_real = to.emit("Compare", imaginary, to.like(0, imaginary), op="Equal")
        is_zero = to.emit("And", is_zero, is_real)
    safe = to.emit("Select", is_zero, to.like(1, beta), beta)
    reflected = to.complex_of(beta, to.like(0, beta)) if is_complex else beta
    divided = to.complex_of(safe, to.like(0, safe)) if is_complex else safe
    scale = to.emit("Div", to.emit("Sub", reflected, head), divided)
    divisor = to.emit("Sub", head, reflected)
    return (
        to.emit("Select", is_zero, head, reflected),
        to.emit("Select", is_zero, to.like(0, head), scale),
        to.emit("Select", is_zero, to.like(1, head), divisor),
    )


def _hypotenuse(to: Composer, one: Value, other: Value) -> Value:
    most, least = to.emit("Maximum", one, other), to.emit("Minimum", one, other)
    is_zero = to.emit("Compare", most, to.like(0, most), op="Equal")
    ratio = to.emit("Div", least, to.emit("Select", is_zero, to.like(1, most), most))
    square = to.emit("Add", to.like(1, ratio), to.emit("Mul", ratio, ratio))
    return to.emit("Mul", most, to.emit("Sqrt", square))
