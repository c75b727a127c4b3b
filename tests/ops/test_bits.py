"""The bits of integers: every awkward value against what Python's integers say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from harness import edge_values, findings, run_both

from mind_mlir.ir.profiles import PTIR
from mind_mlir.ir.types import DType, DTypeKind
from mind_mlir.ops.example_types import parse_type
from mind_mlir.ops.opdef import ALL_INTEGERS
from mind_mlir.ops.registry import by_opcode

if TYPE_CHECKING:
    from collections.abc import Callable

OPS = by_opcode()


def wrapped(number: int, dtype: DType) -> int:
    """Return the number of ``dtype`` that has the lowest bits of ``number``."""
    bits = number % (1 << dtype.bits)
    return bits - (1 << dtype.bits) if dtype.kind is DTypeKind.SIGNED and bits >> (dtype.bits - 1) else bits


def bits_of(number: int, dtype: DType) -> int:
    return number % (1 << dtype.bits)


def values(dtype: DType) -> list[int]:
    return sorted({int(each) for each in edge_values(dtype)} | {0, 1, wrapped(-1, dtype), wrapped(5, dtype)})


def array(numbers: list[int], dtype: DType) -> Any:
    wide = np.uint64 if dtype.kind is DTypeKind.UNSIGNED else np.int64
    return np.array(numbers, wide).astype(dtype.numpy)


def signed(number: int, dtype: DType) -> int:
    bits = bits_of(number, dtype)
    return bits - (1 << dtype.bits) if bits >> (dtype.bits - 1) else bits


FORMULAS: dict[str, Callable[[int, int, DType], int]] = {
    "And": lambda a, b, _: a & b,
    "Or": lambda a, b, _: a | b,
    "Xor": lambda a, b, _: a ^ b,
    "ShiftLeft": lambda a, b, d: a << n if (n := bits_of(b, d)) < d.bits else 0,
    "ShiftRightLogical": lambda a, b, d: bits_of(a, d) >> n if (n := bits_of(b, d)) < d.bits else 0,
    "ShiftRightArithmetic": lambda a, b, d: signed(a, d) >> min(bits_of(b, d), d.bits - 1),
}


@pytest.mark.parametrize("opcode", FORMULAS)
def test_pairs_of_integers(opcode: str) -> None:
    for dtype in ALL_INTEGERS:
        numbers = values(dtype)
        amounts = sorted({*numbers, *(n for n in range(min(dtype.bits, 9)) if wrapped(n, dtype) == n)})
        pairs = [(a, b) for a in numbers for b in amounts]
        expected = [wrapped(FORMULAS[opcode](a, b, dtype), dtype) for a, b in pairs]
        left, right = (array(list(side), dtype) for side in zip(*pairs, strict=True))
        found = run_both(OPS[opcode], (left, right), {})
        assert [int(each) for each in found] == expected, dtype


def test_counts_and_complements() -> None:
    for dtype in ALL_INTEGERS:
        numbers = values(dtype)
        operand = array(numbers, dtype)
        for opcode, formula in (
            ("PopulationCount", lambda x, d: bits_of(x, d).bit_count()),
            ("CountLeadingZeros", lambda x, d: d.bits - bits_of(x, d).bit_length()),
            ("Not", lambda x, d: wrapped(~x, d)),
        ):
            found = run_both(OPS[opcode], (operand,), {})
            assert [int(each) for each in found] == [formula(each, dtype) for each in numbers], dtype


WIDTHS = [
    *(DType.SI8, DType.UI8, DType.FP8_E4M3, DType.SI16, DType.BF16, DType.F16),
    *(DType.UI32, DType.F32, DType.SI64, DType.F64),
]


def test_bitcasts_of_every_width() -> None:
    rng = np.random.default_rng(1)
    data = rng.integers(0, 256, (3, 5, 64), np.uint8)
    for source in WIDTHS:
        for target in WIDTHS:
            parts = max(1, target.itemsize // source.itemsize)
            operand = data[..., : parts * source.itemsize].copy().view(source.numpy)
            operand = operand if parts > 1 else operand[..., 0]
            found = run_both(OPS["Bitcast"], (operand,), {"dtype": target})
            assert found.tobytes() == operand.tobytes(), (source, target)
            more = source.itemsize // target.itemsize
            assert found.shape == ((3, 5, more) if more > 1 else (3, 5))


@pytest.mark.parametrize(
    ("operand", "dtype", "code"),
    [
        ("f32[3]", DType.I1, "E2005"),
        ("f32[3]", DType.SI4, "E2005"),
        ("f32[3]", DType.F64, "E3003"),
        ("f32[]", DType.F64, "E3002"),
        ("si4[3]", DType.SI8, "E2005"),
        ("cf32[3]", DType.F64, "E2005"),
    ],
)
def test_what_no_bitcast_does(operand: str, dtype: DType, code: str) -> None:
    assert [
        each.code for each in findings(OPS["Bitcast"], [parse_type(operand, None)], {"dtype": dtype}, PTIR)
    ] == [code]
