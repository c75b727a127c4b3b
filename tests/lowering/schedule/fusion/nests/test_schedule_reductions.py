"""Reductions, alone and with what they are fused with, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from schedule_harness import (
    DTYPES,
    Array,
    empty,
    filled,
    function,
    generic,
    random,
    reduce,
    run,
    scheduled,
    tensor_type,
)

AXES = [
    ((1000,), (0,)),
    ((3,), (0,)),
    ((1,), (0,)),
    ((37, 50), (0,)),
    ((37, 50), (1,)),
    ((37, 50), (0, 1)),
    ((40, 1), (1,)),
    ((1, 40), (0,)),
    ((4, 5, 70), (0, 2)),
    ((4, 5, 70), (1,)),
    ((4, 1, 70), (1, 2)),
    ((2, 3, 4, 5), (1, 3)),
    ((3, 200), (1,)),
    ((50, 2000), (0,)),
    ((3, 21, 1030), (1,)),
    ((4, 3, 5, 70), (0, 2)),
    ((2, 3, 4, 2, 5, 40), (0, 2, 4)),
]


@pytest.mark.parametrize(("shape", "axes"), AXES, ids=str)
@pytest.mark.parametrize("dtype", ["f32", "i64"])
def test_sum_of_products(shape: tuple[int, ...], axes: tuple[int, ...], dtype: str) -> None:
    t = tensor_type(shape, dtype)
    kept = tuple(extent for axis, extent in enumerate(shape) if axis not in axes)
    o = tensor_type(kept, dtype)
    zero, add = ("0.0", "arith.addf") if dtype[0] == "f" else ("0", "arith.addi")
    body = empty("p", t) + f"\n    %p = linalg.mul ins(%a0, %a1 : {t}, {t}) outs(%p_init : {t}) -> {t}"
    body += filled("r", o, zero) + reduce("r", ("%p", t), o, list(axes), add)
    x, y = random(shape, dtype, 1), random(shape, dtype, 2)
    out: Array = np.full(kept, 9, DTYPES[dtype])
    product = np.zeros_like(x)
    run(function([t, t], [o, t], body, ["%r", "%p"]), [x, y], [out, product])
    np.testing.assert_array_equal(product, x * y)
    np.testing.assert_allclose(out, (x * y).sum(axis=axes), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("combine", "dtype", "start", "ufunc"),
    [
        ("arith.maximumf", "f32", "0xFF800000", np.maximum),
        ("arith.minimumf", "f64", "0x7FF0000000000000", np.minimum),
        ("arith.maxsi", "i32", "-2147483648", np.maximum),
        ("arith.minsi", "i64", "9223372036854775807", np.minimum),
        ("arith.mulf", "f64", "1.0", np.multiply),
        ("arith.muli", "i32", "1", np.multiply),
        ("arith.andi", "i32", "-1", np.bitwise_and),
        ("arith.ori", "i32", "0", np.bitwise_or),
        ("arith.xori", "i64", "0", np.bitwise_xor),
    ],
)
@pytest.mark.parametrize("axis", [0, 1])
def test_combiners(combine: str, dtype: str, start: str, ufunc: np.ufunc, axis: int) -> None:
    shape = (19, 45)
    t, o = tensor_type(shape, dtype), tensor_type((shape[1 - axis],), dtype)
    x = random(shape, dtype, 1)
    out: Array = np.zeros(shape[1 - axis], DTYPES[dtype])
    text = function([t], [o], filled("r", o, start) + reduce("r", ("%a0", t), o, [axis], combine), ["%r"])
    run(text, [x], [out])
    np.testing.assert_allclose(
        out, ufunc.reduce(x, axis=axis, dtype=x.dtype), rtol=1e-12 if dtype == "f64" else 0
    )


_LOW, _HIGH = -(2**31), 2**31 - 1
_ONE_NUMBER = [
    ("arith.maxsi", _LOW, [_LOW, -5, 0, 5, _HIGH]),
    ("arith.minsi", _HIGH, [_LOW, -5, 0, 5, _HIGH]),
    ("arith.maxui", 0, [0, 5, _HIGH, _LOW, -1]),
    ("arith.minui", -1, [0, 5, _HIGH, _LOW, -1]),
    ("arith.andi", -1, [0, 5, -6, -1]),
    ("arith.ori", 0, [0, 5, -6, -1]),
]


@pytest.mark.parametrize(("combine", "start", "numbers"), _ONE_NUMBER, ids=[case[0] for case in _ONE_NUMBER])
def test_reducing_one_number_gives_that_number(combine: str, start: int, numbers: list[int]) -> None:
    t, o = tensor_type((len(numbers), 45), "i32"), tensor_type((len(numbers),), "i32")
    x = np.repeat(np.array(numbers, np.int32)[:, None], 45, axis=1)
    out: Array = np.zeros(len(numbers), np.int32)
    body = filled("r", o, str(start)) + reduce("r", ("%a0", t), o, [1], combine)
    run(function([t], [o], body, ["%r"]), [x], [out])
    np.testing.assert_array_equal(out, numbers)


@pytest.mark.parametrize(
    ("combine", "sign", "nothing"), [("maximumf", -1, "0xFF800000"), ("minimumf", 1, "0x7F800000")]
)
def test_the_extreme_of_numbers_of_one_sign(combine: str, sign: int, nothing: str) -> None:
    t, o = tensor_type((3, 45), "f32"), tensor_type((3,), "f32")
    x: Array = np.array([1, 1e-45, np.inf], np.float32)[:, None] * np.full((1, 45), sign, np.float32)
    out: Array = np.zeros(3, np.float32)
    body = filled("r", o, nothing) + reduce("r", ("%a0", t), o, [1], f"arith.{combine}")
    run(function([t], [o], body, ["%r"]), [x], [out])
    np.testing.assert_array_equal(out, x[:, 0])


@pytest.mark.parametrize(
    ("combine", "length", "expected"),
    [("mulf", 45, 2.0**45), ("muli", 20, 2**20), ("addi", 45, 90), ("xori", 45, 2)],
)
def test_how_often_a_number_is_combined(combine: str, length: int, expected: float) -> None:
    dtype = "f32" if combine[-1] == "f" else "i32"
    t, o = tensor_type((length,), dtype), tensor_type((), dtype)
    out: Array = np.zeros((), DTYPES[dtype])
    start = {"mulf": "1.0", "muli": "1"}.get(combine, "0")
    body = filled("r", o, start) + reduce("r", ("%a0", t), o, [0], f"arith.{combine}")
    run(function([t], [o], body, ["%r"]), [np.full(length, 2, DTYPES[dtype])], [out])
    assert out == expected


def test_reductions_along_different_axes_of_one_value() -> None:
    """They run over the same elements, in vectors along the same loop, but not in the same nest."""
    shape = (19, 45)
    t, rows, columns = tensor_type(shape, "f32"), tensor_type((19,), "f32"), tensor_type((45,), "f32")
    body = empty("p", t) + f"\n    %p = linalg.mul ins(%a0, %a0 : {t}, {t}) outs(%p_init : {t}) -> {t}"
    body += filled("r", columns, "0.0") + reduce("r", ("%p", t), columns, [0], "arith.addf")
    body += filled("q", rows, "0.0") + reduce("q", ("%p", t), rows, [1], "arith.addf")
    x = random(shape, "f32", 1)
    down, across = np.zeros(45, np.float32), np.zeros(19, np.float32)
    run(function([t], [columns, rows], body, ["%r", "%q"]), [x], [down, across])
    np.testing.assert_allclose(down, (x * x).sum(axis=0), rtol=1e-5)
    np.testing.assert_allclose(across, (x * x).sum(axis=1), rtol=1e-5)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(5, 300), (300, 5), (19, 45)], ids=str)
def test_several_sums_in_one_nest_are_kept_apart(shape: tuple[int, int], axis: int) -> None:
    t, o = tensor_type(shape, "f64"), tensor_type((shape[1 - axis],), "f64")
    body, names = "", []
    for number, source in enumerate(("%a0", "%p0", "%p1")):
        body += empty(f"p{number}", t)
        body += (
            f"\n    %p{number} = linalg.add ins({source}, %a1 : {t}, {t}) outs(%p{number}_init : {t}) -> {t}"
        )
    for number in range(3):
        body += filled(f"r{number}", o, f"{number}.0")
        body += reduce(f"r{number}", (f"%p{number}", t), o, [axis], "arith.addf")
        names.append(f"%r{number}")
    x, y = random(shape, "f64", 1), random(shape, "f64", 2)
    outs = [np.zeros(shape[1 - axis]) for _ in range(3)]
    run(function([t, t], [o, o, o], body, names), [x, y], outs)
    for number, out in enumerate(outs):
        np.testing.assert_allclose(out, number + (x + (number + 1) * y).sum(axis=axis), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("axis", [0, 1])
def test_reduction_starts_from_its_init(axis: int) -> None:
    shape = (9, 33)
    t, o = tensor_type(shape, "f32"), tensor_type((shape[1 - axis],), "f32")
    x, start = random(shape, "f32", 1), random((shape[1 - axis],), "f32", 2)
    before, out = start.copy(), np.zeros(shape[1 - axis], np.float32)
    body = reduce("r", ("%a0", t), o, [axis], "arith.addf").replace("%r_init", "%a1")
    run(function([t, o], [o], body, ["%r"]), [x, start], [out])
    np.testing.assert_allclose(out, start + x.sum(axis=axis), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(start, before)


@pytest.mark.parametrize("shape", [(40, 70), (3, 5), (1, 1), (2, 3, 40)], ids=str)
def test_smallest_and_largest_at_once(shape: tuple[int, ...]) -> None:
    t, o = tensor_type(shape, "i64"), tensor_type((), "i64")
    dims = ", ".join(f"d{i}" for i in range(len(shape)))
    body = filled("low", o, "9223372036854775807") + filled("high", o, "-9223372036854775808")
    body += f"""
    %r:2 = linalg.generic {{
        indexing_maps = [
          affine_map<({dims}) -> ({dims})>, affine_map<({dims}) -> ()>, affine_map<({dims}) -> ()>],
        iterator_types = [{", ".join(['"reduction"'] * len(shape))}]}}
      ins(%a0 : {t}) outs(%low_init, %high_init : {o}, {o}) {{
      ^bb0(%x: i64, %low: i64, %high: i64):
        %s = arith.minsi %low, %x : i64
        %l = arith.maxsi %high, %x : i64
        linalg.yield %s, %l : i64, i64
    }} -> ({o}, {o})"""
    x = random(shape, "i64", 1)
    low, high = np.zeros((), np.int64), np.zeros((), np.int64)
    text = function([t], [o, o], body, ["%r#0", "%r#1"])
    assert "linalg." not in scheduled(text)
    run(text, [x], [low, high])
    assert (low, high) == (x.min(), x.max())


def test_sum_of_nothing_and_of_negative_zeros() -> None:
    t, o = tensor_type((3, 0), "f32"), tensor_type((3,), "f32")
    out = np.full(3, 9, np.float32)
    text = function([t], [o], filled("r", o, "0.0") + reduce("r", ("%a0", t), o, [1], "arith.addf"), ["%r"])
    run(text, [np.zeros((3, 0), np.float32)], [out])
    np.testing.assert_array_equal(out, [0, 0, 0])
    t = tensor_type((3, 5), "f32")
    text = function([t], [o], filled("r", o, "0.0") + reduce("r", ("%a0", t), o, [1], "arith.addf"), ["%r"])
    run(text, [np.full((3, 5), -0.0, np.float32)], [out])
    assert not np.signbit(out).any()


@pytest.mark.parametrize("shape", [(8, 100), (1, 5), (5, 1), (33, 16)], ids=str)
def test_softmax_like_program(shape: tuple[int, int]) -> None:
    m = shape[0]
    t, o = tensor_type(shape, "f32"), tensor_type((m,), "f32")
    body = filled("top", o, "0xFF800000") + reduce("top", ("%a0", t), o, [1], "arith.maximumf")
    body += empty("c", t) + generic(
        "c",
        [("%a0", t, "d0, d1"), ("%top", o, "d0")],
        (t, "d0, d1"),
        ["parallel"] * 2,
        "%s = arith.subf %x0, %x1 : f32\n        linalg.yield %s : f32",
    )
    body += filled("sum", o, "0.0") + reduce("sum", ("%c", t), o, [1], "arith.addf")
    body += empty("q", t) + generic(
        "q",
        [("%c", t, "d0, d1"), ("%sum", o, "d0")],
        (t, "d0, d1"),
        ["parallel"] * 2,
        "%s = arith.divf %x0, %x1 : f32\n        linalg.yield %s : f32",
    )
    x = random(shape, "f32", 1) + 10
    x[:, 0] += 5
    out = np.zeros(shape, np.float32)
    run(function([t], [t], body, ["%q"]), [x], [out])
    centred = x - x.max(axis=1, keepdims=True)
    sums = centred.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        np.testing.assert_allclose(out, centred / sums, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("op", "shapes"),
    [
        ("dot", ((7,), (7,), ())),
        ("dot", ((131,), (131,), ())),
        ("matvec", ((5, 7), (7,), (5,))),
        ("matvec", ((100, 300), (300,), (100,))),
        ("vecmat", ((5,), (5, 7), (7,))),
        ("vecmat", ((300,), (300, 100), (100,))),
    ],
    ids=str,
)
def test_products_with_vectors(op: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    types = [tensor_type(shape, "f32") for shape in shapes]
    body = filled("r", types[2], "0.0")
    body += (
        f"\n%r = linalg.{op} ins(%a0, %a1 : {types[0]}, {types[1]}) outs(%r_init : {types[2]}) -> {types[2]}"
    )
    x, y = random(shapes[0], "f32", 1), random(shapes[1], "f32", 2)
    out = np.zeros(shapes[2], np.float32)
    text = function(types[:2], types[2:], body, ["%r"])
    form = scheduled(text)
    assert form.count("linalg.generic") == form.count("mind.product")
    run(text, [x, y], [out])
    np.testing.assert_allclose(out, x @ y, rtol=1e-4, atol=1e-4)
