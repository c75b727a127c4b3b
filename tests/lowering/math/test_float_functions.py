"""Sines, roots, powers and the like: errors in units in the last place, and where coefficients come from."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from minimax import atan_tail, cos_tail, exp2_tail, log2_tail, minimax, sin_tail

import mind_mlir
from mind_mlir.lowering.math.atan2 import ATAN_TAILS, HALVES, QUARTER, SHORT_ATAN_TAIL
from mind_mlir.lowering.math.powers import EXP2_TAIL, LOG2_TAIL
from mind_mlir.lowering.math.trigonometry import ANGLES, SHORT_SIN_TAIL
from mind_mlir.target import named_target, runs_here

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Array = np.ndarray[Any, np.dtype[Any]]
NAN, INF = math.nan, math.inf
DTYPES: dict[str, Any] = {"f32": np.float32, "f64": np.float64}
#: With fused multiply-add, and without.
TARGETS = [name for name in ("avx2", "sse") if runs_here(named_target(name))] or ["native"]
#: What the records promise, in units in the last place, and numpy's functions.
BOUNDS: dict[str, tuple[Callable[..., Any], float]] = {
    "Sin": (np.sin, 2),
    "Cos": (np.cos, 2),
    "Tan": (np.tan, 2),
    "Atan2": (np.arctan2, 2),
    "Log1p": (np.log1p, 2),
    "Expm1": (np.expm1, 2),
    "Cbrt": (np.cbrt, 2),
    "Power": (np.power, 2),
    "Logistic": (lambda x: np.where(x < 0, np.exp(-abs(x)), 1) / (1 + np.exp(-abs(x))), 3),
}
BINARY = ("Atan2", "Power")
#: Of 64 bits of significand or more: what f64 is compared with.
WIDE: Any = np.longdouble
EDGES = [0.0, 0.5, 1.0, 2.0, 3.0, 1e-30, 1e30, 88.8, 104.0, 709.8, 745.2, 2.0**21, 2.0**23, INF, NAN]


def run(opcode: str, operands: tuple[Array, ...], **options: Any) -> Array:
    """Compile and run one operation on vectors."""
    kind = {value: key for key, value in DTYPES.items()}[operands[0].dtype.type]
    type_, names = f"tensor<{kind}[{len(operands[0])}]>", [f"%{place}" for place in range(len(operands))]
    lines = [f'{name} = Input {{name="x{name[1:]}"}} : {type_}' for name in names]
    lines += [f"%9 = {opcode} ({', '.join(names)}) : {type_}", "outputs: %9", ""]
    return np.asarray(mind_mlir.compile(mind_mlir.parse("\n".join(lines)), **options)(*operands)[0])


def arguments(opcode: str, kind: Any, count: int) -> Iterator[tuple[Array, ...]]:
    """Yield numbers of all exponents, usual ones, small ones, and those around multiples of pi / 2."""
    rng = np.random.default_rng(3)
    whole = {np.float32: np.uint32, np.float64: np.uint64}[kind]
    width = 8 * np.dtype(kind).itemsize
    edges = np.array([*EDGES, np.finfo(kind).tiny / 3, np.finfo(kind).max], kind)
    rows = [
        rng.integers(0, 1 << width, count, whole).view(kind),
        rng.uniform(-20, 20, count).astype(kind),
        (rng.standard_normal(count) * np.exp2(rng.uniform(-30, 3, count))).astype(kind),
        (np.arange(count) * (np.pi / 2)).astype(kind),
        np.concatenate([edges, -edges])[rng.integers(0, 2 * len(edges), count)],
    ]
    if opcode not in BINARY:
        yield from ((row,) for row in rows)
        return
    yield from ((row, rng.permutation(row)) for row in rows if row is not rows[3])
    yield rows[1], rng.permutation(rows[2])
    exponents = rng.uniform(-1, 1, count) * {np.float32: 140, np.float64: 1070}[kind]
    yield np.exp2(rng.uniform(-1, 1, count)).astype(kind), exponents.astype(kind)
    yield rng.integers(-9, 9, count).astype(kind), rng.integers(-9, 9, count).astype(kind)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("opcode", BOUNDS)
def test_is_within_the_units_in_the_last_place_that_are_promised(opcode: str, dtype: str) -> None:
    function, bound = BOUNDS[opcode]
    wide: Any = np.float64 if dtype == "f32" else WIDE
    slack = 0 if np.finfo(wide).nmant > np.finfo(DTYPES[dtype]).nmant else 1
    count = {"f32": 60_000, "f64": 20_000}[dtype]
    given = list(arguments(opcode, DTYPES[dtype], count))
    operands = tuple(np.concatenate(each) for each in zip(*given, strict=True))
    with np.errstate(all="ignore"):
        exact = function(*(each.astype(wide) for each in operands))
        near = exact.astype(DTYPES[dtype])
    finite = np.isfinite(near)
    for target in TARGETS:
        result = run(opcode, operands, target=target)
        np.testing.assert_array_equal(result[~finite], near[~finite])
        np.testing.assert_array_equal(np.signbit(result)[finite], np.signbit(near)[finite])
        with np.errstate(over="ignore"):  # of the greatest number
            place = np.spacing(abs(near[finite])).astype(wide)
        error = abs(result[finite].astype(wide) - exact[finite]) / place
        assert error.max() < bound + slack


@pytest.mark.parametrize("opcode", ["Sin", "Tan", "Atan2", "Power", "Cbrt", "Log1p", "Expm1"])
def test_places_and_levels_give_the_same_bits(opcode: str) -> None:
    operands = next(arguments(opcode, np.float32, 203))  # no multiple of a vector
    whole = run(opcode, operands)
    assert run(opcode, operands, opt_level=0).tobytes() == whole.tobytes()
    assert run(opcode, tuple(each[101:] for each in operands)).tobytes() == whole[101:].tobytes()


@pytest.mark.skipif(not runs_here(named_target("avx512")), reason="needs AVX-512")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("opcode", ["Log", "Log1p", "Power", "Exp"])
def test_instructions_that_take_numbers_apart_give_the_same_bits(opcode: str, dtype: str) -> None:
    kind = DTYPES[dtype]
    given = [operands[:1] if opcode != "Power" else operands for operands in arguments(opcode, kind, 3_003)]
    tiny = np.arange(1, 3_004).astype({np.float32: np.uint32, np.float64: np.uint64}[kind]).view(kind)
    near_root = (
        np.full(3_003, np.sqrt(0.5), kind) + np.arange(-1501, 1502).astype(kind) * np.finfo(kind).epsneg
    )
    given += [(x, x[::-1].copy()) if opcode == "Power" else (x,) for x in (tiny, near_root)]
    for operands in given:
        one, other = (run(opcode, operands, target=target) for target in ("avx512", "avx2"))
        assert np.array_equal(one, other, equal_nan=True)
        numbers = ~np.isnan(one)
        np.testing.assert_array_equal(np.signbit(one[numbers]), np.signbit(other[numbers]))


def test_powers_of_f64_are_exact_where_a_float_is_and_the_same_bits_everywhere() -> None:
    whole = np.arange(-99.0, 100.0)
    base, exponent = np.meshgrid(whole, np.arange(0.0, 9.0))
    base, exponent = np.append(base, whole**2), np.append(exponent, np.full(len(whole), 0.5))
    expected = np.append(
        [int(x) ** int(y) for x, y in zip(base[: 9 * 199], exponent, strict=False)], abs(whole)
    )
    exact = abs(expected) < 2.0**53
    for target in TARGETS:
        result = run("Power", (base, exponent), target=target)
        np.testing.assert_array_equal(result[exact], expected[exact].astype(float))
    operands = next(arguments("Power", np.float64, 203))  # no multiple of a vector
    found = run("Power", operands)
    assert run("Power", operands, opt_level=0).tobytes() == found.tobytes()
    assert run("Power", tuple(each[101:] for each in operands)).tobytes() == found[101:].tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_remainders_are_exact(dtype: str) -> None:
    rng, kind = np.random.default_rng(5), DTYPES[dtype]
    given = list(arguments("Power", kind, 5_000))
    divisor = rng.uniform(1, 2, 5_000).astype(kind)
    multiple = (divisor.astype(np.float64) * rng.integers(1, 1 << 20, 5_000)).astype(kind)
    given += [(np.nextafter(multiple, kind(0)), divisor), (multiple, divisor)]
    x, y = (np.concatenate(each) for each in zip(*given, strict=True))
    with np.errstate(all="ignore"):
        expected = np.fmod(x, y)
    numbers = ~np.isnan(expected)
    for target in TARGETS:
        result = run("Remainder", (x, y), target=target)
        np.testing.assert_array_equal(result, expected)
        np.testing.assert_array_equal(np.signbit(result)[numbers], np.signbit(expected)[numbers])


@pytest.mark.parametrize("opcode", ["Floor", "Ceil", "Round", "RoundEven"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_rounding_needs_no_instruction(opcode: str, dtype: str) -> None:
    kind = DTYPES[dtype]
    info = np.finfo(kind)
    near = np.arange(-20, 20, dtype=kind) / kind(4)
    ends = np.array([*EDGES, info.tiny / 3, info.max, 2.0**info.nmant - 0.5, 2.0**info.nmant + 1], kind)
    below = np.nextafter(np.array([0.5, 1.0, 1.5, 2.0], kind), kind(0))
    x = np.concatenate([near, ends, -ends, below, -below])
    with np.errstate(invalid="ignore"):
        away = np.copysign(np.floor(abs(x)) + (abs(x) - np.floor(abs(x)) >= 0.5), x)
        expected = {"Floor": np.floor(x), "Ceil": np.ceil(x), "RoundEven": np.rint(x)}.get(opcode, away)
    expected = np.where(np.isfinite(x), expected, x)
    for target in TARGETS:
        text = mind_mlir.compile(_module(opcode, dtype, len(x)), target=target).as_text("llvm")
        assert (f"intr.{opcode.lower()}(" in text) == (target != "sse")
        result = run(opcode, (x,), target=target)
        np.testing.assert_array_equal(result, expected)
        np.testing.assert_array_equal(np.signbit(result), np.signbit(expected))


def _module(opcode: str, dtype: str, extent: int) -> mind_mlir.Module:
    type_ = f"tensor<{dtype}[{extent}]>"
    module = mind_mlir.parse(
        f'%0 = Input {{name="x"}} : {type_}\n%1 = {opcode} (%0) : {type_}\noutputs: %1\n'
    )
    assert isinstance(module, mind_mlir.Module)
    return module


def test_parts_of_pi_are_exact_in_products() -> None:
    pi = Fraction("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899863")
    for bits, angles in ANGLES.items():
        assert abs(sum(map(Fraction, angles.parts)) - pi / 2) < Fraction(2) ** {32: -85, 64: -150}[bits]
        turns = int(angles.end / math.pi * 2) + 1
        for part in angles.parts[:-1]:
            assert math.frexp(part)[0] * 2 ** (53 - turns.bit_length()) % 1 == 0
    assert abs(sum(map(Fraction, QUARTER)) - pi / 4) < Fraction(2) ** -105
    assert abs(sum(map(Fraction, HALVES)) - pi / 2) < Fraction(2) ** -48
    assert all(np.float32(part) == part for part in HALVES)
    assert all(Fraction(k * QUARTER[0]) == k * Fraction(QUARTER[0]) for k in range(5))


@pytest.mark.parametrize("bits", ANGLES)
def test_coefficients_are_the_minimax_ones(bits: int) -> None:
    tables, end, terms = ANGLES[bits], 0.6170, {32: (3, 2, 6), 64: (5, 5, 13)}[bits]
    derived = {
        "sin_tail": minimax(sin_tail, lambda z: z / (1 + z * sin_tail(z)), 0.0, end, terms[0]),
        "cos_tail": minimax(cos_tail, lambda z: z * z, 0.0, end, terms[1]),
        "atan_tail": minimax(atan_tail, lambda z: z / (1 + z * atan_tail(z)), 0.0, 0.2987, terms[2]),
    }
    for name, values in derived.items():
        table = ATAN_TAILS[bits] if name == "atan_tail" else getattr(tables, name)
        assert list(table) == [float(value) for value in values]


@pytest.mark.parametrize(
    ("table", "function", "weight", "ends"),
    [
        (LOG2_TAIL, log2_tail, lambda f: 1 / log2_tail(f), (-0.2929, 0.4143)),
        (EXP2_TAIL, exp2_tail, lambda r: r / (1 + r * exp2_tail(r)), (-0.5001, 0.5001)),
        (SHORT_SIN_TAIL, sin_tail, lambda z: z / (1 + z * sin_tail(z)), (0.0, 0.6170)),
        (SHORT_ATAN_TAIL, atan_tail, lambda z: z / (1 + z * atan_tail(z)), (0.0, 1.0)),
    ],
    ids=["log2", "exp2", "sin", "atan"],
)
def test_coefficients_for_f32_are_the_minimax_ones(
    table: tuple[float, ...], function: Any, weight: Any, ends: tuple[float, float]
) -> None:
    assert list(table) == [float(value) for value in minimax(function, weight, *ends, len(table) - 1)]
