"""Elementwise operations and reductions, alone and fused, against numpy."""

from __future__ import annotations

import time

import numpy as np
import pytest
from schedule_harness import DTYPES, Array, bufferized, function, run, scheduled, tensor_type

from mind_mlir.bindings import ir, new_context
from mind_mlir.lowering.schedule import schedule
from mind_mlir.lowering.target import Target, host_target

SHAPES = [(), (1,), (7,), (64,), (1000,), (3, 5), (1, 40), (40, 1), (2, 3, 37), (4, 16, 32), (5, 1, 33, 1)]
SSE = Target()


def random(shape: tuple[int, ...], dtype: str, seed: int) -> Array:
    generator = np.random.default_rng(seed)
    if dtype == "i1":
        return generator.integers(0, 2, shape).astype(np.bool_)
    if dtype[0] == "f":
        return np.asarray(generator.standard_normal(shape), DTYPES[dtype])
    return np.asarray(generator.integers(-1000, 1000, shape), DTYPES[dtype])


def element(type_: str) -> str:
    return type_.removesuffix(">").removeprefix("tensor<").split("x")[-1]


def generic(
    name: str, ins: list[tuple[str, str, str]], out: tuple[str, str], loops: list[str], body: str
) -> str:
    """Return a generic of ``(value, type, map)`` inputs into ``(type, map)``; elements are %x0... and %y."""
    dims = ", ".join(f"d{i}" for i in range(len(loops)))
    maps = ", ".join(f"affine_map<({dims}) -> ({m})>" for m in [*(i[2] for i in ins), out[1]])
    kinds = ", ".join(f'"{kind}"' for kind in loops)
    arguments = [f"%x{i}: {element(t)}" for i, (_, t, _) in enumerate(ins)] + [f"%y: {element(out[0])}"]
    inputs = f"ins({', '.join(i[0] for i in ins)} : {', '.join(i[1] for i in ins)})" if ins else ""
    return f"""
    %{name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
      {inputs} outs(%{name}_init : {out[0]}) {{
      ^bb0({", ".join(arguments)}):
        {body}
    }} -> {out[0]}"""


def empty(name: str, type_: str) -> str:
    return f"\n    %{name}_init = tensor.empty() : {type_}"


def filled(name: str, type_: str, value: str) -> str:
    return f"""
    %{name}_value = arith.constant {value} : {element(type_)}
    %{name}_empty = tensor.empty() : {type_}
    %{name}_init = linalg.fill ins(%{name}_value : {element(type_)})
      outs(%{name}_empty : {type_}) -> {type_}"""


def reduce(name: str, source: tuple[str, str], out: str, axes: list[int], combine: str) -> str:
    return f"""
    %{name} = linalg.reduce ins({source[0]} : {source[1]}) outs(%{name}_init : {out}) dimensions = {axes}
      (%e: {element(out)}, %acc: {element(out)}) {{
        %next = {combine} %acc, %e : {element(out)}
        linalg.yield %next : {element(out)}
      }}"""


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["f32", "f64", "i32", "i64"])
def test_elementwise_chain(shape: tuple[int, ...], dtype: str) -> None:
    t = tensor_type(shape, dtype)
    body = "".join(
        empty(name, t)
        + f"\n    %{name} = linalg.{op} ins({a}, {b} : {t}, {t}) outs(%{name}_init : {t}) -> {t}"
        for name, op, a, b in [
            ("s", "add", "%a0", "%a1"),
            ("p", "mul", "%s", "%a1"),
            ("d", "sub", "%p", "%s"),
        ]
    )
    x, y = random(shape, dtype, 1), random(shape, dtype, 2)
    out, total = np.zeros_like(x), np.zeros_like(x)
    run(function([t, t], [t, t], body, ["%d", "%s"]), [x, y], [out, total])
    np.testing.assert_array_equal(out, (x + y) * y - (x + y))
    np.testing.assert_array_equal(total, x + y)


@pytest.mark.parametrize("target", [None, SSE], ids=["host", "sse"])
@pytest.mark.parametrize("shape", [(5, 70), (33, 1), (1, 33), (17, 16)], ids=str)
def test_broadcast_operands(shape: tuple[int, int], target: Target | None) -> None:
    m, n = shape
    types = [tensor_type(s, "f32") for s in (shape, (n,), (m, 1), ())]
    ins = [
        (f"%a{i}", t, k) for i, (t, k) in enumerate(zip(types, ["d0, d1", "d1", "d0, 0", ""], strict=True))
    ]
    body = empty("r", types[0]) + generic(
        "r",
        ins,
        (types[0], "d0, d1"),
        ["parallel"] * 2,
        """%s = arith.addf %x0, %x1 : f32
        %p = arith.mulf %s, %x2 : f32
        %q = arith.subf %p, %x3 : f32
        linalg.yield %q : f32""",
    )
    x, row, column, scalar = (random(s, "f32", i) for i, s in enumerate([shape, (n,), (m, 1), ()]))
    out = np.zeros(shape, np.float32)
    run(function(types, types[:1], body, ["%r"]), [x, row, column, scalar], [out], target)
    np.testing.assert_array_equal(out, (x + row) * column - scalar)


@pytest.mark.parametrize("shape", [(1,), (40,), (3, 21)], ids=str)
def test_booleans_in_memory(shape: tuple[int, ...]) -> None:
    t, b = tensor_type(shape, "f32"), tensor_type(shape, "i1")
    dims = ", ".join(f"d{i}" for i in range(len(shape)))
    loops = ["parallel"] * len(shape)
    body = empty("c", b) + generic(
        "c",
        [("%a0", t, dims), ("%a1", t, dims), ("%a2", b, dims)],
        (b, dims),
        loops,
        """%l = arith.cmpf olt, %x0, %x1 : f32
        %k = arith.xori %l, %x2 : i1
        linalg.yield %k : i1""",
    )
    body += empty("s", t) + generic(
        "s",
        [("%c", b, dims), ("%a0", t, dims), ("%a1", t, dims)],
        (t, dims),
        loops,
        """%k = arith.select %x0, %x1, %x2 : f32
        linalg.yield %k : f32""",
    )
    x, y, flip = random(shape, "f32", 1), random(shape, "f32", 2), random(shape, "i1", 3)
    chosen, out = np.zeros(shape, np.bool_), np.zeros(shape, np.float32)
    run(function([t, t, b], [b, t], body, ["%c", "%s"]), [x, y, flip], [chosen, out])
    np.testing.assert_array_equal(chosen, (x < y) ^ flip)
    np.testing.assert_array_equal(out, np.where((x < y) ^ flip, x, y))


def test_conversions_and_indices() -> None:
    shape = (6, 37)
    i, f = tensor_type(shape, "i32"), tensor_type(shape, "f64")
    body = empty("r", f) + generic(
        "r",
        [("%a0", i, "d0, d1")],
        (f, "d0, d1"),
        ["parallel"] * 2,
        """%i = linalg.index 0 : index
        %j = linalg.index 1 : index
        %k = arith.muli %i, %j : index
        %l = arith.index_cast %k : index to i32
        %m = arith.addi %l, %x0 : i32
        %n = arith.sitofp %m : i32 to f64
        linalg.yield %n : f64""",
    )
    x, out = random(shape, "i32", 1), np.zeros(shape)
    run(function([i], [f], body, ["%r"]), [x], [out])
    np.testing.assert_array_equal(out, np.arange(6)[:, None] * np.arange(37) + x)


def test_dead_lanes_do_not_divide_by_zero() -> None:
    t = tensor_type((3,), "i32")
    body = empty("r", t) + generic(
        "r",
        [("%a0", t, "d0"), ("%a1", t, "d0")],
        (t, "d0"),
        ["parallel"],
        "%q = arith.divsi %x0, %x1 : i32\n        linalg.yield %q : i32",
    )
    out = np.zeros(3, np.int32)
    run(
        function([t, t], [t], body, ["%r"]),
        [np.array([7, 9, -8], np.int32), np.array([2, 3, 4], np.int32)],
        [out],
    )
    np.testing.assert_array_equal(out, [3, 3, -2])


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
    assert "linalg." not in scheduled(text)
    run(text, [x, y], [out])
    np.testing.assert_allclose(out, x @ y, rtol=1e-4, atol=1e-4)


def chain(length: int, shape: tuple[int, ...] = (64, 64)) -> str:
    t = tensor_type(shape, "f32")
    body, last = "", "%a0"
    for i in range(length):
        body += empty(f"v{i}", t)
        body += f"\n    %v{i} = linalg.add ins({last}, %a1 : {t}, {t}) outs(%v{i}_init : {t}) -> {t}"
        last = f"%v{i}"
    return function([t, t], [t], body, [last])


def test_long_chain() -> None:
    x, y = random((64, 64), "f32", 1), random((64, 64), "f32", 2)
    out, expected = np.zeros_like(x), x
    for _ in range(130):
        expected = expected + y
    text = chain(130)
    run(text, [x, y], [out])
    np.testing.assert_array_equal(out, expected)
    assert scheduled(text).count("scf.for") == 3  # groups of at most 48


def test_scheduling_takes_linear_time() -> None:
    seconds = {}
    for length in (500, 4000):
        with new_context(), ir.Location.unknown():
            module = ir.Module.parse(chain(length))
            start = time.process_time()
            schedule(module, host_target())
            seconds[length] = time.process_time() - start
    assert seconds[4000] < 3 * 8 * seconds[500]


def test_fused_results_use_no_memory_in_between() -> None:
    assert "memref.alloc" not in bufferized(chain(40))
    assert "memref.copy" not in bufferized(chain(40))


def test_blocks_inside_of_operations_are_scheduled() -> None:
    t = tensor_type((40,), "f32")
    body = f"""
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %ten = arith.constant 10 : index
    %i = tensor.empty() : {t}
    %s = linalg.add ins(%a0, %a0 : {t}, {t}) outs(%i : {t}) -> {t}
    %r = scf.for %k = %zero to %ten step %one iter_args(%x = %a0) -> ({t}) {{
      %j = tensor.empty() : {t}
      %y = linalg.add ins(%x, %s : {t}, {t}) outs(%j : {t}) -> {t}
      scf.yield %y : {t}
    }}"""
    text = function([t], [t], body, ["%r"])
    assert "linalg." not in scheduled(text)
