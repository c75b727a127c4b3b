"""The arithmetic that takes the place of exp, log, tanh and erf, against references of higher precision."""

from __future__ import annotations

import decimal
import functools
import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from guarded import call
from minimax import atanh_tail, erf, erf_tail, erfc_log, exp_tail, log_tail, minimax
from native_code import native_function, put_on_memory

import mind_mlir
from mind_mlir.lowering.math.expansion import MOST_INLINED
from mind_mlir.lowering.math.exponentials import FORMATS
from mind_mlir.lowering.to_llvm import to_llvm
from mind_mlir.mlir.bindings import ir, new_context
from mind_mlir.mlir.special_tables import ERF_SPLIT, TABLES, TANH_SPLIT
from mind_mlir.target import Target, named_target

if TYPE_CHECKING:
    from collections.abc import Callable

Array = np.ndarray[Any, np.dtype[Any]]
F32, F64 = np.float32, np.float64
DTYPES: dict[str, Any] = {"f32": F32, "f64": F64}
#: In f64, where the C library's erf is exact to a unit in the last place.
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "erf": lambda x: np.asarray(np.frompyfunc(math.erf, 1, 1)(x), F64),
}
#: What the records promise, in units in the last place.
BOUNDS = {"exp": 1, "log": 1, "tanh": 2, "erf": 2}
BOTH = pytest.mark.parametrize("name", list(FUNCTIONS))
WIDTHS = pytest.mark.parametrize("dtype", list(DTYPES))
FMA = pytest.mark.parametrize(
    "fma",
    [
        pytest.param(True, marks=pytest.mark.skipif(not named_target().fma, reason="needs FMA"), id="fused"),
        pytest.param(False, id="unfused"),
    ],
)
NAN, INF = float("nan"), float("inf")

SOURCE = """
func.func @main(%a: tensor<{extent}x{type}>) -> tensor<{extent}x{type}> {{
  %e = tensor.empty() : tensor<{extent}x{type}>
  %r = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}}
      ins(%a : tensor<{extent}x{type}>) outs(%e : tensor<{extent}x{type}>) {{
  ^bb0(%x: {type}, %o: {type}):
    %y = math.{name} %x : {type}
    linalg.yield %y : {type}
  }} -> tensor<{extent}x{type}>
  return %r : tensor<{extent}x{type}>
}}"""
VECTORS = """
func.func @main(%a: tensor<{extent}x{shape}x{type}>) -> tensor<{extent}x{shape}x{type}> {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %end = arith.constant {extent} : index
  %pad = arith.constant 1.0 : {type}
  %e = tensor.empty() : tensor<{extent}x{shape}x{type}>
  %r = scf.for %i = %zero to %end step %one iter_args(%t = %e) -> (tensor<{extent}x{shape}x{type}>) {{
    %v = vector.transfer_read %a[%i, {zeros}], %pad {{in_bounds = [{bounds}]}}
        : tensor<{extent}x{shape}x{type}>, vector<{shape}x{type}>
    %y = math.{name} %v : vector<{shape}x{type}>
    %w = vector.transfer_write %y, %t[%i, {zeros}] {{in_bounds = [{bounds}]}}
        : vector<{shape}x{type}>, tensor<{extent}x{shape}x{type}>
    scf.yield %w : tensor<{extent}x{shape}x{type}>
  }}
  return %r : tensor<{extent}x{shape}x{type}>
}}"""


def execute(
    source: str, x: Array, *, fma: bool = named_target().fma, opt_level: int = 3, scales: bool = False
) -> Array:
    with new_context():
        module = ir.Module.parse(source)
        put_on_memory(module, verify=True)
        to_llvm(module, Target(fma=fma, scales=scales), verify=True)
        native = native_function(module, opt_level=opt_level)
    result = np.empty_like(x)
    call(native, [x], [result])
    return result


def scalars(name: str, x: Array, *, fma: bool = named_target().fma, opt_level: int = 3) -> Array:
    """Compute the function in a loop over scalars, which LLVM may vectorise at high levels."""
    dtype = {value: key for key, value in DTYPES.items()}[x.dtype.type]
    source = SOURCE.format(extent=len(x), type=dtype, name=name)
    return execute(source, x, fma=fma, opt_level=opt_level)


def vectors(name: str, x: Array, *shape: int, opt_level: int, scales: bool = False) -> Array:
    """Compute the function on vectors of ``shape``."""
    dtype = {value: key for key, value in DTYPES.items()}[x.dtype.type]
    whole = -len(x) % math.prod(shape)
    padded = np.concatenate([x, np.ones(whole, x.dtype)])
    source = VECTORS.format(
        extent=len(padded) // math.prod(shape),
        shape="x".join(map(str, shape)),
        type=dtype,
        name=name,
        zeros=", ".join(["%zero"] * len(shape)),
        bounds=", ".join(["true"] * len(shape)),
    )
    return execute(source, padded, opt_level=opt_level, scales=scales)[: len(x)]


def program(name: str, x: Array, *, opt_level: int = 3) -> Array:
    """Compute the function through the whole compiler, which vectorises and masks the rest."""
    dtype = {value: key for key, value in DTYPES.items()}[x.dtype.type]
    text = f"""\
%0 = Input {{name="x"}} : tensor<{dtype}[{len(x)}]>
%1 = {name.capitalize()} (%0) : tensor<{dtype}[{len(x)}]>
outputs: %1
"""
    (result,) = mind_mlir.compile(mind_mlir.parse(text), opt_level=opt_level)(x)
    return np.asarray(result)


def spread(dtype: str, count: int) -> Array:
    """Return numbers of all signs and exponents, subnormals and NaNs among them."""
    if dtype == "f32":
        return np.arange(0, 1 << 32, (1 << 32) // count | 1, dtype=np.int64).astype(np.uint32).view(F32)
    return np.random.default_rng(0).integers(0, 1 << 64, count, np.uint64).view(F64)


def usual(name: str, dtype: str, count: int) -> Array:
    """Return arguments of ordinary size: all that do not overflow for exp, numbers around 1 for log."""
    bits = int(dtype[1:])
    low, high = {
        "exp": FORMATS[bits].exp_range,
        "log": (0.3, 3.0),
        "tanh": (-TABLES[bits].tanh_end, TABLES[bits].tanh_end),
        "erf": (-TABLES[bits].erf_end, TABLES[bits].erf_end),
    }[name]
    return np.asarray(np.random.default_rng(1).uniform(low, high, count), DTYPES[dtype])


def edges(name: str, dtype: str) -> Array:
    """Return arguments at which something changes, and their neighbours."""
    info = np.finfo(DTYPES[dtype])
    tiny, largest, least = float(info.tiny), float(info.max), float(info.smallest_subnormal)
    places = {
        "exp": [0.0, 1.0, math.log(largest), math.log(tiny), math.log(least), math.log(least) - math.log(2)]
        + [(k + 0.5) * math.log(2) for k in range(-5, 5)]
        + list(FORMATS[info.bits].exp_range),
        "log": [least, tiny, 1.0, math.sqrt(0.5), math.sqrt(2.0), 0.5, 2.0, largest],
        "tanh": [0.0, least, tiny, TANH_SPLIT, TABLES[info.bits].tanh_end, largest]
        + [(k + 0.5) * math.log(2) / 2 for k in range(5)],
        "erf": [0.0, least, tiny, 1.0, ERF_SPLIT, TABLES[info.bits].erf_end, largest],
    }[name]
    center = np.array(places, DTYPES[dtype])
    below = above = center
    found = [center, -center]
    with np.errstate(all="ignore"):
        for _ in range(40):
            below, above = np.nextafter(below, -np.inf), np.nextafter(above, np.inf)
            found += [below, above]
    return np.concatenate(found).astype(DTYPES[dtype])


def ulps(name: str, x: Array, result: Array) -> Array:
    """Return errors in units in the last place of the exact result; the rest must be equal.

    Inputs without a finite result are compared with numpy's: the two must agree.
    """
    with np.errstate(all="ignore"):
        reference = FUNCTIONS[name](x.astype(F64))
        expected = reference.astype(x.dtype)
        if x.dtype == F64:
            reference = _exact(name, x, expected)
    finite = np.isfinite(expected) & np.isfinite(result)
    np.testing.assert_array_equal(result[~finite], expected[~finite])
    if x.dtype == F32:
        error = np.abs(result[finite].astype(F64) - reference[finite])
        return np.asarray(error / np.spacing(np.abs(expected[finite])).astype(F64))
    return np.asarray(
        [
            float(abs(Decimal(float(y)) - exact) / Decimal(float(np.spacing(abs(near)))))
            for y, exact, near in zip(result[finite], reference[finite], expected[finite], strict=True)
        ]
    )


def _exact(name: str, x: Array, expected: Array) -> Array:
    """Return decimals of 40 digits where the result is finite."""
    reference = np.full(len(x), Decimal(0), object)
    with decimal.localcontext(prec=40, Emin=-2000, Emax=2000):
        for at in np.flatnonzero(np.isfinite(expected)):
            argument = Decimal(float(x[at]))
            reference[at] = _PRECISE[name](argument)
    return reference


def _precise_tanh(x: Decimal) -> Decimal:
    if abs(x) < Decimal("1e-10"):
        return x - x**3 / 3
    square = (2 * min(max(x, Decimal(-60)), Decimal(60))).exp()
    return (square - 1) / (square + 1)


def _precise_erf(x: Decimal) -> Decimal:
    return (erf(abs(x)) if 0 < abs(x) < 7 else Decimal(int(x != 0))).copy_sign(x)


_PRECISE: dict[str, Callable[[Decimal], Decimal]] = {
    "exp": Decimal.exp,
    "log": Decimal.ln,
    "tanh": _precise_tanh,
    "erf": _precise_erf,
}


@FMA
@WIDTHS
@BOTH
def test_is_within_the_units_in_the_last_place_that_are_promised(name: str, dtype: str, fma: bool) -> None:
    count = {"f32": 1_000_000, "f64": 3_000 if name == "erf" else 20_000}[dtype]
    for x in (spread(dtype, count), usual(name, dtype, count), edges(name, dtype)):
        error = ulps(name, x, scalars(name, x, fma=fma))
        assert len(error) > len(x) // 10
        assert error.max() < BOUNDS[name]


@FMA
@WIDTHS
@pytest.mark.parametrize(
    ("name", "argument", "expected"),
    [
        ("exp", 0.0, 1.0),
        ("exp", -0.0, 1.0),
        ("exp", INF, INF),
        ("exp", -INF, 0.0),
        ("exp", 1e30, INF),
        ("exp", -1e30, 0.0),
        ("exp", NAN, NAN),
        ("log", 1.0, 0.0),
        ("log", 0.0, -INF),
        ("log", -0.0, -INF),
        ("log", -1e-45, NAN),
        ("log", -1.0, NAN),
        ("log", INF, INF),
        ("log", -INF, NAN),
        ("log", NAN, NAN),
        *((name, sign * INF, sign) for name in ("tanh", "erf") for sign in (1.0, -1.0)),
        *((name, sign * 1e30, sign) for name in ("tanh", "erf") for sign in (1.0, -1.0)),
        *((name, sign * 0.0, sign * 0.0) for name in ("tanh", "erf") for sign in (1.0, -1.0)),
        ("tanh", 1e-45, 1e-45),
        ("tanh", -1e-30, -1e-30),
        ("tanh", NAN, NAN),
        ("erf", NAN, NAN),
    ],
)
def test_edges(name: str, argument: float, expected: float, dtype: str, fma: bool) -> None:
    x = np.array([argument] * 3, DTYPES[dtype])
    result = scalars(name, x, fma=fma)
    np.testing.assert_array_equal(result, np.full(3, expected, x.dtype))
    if not math.isnan(expected):
        assert np.signbit(result).tolist() == [math.copysign(1, expected) < 0] * 3


@WIDTHS
def test_exp_overflows_and_vanishes_where_rounding_does(dtype: str) -> None:
    info = np.finfo(DTYPES[dtype])
    last = DTYPES[dtype](math.log(info.max))
    last = last if float(last) <= math.log(info.max) else np.nextafter(last, DTYPES[dtype](0))
    x = np.array([last, np.nextafter(last, DTYPES[dtype](INF))])
    assert np.isfinite(scalars("exp", x)).tolist() == [True, False]
    half = math.log(info.smallest_subnormal) - math.log(2)  # from here on zero is nearest
    x = np.array([half * (1 - 1e-6), half * (1 + 1e-6)], DTYPES[dtype])
    assert scalars("exp", x).tolist() == [info.smallest_subnormal, 0.0]


@WIDTHS
@BOTH
def test_scalars_vectors_and_levels_give_the_same_bits(name: str, dtype: str) -> None:
    x = np.concatenate([spread(dtype, 20_000), usual(name, dtype, 20_000), edges(name, dtype)])
    expected = scalars(name, x, opt_level=0).tobytes()
    for opt_level in (0, 1, 2, 3):
        assert scalars(name, x, opt_level=opt_level).tobytes() == expected
        assert vectors(name, x, 8, opt_level=opt_level).tobytes() == expected
        assert program(name, x, opt_level=opt_level).tobytes() == expected
    assert vectors(name, x, 3, opt_level=3).tobytes() == expected
    assert vectors(name, x, 2, 4, opt_level=3).tobytes() == expected


@pytest.mark.skipif(not named_target().scales, reason="no instruction multiplies by powers of two")
@pytest.mark.parametrize(("dtype", "lanes"), [("f32", 16), ("f32", 32), ("f64", 8), ("f64", 32)])
def test_scaling_by_an_instruction_gives_the_same_bits(dtype: str, lanes: int) -> None:
    x = np.concatenate([spread(dtype, 20_000), usual("exp", dtype, 20_000), edges("exp", dtype)])
    low, _ = FORMATS[32 if dtype == "f32" else 64].exp_range
    x = np.concatenate([x, np.linspace(low, 0.8 * low, 20_000, dtype=x.dtype)])  # to subnormal numbers
    expected = scalars("exp", x, opt_level=0)
    assert vectors("exp", x, lanes, opt_level=0, scales=True).tobytes() == expected.tobytes()


@BOTH
def test_calls_no_library(name: str) -> None:
    for dtype in DTYPES:
        with new_context():
            module = ir.Module.parse(SOURCE.format(extent=5, type=dtype, name=name))
            put_on_memory(module)
            for fma in (True, False):
                twin = ir.Module.parse(str(module))
                to_llvm(twin, Target(fma=fma))
                text = str(twin)
                assert not re.search(r"llvm\.func (private )?@(exp|log|tanh|erf|fma)f?\(", text)
                assert ("llvm.intr.fma" in text) == fma


def test_one_function_for_each_type() -> None:
    lines = "".join(f"%e{i} = math.exp %x{i} : f32\n%x{i + 1} = math.log %e{i} : f32\n" for i in range(5))
    source = f"func.func @f(%x0: f32) -> f32 {{ {lines} return %x5 : f32 }}"
    with new_context():
        module = ir.Module.parse(source)
        to_llvm(module, Target(fma=True), verify=True)
        defined = re.findall(r"llvm\.func internal @([\w.]+)\(", str(module))
    assert sorted(defined) == ["mind.exp.f32", "mind.log.f32"]


def chain(pairs: int, extent: int) -> str:
    """Return a loop that takes the exponential and the logarithm of each element ``pairs`` times."""
    steps = "".join(f"%e{i} = math.exp %x{i} : f32\n%x{i + 1} = math.log %e{i} : f32\n" for i in range(pairs))
    source = SOURCE.format(extent=extent, type="f32", name="exp").replace("%x:", "%x0:")
    return source.replace("%y = math.exp %x : f32", steps).replace("yield %y", f"yield %x{pairs}")


@pytest.mark.parametrize("opt_level", [0, 3])
def test_calls_that_are_not_inlined_give_the_same_bits(opt_level: int) -> None:
    x = usual("log", "f32", 1003)
    expected = x
    for _ in range(MOST_INLINED):
        expected = execute(chain(1, len(x)), expected)
    assert expected.tobytes() != x.tobytes()
    result = execute(chain(MOST_INLINED, len(x)), x, opt_level=opt_level)
    assert result.tobytes() == expected.tobytes()


def test_bounds_how_much_is_inlined_into_a_function() -> None:
    for pairs in (MOST_INLINED // 2, MOST_INLINED // 2 + 1):
        with new_context():
            module = ir.Module.parse(chain(pairs, 7))
            put_on_memory(module)
            to_llvm(module, verify=True)
            text = str(module)
        kept = re.findall(r"llvm\.call @mind\.\w+\.f32\(.*no_inline", text)
        assert len(kept) == (2 * pairs if 2 * pairs > MOST_INLINED else 0)


def test_symbols_give_way_to_those_of_the_module() -> None:
    source = """
    func.func private @mind.exp.f32(%x: f32) -> f32 { return %x : f32 }
    func.func @f(%x: f32) -> f32 {
      %y = math.exp %x : f32
      %z = func.call @mind.exp.f32(%y) : (f32) -> f32
      return %z : f32
    }"""
    with new_context():
        module = ir.Module.parse(source)
        to_llvm(module, verify=True)
        assert re.search(r"llvm\.call @mind\.exp\.f32_\(", str(module))


def test_leaves_other_types_alone() -> None:
    source = "func.func @f(%x: f16) -> f16 { %y = math.exp %x : f16\n return %y : f16 }"
    with new_context():
        module = ir.Module.parse(source)
        to_llvm(module, verify=True)
        assert "mind." not in str(module)


@functools.cache
def derived(bits: int) -> dict[str, list[float]]:
    """Return the coefficients of a format, from the definitions of the functions."""
    half, low, high = 0.3467, -0.2929, 0.41422  # a little beyond ln(2) / 2, sqrt(1/2) - 1 and sqrt(2) - 1
    exp_degree = {32: 4, 64: 9}[bits]
    found = {"exp_tail": minimax(exp_tail, lambda r: r * r / r.exp(), -half, half, exp_degree)}
    if bits == 32:
        found["log_tail"] = minimax(log_tail, lambda f: f**3 / (1 + f).ln(), low, high, 8)
    else:
        found["atanh_tail"] = minimax(atanh_tail, lambda z: z, 0.0, 0.02944, 6)
    return {name: [float(value) for value in values] for name, values in found.items()}


@WIDTHS
def test_coefficients_are_the_minimax_ones(dtype: str) -> None:
    bits, kind = int(dtype[1:]), DTYPES[dtype]
    for name, values in derived(bits).items():
        table = getattr(FORMATS[bits], name)
        assert [kind(value) for value in table] == [kind(value) for value in values]


@WIDTHS
def test_coefficients_of_erf_are_the_minimax_ones(dtype: str) -> None:
    bits, kind = int(dtype[1:]), DTYPES[dtype]
    table = TABLES[bits]
    tail = minimax(erf_tail, lambda z: 1 / (1 + erf_tail(z)), 0.0, 0.847, {32: 6, 64: 11}[bits])
    rest = minimax(erfc_log, lambda x: 1 / erf(x) - 1, 0.9195, table.erf_end, {32: 6, 64: 20}[bits])
    assert [kind(value) for value in table.erf_tail] == [kind(float(value)) for value in tail]
    assert [kind(value) for value in table.erfc_log] == [kind(float(value)) for value in rest]


@WIDTHS
def test_products_with_the_first_part_of_ln2_are_exact(dtype: str) -> None:
    format_ = FORMATS[int(dtype[1:])]
    first, rest = format_.ln2
    last = format_.bias + format_.mantissa + 1
    for k in range(-last, last + 1):
        assert Fraction(float(DTYPES[dtype](k * first))) == k * Fraction(first)
    with decimal.localcontext(prec=60):
        assert abs(Decimal(first) + Decimal(rest) - Decimal(2).ln()) < Decimal(2) ** -(
            2 * format_.mantissa - 8
        )
