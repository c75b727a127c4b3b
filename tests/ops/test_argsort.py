"""ArgSort: every dtype's awkward values against Python's sort, several keys, gradients, rejections."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from harness import edge_values, findings, run_both

import mind_mlir
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.example_types import parse_type
from mind_mlir.ops.numbers import widened
from mind_mlir.ops.opdef import ALL_REAL, BOOL
from mind_mlir.ops.registry import by_opcode

SORT = by_opcode()["ArgSort"]


def form(axis: int, **more: Any) -> dict[str, Any]:
    return {"axis": axis, "descending": False, "total_order": False, "indices_dtype": DType.SI32, **more}


def signed_magnitude(array: Any) -> list[int]:
    """Return the bits of floats as numbers, of which those of negative ones are below zero."""
    most = (1 << (8 * array.itemsize - 1)) - 1
    bits = [int(each) for each in array.view(f"i{array.itemsize}")]
    return [each if each >= 0 else -1 - (each & most) for each in bits]


@pytest.mark.parametrize("length", [59, 257])
@pytest.mark.parametrize("total", [False, True])
def test_awkward_values_of_every_dtype(length: int, total: bool) -> None:
    rng = np.random.default_rng(0)
    for number, dtype in enumerate(BOOL + ALL_REAL):
        values = edge_values(dtype)
        key = values[rng.integers(0, len(values), length)]
        descending = number % 2 == 1
        numbers = [(math.isnan(each), 0 if math.isnan(each) else each) for each in widened(key).tolist()]
        ranks: list[Any] = signed_magnitude(key) if total and dtype.is_float else numbers
        # Python, too, keeps the order of equal ones either way.
        order = sorted(range(length), key=ranks.__getitem__, reverse=descending)
        found = run_both(SORT, (key,), form(0, descending=descending, total_order=total))
        assert found.tolist() == order, dtype


@pytest.mark.parametrize("shape", [(3, 41, 2), (3, 97, 2)])
@pytest.mark.parametrize("descending", [False, True])
def test_several_keys(shape: tuple[int, ...], descending: bool) -> None:
    rng = np.random.default_rng(1)
    keys = [
        rng.integers(-1, 2, shape).astype(np.float64),
        rng.integers(0, 2, shape).astype(np.bool_),
        rng.integers(-2, 2, shape) * 2**40,
    ]
    found = run_both(SORT, keys, form(1, descending=descending, indices_dtype=DType.SI64))
    for at in np.ndindex(3, 2):
        rows = [key[at[0], :, at[1]].tolist() for key in keys]
        numbers = [tuple(-row[i] if descending else row[i] for row in rows) for i in range(shape[1])]
        assert found[at[0], :, at[1]].tolist() == sorted(range(shape[1]), key=numbers.__getitem__)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("kinds", [("?",), ("?", "?"), ("i1", "?"), ("?", "u1", "i1"), ("i1",)])
def test_keys_of_few_bits(kinds: tuple[str, ...], descending: bool) -> None:
    rng = np.random.default_rng(2)
    keys = [rng.integers(0 if kind == "?" else -128, 2, (3, 211)).astype(kind) for kind in kinds]
    keys[0][1], keys[0][2] = keys[0][1, 0], keys[0][2] == keys[0][2, 0]  # all the same, and few
    found = run_both(SORT, keys, form(1, descending=descending, indices_dtype=DType.SI64))
    ranks = [-key.astype(int) if descending else key.astype(int) for key in keys]
    assert found.tolist() == np.lexsort(ranks[::-1], axis=1).tolist()


def test_the_memory_that_sorting_takes() -> None:
    def scratch(dtype: str) -> int:
        keys = "\n".join(f'%{place} = Input {{name="x{place}"}} : tensor<{dtype}[999]>' for place in (0, 1))
        sort = "ArgSort (%0, %1) {axis=0, descending=false, indices_dtype=i32, total_order=false}"
        text = mind_mlir.compile(mind_mlir.parse(f"{keys}\n%2 = {sort} : tensor<i32[999]>\noutputs: %2\n"))
        return int(re.findall(r"mind.scratch_bytes = (\d+)", text.as_text("bufferized"))[0])

    assert scratch("i1") < 999 * 5  # indices in the order of the second key
    assert scratch("i32") < 999 * 22  # two lines of words


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("length", [67, 256])
def test_digits_that_all_elements_of_a_row_share(dtype: type[np.signedinteger[Any]], length: int) -> None:
    """Each row has another set of digits that differ, so that others take no pass; none does in the first."""
    rng = np.random.default_rng(2)
    digits = np.dtype(dtype).itemsize
    rows = range(1 << digits) if digits == 4 else [0, 1, 0x80, 0x81, 0x10, 0x1F, 0xF0, 0x5A, 0xFF]
    shares = [np.array([255 if row >> digit & 1 else 0 for digit in range(digits)], np.uint8) for row in rows]
    key = np.stack([rng.integers(0, 256, (length, digits), np.uint8) & share for share in shares])
    keys = [np.ascontiguousarray(key).view(dtype)[:, :, 0], rng.integers(0, 2, (len(rows), length)) * 7]
    for used in (keys[:1], keys, keys[::-1]):
        found = run_both(SORT, used, form(1))
        assert found.tolist() == np.lexsort(used[::-1], axis=1).tolist()


def test_all_passes_are_one_loop() -> None:
    def loops(dtype: str) -> int:
        sort = "ArgSort (%0) {axis=0, descending=false, indices_dtype=i32, total_order=false}"
        text = (
            f'%0 = Input {{name="x"}} : tensor<{dtype}[100]>\n%1 = {sort} : tensor<i32[100]>\noutputs: %1\n'
        )
        found: str = mind_mlir.compile(mind_mlir.parse(text)).as_text("linalg")
        return found.count("scf.for")

    assert loops("f32") == loops("i32")
    assert loops("i64") < 2 * loops("i32")


def test_the_gradient_goes_back_where_elements_come_from() -> None:
    builder = mind_mlir.Builder()
    x = builder.input("x", TensorType(DType.F32, (2, 5)))
    order = builder.emit("ArgSort", x, axis=1, indices_dtype=DType.SI32)
    weights = builder.constant(np.arange(5, dtype=np.float32), DType.F32)
    ordered = builder.emit("GatherElements", x, order, axis=1)
    total = builder.emit("Sum", builder.emit("Mul", ordered, weights))
    module = mind_mlir.differentiate(builder.build([total])).module
    data = np.array([[3, 1, 2, 5, 4], [1, 1, 0, -1, 2]], np.float32)
    gradient = list(mind_mlir.interpret(module, {"x": data}))[-1]
    assert gradient.tolist() == [[2, 0, 1, 4, 3], [2, 3, 1, 0, 4]]


@pytest.mark.parametrize(
    ("operands", "change", "code"),
    [
        (["f32[3]", "f32[4]"], {}, "E3003"),
        (["f32[3]"], {"axis": 1}, "E3004"),
        (["f32[3]"], {"indices_dtype": DType.SI16}, "E2005"),
        (["cf32[3]"], {}, "E2005"),
        (["i1[2147483648]"], {"indices_dtype": DType.SI64}, "E3006"),
    ],
)
def test_what_is_refused(operands: list[str], change: dict[str, Any], code: str) -> None:
    types = [parse_type(each, None) for each in operands]
    assert [each.code for each in findings(SORT, types, {**form(0), **change})] == [code]
