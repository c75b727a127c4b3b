"""A decode loop in PTIR: a scan that writes each step's row into a cache and reads all of it."""

from __future__ import annotations

import re

import numpy as np
import pytest

import mind_mlir
from mind_mlir.diagnostics import VerificationError
from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.types import DType, SymbolicDim, TensorType, TupleType
from mind_mlir.languages.ptir import dumps, parse
from mind_mlir.languages.ptir.program import (
    Function,
    Instruction,
    Operation,
    Program,
    Region,
    TupleElement,
    ValueRef,
)
from mind_mlir.languages.ptir.symbols import bind
from mind_mlir.languages.ptir.to_module import to_module
from mind_mlir.runtime.binding_cache import BindingCache

T = SymbolicDim("T")
LENGTH, WIDTH = 32, 8
CACHE = TensorType(DType.F32, (LENGTH, WIDTH))
ROW = TensorType(DType.F32, (WIDTH,))
PLACE = TensorType(DType.SI32, (1,))
SCORES = TensorType(DType.F32, (LENGTH,))


def value(number: int) -> ValueRef:
    return ValueRef(number)


def operation(name: str, variant: str | None = None, **fields: object) -> Operation:
    return Operation(name, variant, fields)


def decode(steps: int | SymbolicDim = T) -> Program:
    """Return ``(cache, rows, place) -> (place, cache, scores)``: the place moves on with each row."""
    zero, one = (TensorLiteral.of(data, DType.SI32) for data in ([0], [1]))
    window = TensorType(DType.F32, (1, WIDTH))
    contract = operation(
        "DotGeneral",
        batch_lhs=(),
        batch_rhs=(),
        contract_lhs=(1,),
        contract_rhs=(0,),
        accum_dtype=None,
        out_dtype=None,
    )
    body = (
        Instruction(3, operation("Concat", axis=0), (value(0), zero), TensorType(DType.SI32, (2,))),
        Instruction(4, operation("Reshape", new_shape=(1, None)), (value(2),), window),
        Instruction(
            5, operation("DynamicUpdateSlice", sizes=(1, WIDTH)), (value(1), value(4), value(3)), CACHE
        ),
        Instruction(6, operation("ElementwiseBinary", "Add"), (value(0), one), PLACE),
        Instruction(7, operation("Reshape", new_shape=(LENGTH, WIDTH)), (value(5),), CACHE),
        Instruction(8, contract, (value(5), value(2)), SCORES),
    )
    region = Region(0, (PLACE, CACHE, ROW), body, (PLACE, CACHE, SCORES))
    rows = TensorType(DType.F32, (steps, WIDTH))
    results = (PLACE, CACHE, TensorType(DType.F32, (steps, LENGTH)))
    scan = operation("Scan", body_region=0, carry_count=2, scan_output_count=1)
    entry = Function(
        "main",
        (CACHE, rows, PLACE),
        (0, 1, 2),
        (Instruction(3, scan, (value(2), value(0), value(1)), TupleType(results)),),
        (TupleType(results),),
        (3,),
    )
    return Program((entry,), (region,))


@pytest.mark.parametrize("steps", [0, 1, 5])
def test_the_rows_are_in_the_cache_and_the_scores_of_each_step_are_stacked(steps: int) -> None:
    rng = np.random.default_rng(3)
    cache, rows = rng.standard_normal((LENGTH, WIDTH)), rng.standard_normal((steps, WIDTH))
    given = (cache.astype(np.float32), rows.astype(np.float32), np.array([7], np.int32))
    expected, scores = given[0].copy(), []
    for step, row in enumerate(given[1]):
        expected[7 + step] = row
        scores.append(expected @ row)
    executable = mind_mlir.compile(parse(dumps(decode())))
    interpreted = mind_mlir.interpret(decode(), dict(zip(("arg0", "arg1", "arg2"), given, strict=True)))
    for ((place, found, stacked),) in (executable(*given), interpreted):
        assert place.tolist() == [7 + steps]
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_allclose(
            stacked, np.array(scores, np.float32).reshape(steps, LENGTH), rtol=1e-5, atol=1e-5
        )


def test_no_step_copies_the_cache() -> None:
    text = mind_mlir.compile(to_module(bind(decode(), {"T": 6}))).as_text("bufferized")
    (begin,) = re.finditer(r"scf\.for .* : i64 \{\n", text)  # the others count with index
    loop = text[begin.end() :]
    assert "memref.copy" in loop, "that of a row"
    whole = f"memref<{LENGTH}x{WIDTH}xf32"
    assert not re.search(rf"memref\.copy .*{whole}[^>]*> to {whole}", loop)


def test_its_gradient_goes_back_through_all_steps() -> None:
    gradient = mind_mlir.differentiate(decode(3), wrt=["arg1"])
    rows = np.random.default_rng(5).standard_normal((3, WIDTH)).astype(np.float32)
    cache = np.zeros((LENGTH, WIDTH), np.float32)
    *_, found = mind_mlir.compile(gradient.module)(cache, rows, np.array([0], np.int32))
    # The cache holds each row once: a sum of ones; the scores sum row_i . row_k over i <= k.
    for step in range(3):
        before, after = rows[: step + 1].sum(axis=0), rows[step:].sum(axis=0)
        expected = 1 + before + after
        np.testing.assert_allclose(found[step], expected, rtol=1e-5)


def test_what_is_wrong_in_a_region_is_said_of_it() -> None:
    wrong = decode(3)
    region = wrong.regions[0]
    twice = (*region.body[:-1], Instruction(8, region.body[-1].operation, (value(5), value(99)), SCORES))
    with pytest.raises(VerificationError) as raised:
        to_module(Program(wrong.functions, (Region(0, region.parameters, twice, region.results),)))
    (found,) = raised.value.diagnostics
    assert found.code == "E4001"
    assert found.message == "%99 is not defined before %8 in region 0"


def test_long_programs_and_wide_tuples_are_converted() -> None:
    negate = operation("ElementwiseUnary", "Neg")
    count = 20_000
    body = tuple(Instruction(n, negate, (value(n - 1),), ROW) for n in range(1, count))
    line = Program((Function("main", (ROW,), (0,), body, (ROW,), (count - 1,)),))
    assert len(to_module(line).functions[0].entry.operations) == count - 1
    wide = TupleType((ROW,) * 200)
    body = tuple(Instruction(n + 1, negate, (TupleElement(0, n),), ROW) for n in range(200))
    module = to_module(Program((Function("main", (wide,), (0,), body, (ROW,), (200,)),)))
    assert len(module.functions[0].parameters) == 200


def test_a_value_that_cannot_be_made_is_not_kept() -> None:
    cache: BindingCache[int, str] = BindingCache(2)

    def fail() -> str:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        cache.get(1, fail)
    assert cache.get(1, lambda: "one") == "one"
    assert cache.get(1, fail) == "one"
    assert cache.get(2, lambda: "two") == "two"
    assert cache.get(1, fail) == "one"
    assert cache.get(3, lambda: "three") == "three"  # in the place of 2
    assert cache.items() == [(1, "one"), (3, "three")]
    assert (cache.hits, cache.misses, cache.evictions) == (2, 4, 1)
