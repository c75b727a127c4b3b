"""Fourier transforms, Cholesky factors, and equations with triangular matrices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.builders.compositions import fourier
from mind_mlir.builders.compositions.triangular import cholesky_of, triangular_solved
from mind_mlir.languages.stablehlo.rules.use import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.ir.value import Value
    from mind_mlir.languages.stablehlo.rules.use import Use


def _fft(use: Use) -> Value:
    (operand,) = use.operands
    kind, lengths = use.keyword("fft_type"), use.integers("fft_length")
    rank = operand.type.rank
    last, others = rank - 1, list(range(rank - len(lengths), rank - 1))
    if 0 in use.result_type().extents or 0 in operand.shape:
        return use.full(0, use.result_type())
    if kind == "RFFT":
        return fourier.joined(use, fourier.of_real(use, operand, [last, *others], one_sided=True))
    pair, factor = fourier.Pair(*use.parts(operand)), 1 / math.prod(lengths)
    if kind == "IRFFT":
        found = fourier.to_real(use, pair, [*others, last], lengths[-1])
        return use.emit("Mul", found, use.like(factor, found))
    pair = fourier.of_complex(use, pair, [last, *others], inverse=kind == "IFFT")
    return fourier.joined(use, fourier.scaled(use, pair, factor) if kind == "IFFT" else pair)


def _cholesky(use: Use) -> Value:
    return cholesky_of(use, use.operands[0], lower=use.flag("lower"))


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


RULES: Mapping[str, Rule] = {
    "stablehlo.cholesky": Rule(_cholesky),
    "stablehlo.fft": Rule(_fft),
    "stablehlo.triangular_solve": Rule(_triangular_solve),
}
