"""Fourier transforms, Cholesky factors, equations with triangular matrices, and generators of bits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from mind_mlir.builders.compositions import fourier, generators
from mind_mlir.builders.compositions.triangular import cholesky_of, triangular_solved
from mind_mlir.ir.types import DType
from mind_mlir.languages.stablehlo.rules.use import Rule, Use

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value


def _fft(use: Use) -> Value:
    (operand,) = use.operands
    kind, lengths = use.keyword("fft_type"), use.integers("fft_length")
    rank = operand.type.rank
    last, others = rank - 1, list(range(rank - len(lengths), rank - 1))
    if 0 in use.result_type().extents or 0 in operand.shape:
        return use.full(0, use.result_type())
    if kind == "RFFT":
        return fourier.joined(use, fourier.of_real(use, operand, [last, *others], one_sided=True))
    real, imaginary = use.parts(operand)
    is_real = use.known(imaginary) == 0
    pair, factor = fourier.Pair(real, None if is_real else imaginary), 1 / math.prod(lengths)
    if kind == "IRFFT":
        found = fourier.to_real(use, pair, [*others, last], lengths[-1])
        return use.emit("Mul", found, use.like(factor, found))
    pair = fourier.of_complex(use, pair, [last, *others], inverse=kind == "IFFT")
    return fourier.joined(use, fourier.scaled(use, pair, factor) if kind == "IFFT" else pair)


def _triangular_solve(use: Use) -> Value:
    matrix, right = use.operands
    if 0 in right.shape:
        return right
    return triangular_solved(
        use,
        matrix,
        right,
        left_side=use.flag("left_side"),
        lower=use.flag("lower"),
        unit=use.flag("unit_diagonal"),
        transposed=use.keyword("transpose_a", "NO_TRANSPOSE"),
    )


def _bits(use: Use) -> tuple[Value, Value]:
    (state,) = use.operands
    type_, algorithm = use.result_type(1), use.keyword("rng_algorithm")
    if state.type.dtype is not DType.UI64 or state.shape not in ((2,), (3,)):
        use.refuse("a state that is not of two or three ui64")
    if not (type_.dtype.is_integer and type_.dtype.bits >= 8):
        use.refuse(f"bits of {type_.dtype}")
    if 0 in type_.extents:
        return state, use.full(0, type_)
    if algorithm == "THREE_FRY":
        if state.shape != (2,):
            use.refuse("a state of Threefry that is not of two ui64")
        return generators.threefry(use, state, type_)
    return generators.philox(use, state, type_)  # which XLA's default is, too


RULES: Mapping[str, Rule] = {
    "stablehlo.cholesky": Rule(lambda use: cholesky_of(use, use.operands[0], lower=use.flag("lower"))),
    "stablehlo.fft": Rule(_fft),
    "stablehlo.rng_bit_generator": Rule(_bits),
    "stablehlo.triangular_solve": Rule(_triangular_solve),
}
