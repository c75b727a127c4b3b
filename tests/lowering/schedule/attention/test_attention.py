"""Attention and its gradients in tiles: against the interpreter, and what memory they take."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import guarded
import numpy as np
import pytest
from attention_cases import (
    CAUSAL,
    Shape,
    arguments_of,
    attention,
    check,
    logarithmic,
    nests,
    plain,
)

import mind_mlir
from examples.gpt2.builder import Body, program
from mind_mlir.interpreter import interpret
from mind_mlir.ir.types import DType
from mind_mlir.languages.ptir.to_module import to_module
from mind_mlir.lowering.schedule.attention import schedule
from mind_mlir.target import named_target

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.ir.module import Module

Array = np.ndarray[Any, np.dtype[Any]]


@pytest.fixture
def short_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of more than 20 keys are computed 20 keys at a time."""
    monkeypatch.setattr(schedule, "_WHOLE", 20)
    monkeypatch.setattr(schedule, "_BLOCK", 20)


@pytest.fixture(params=["whole", "blocks"])
def either(request: pytest.FixtureRequest) -> None:
    if request.param == "blocks":
        request.getfixturevalue("short_blocks")


CASES: dict[str, Callable[[], Module]] = {
    "prime": lambda: attention((2, 3, 67, 53, 24, 17)),
    "causal": lambda: attention((1, 2, 131, 131, 16, 32), hidden=CAUSAL),
    "strictly causal": lambda: attention((1, 1, 50, 50, 16, 16), hidden=("Greater", 0, -math.inf)),
    "first rows see nothing": lambda: attention(
        (2, 1, 70, 40, 16, 16), hidden=("GreaterEqual", -60, -math.inf)
    ),
    "last keys": lambda: attention((1, 1, 20, 90, 8, 8), hidden=("GreaterEqual", 70, -math.inf)),
    "finite fill": lambda: attention((1, 1, 40, 40, 8, 8), hidden=("GreaterEqual", 0, -1e30)),
    "added": lambda: attention((2, 2, 37, 41, 16, 16), mask=(37, 41)),
    "added, each": lambda: attention((2, 2, 37, 41, 16, 16), mask=(2, 2, 37, 41)),
    "added to keys": lambda: attention((2, 2, 37, 41, 16, 16), mask=(2, 1, 1, 41)),
    "added to queries": lambda: attention((2, 2, 37, 41, 16, 16), mask=(2, 1, 37, 1), hidden=CAUSAL),
    "seen": lambda: attention((2, 2, 37, 41, 16, 16), seen=(2, 1, 37, 41), hidden=CAUSAL),
    "seen, turned": lambda: attention((2, 2, 37, 41, 16, 16), seen=(41, 37), turned=True),
    "seen keys": lambda: attention((2, 2, 37, 41, 16, 16), seen=(2, 1, 1, 41)),
    "seen queries": lambda: attention((2, 2, 37, 41, 16, 16), seen=(2, 37, 1)),
    "plain": lambda: attention((1, 3, 33, 65, 16, 16), plain),
    "logarithmic": lambda: attention((1, 3, 33, 65, 16, 16), logarithmic, hidden=CAUSAL),
    "f64": lambda: attention((1, 2, 45, 45, 24, 8), dtype=DType.F64, hidden=CAUSAL),
    "bf16": lambda: attention((2, 2, 67, 53, 24, 16), dtype=DType.BF16, mask=(67, 53)),
    "bf16, odd": lambda: attention((2, 2, 49, 51, 24, 32), dtype=DType.BF16),
    "bf16, causal": lambda: attention((1, 2, 67, 67, 24, 16), dtype=DType.BF16, hidden=CAUSAL),
    "bf16, seen": lambda: attention((1, 2, 33, 47, 8, 32), plain, dtype=DType.BF16, seen=(33, 47)),
    "f16": lambda: attention((2, 1, 45, 67, 24, 16), dtype=DType.F16, mask=(2, 1, 1, 67)),
    "f16, causal": lambda: attention((1, 2, 67, 67, 16, 16), logarithmic, dtype=DType.F16, hidden=CAUSAL),
    "one feature": lambda: attention((2, 1, 48, 32, 1, 16), turned=True),
    "one head": lambda: attention((3, 1, 17, 20, 8, 16)),
    "deep": lambda: attention((1, 1, 30, 30, 200, 150)),
}
#: Their outputs are no whole vectors wide.
RAGGED = ("prime", "deep")


def expected_of(case: str) -> int:
    """Return how many attentions there are: none where rows that end within a vector would take masks."""
    return int(named_target().masks or case not in RAGGED)


@pytest.mark.usefixtures("either")
@pytest.mark.parametrize("case", CASES)
def test_forward(case: str) -> None:
    module = CASES[case]()
    check(module, arguments_of(module), fused=expected_of(case))


@pytest.mark.parametrize(
    "case",
    [
        "prime",
        "causal",
        "first rows see nothing",
        "added, each",
        "seen",
        "bf16",
        "bf16, odd",
        "bf16, causal",
        "f16",
        "plain",
        "logarithmic",
        "f64",
    ],
)
def test_gradients(case: str) -> None:
    """All of the gradients of queries, keys and values, of one mask too, come of a single nest."""
    module = mind_mlir.differentiate(CASES[case](), wrt=["arg0", "arg1", "arg2"], cotangents="given").module
    check(module, arguments_of(module), fused=expected_of(case))


#: Batches and heads are summed in parts where there are many: 35 of them, or 7 times 5.
ADDED: dict[str, tuple[tuple[int, int], Shape]] = {
    "each": ((2, 3), (2, 3, 19, 23)),
    "all batches": ((2, 3), (19, 23)),
    "many": ((5, 7), (19, 23)),
    "heads": ((5, 7), (7, 19, 23)),
    "batches": ((2, 3), (2, 1, 19, 23)),
    "keys": ((2, 3), (2, 1, 1, 23)),
    "queries": ((2, 3), (3, 19, 1)),
    "a number": ((2, 3), (2, 1, 1, 1)),
}


@pytest.mark.parametrize(
    ("case", "dtype"), [*((case, DType.F32) for case in ADDED), ("each", DType.BF16), ("heads", DType.BF16)]
)
def test_gradient_of_what_is_added(case: str, dtype: DType) -> None:
    """It is one of the outputs, in rows that see nothing and beside NaN, too."""
    heads, mask = ADDED[case]
    module = attention((*heads, 19, 23, 8, 16), mask=mask, dtype=dtype)
    gradient = mind_mlir.differentiate(module, cotangents="given").module
    arguments = arguments_of(gradient)
    if mask[-2:] == (19, 23):
        arguments["arg3"][..., 7, :] = -math.inf
        arguments["arg3"][..., 18, :20] = -math.inf
    check(gradient, arguments)
    arguments["cotangent_0"][0, 1, 3, 5] = math.nan
    check(gradient, arguments)


@pytest.mark.parametrize("mask", [(4, 19, 23), (3, 4, 19, 23)])
def test_gradient_of_what_is_added_to_plain_scores(mask: Shape) -> None:
    """What is summed over batches is a factor of products, too."""
    body = Body([])
    q, k, v = (body.parameter(DType.F32, 3, 4, length, 8) for length in (19, 23, 23))
    added = body.parameter(DType.F32, *mask)
    scores = body.binary("Add", body.product(q, body.transpose(k, 0, 1, 3, 2), 2, (3, 2)), added)
    module = to_module(program(body, [body.product(body.softmax(scores), v, 2, (3, 2))]))
    gradient = mind_mlir.differentiate(module, cotangents="given").module
    check(gradient, arguments_of(gradient))


def test_gradient_of_the_mask_alone() -> None:
    """Elements that the program returns and nothing else needs; sums of rows on the way are no outputs."""
    module = attention((1, 2, 37, 41, 8, 16), dtype=DType.F16, mask=(1, 2, 37, 41))
    gradient = mind_mlir.differentiate(module, wrt=["arg3"], cotangents="given").module
    check(gradient, arguments_of(gradient))
    assert "attention 2 x 37 x 41 x 8 x 16 x 16\n" in mind_mlir.compile(gradient).as_text("schedule")


@pytest.mark.usefixtures("either")
@pytest.mark.parametrize("hidden", [None, CAUSAL], ids=["all", "causal"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("place", ["arg0", "arg1", "arg2"])
def test_awkward_numbers(place: str, value: float, hidden: tuple[str, int, float] | None) -> None:
    """Of keys and values that no query of a block sees, too, as zero times infinity is not a number."""
    module = attention((1, 1, 70, 70, 8, 8), hidden=hidden)
    arguments = arguments_of(module)
    arguments[place][0, 0, 60, 3] = value
    check(module, arguments)


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("place", ["arg0", "arg1", "arg2", "cotangent_0"])
def test_awkward_numbers_in_gradients(place: str, value: float) -> None:
    module = attention((1, 2, 70, 70, 8, 8), hidden=CAUSAL)
    module = mind_mlir.differentiate(module, cotangents="given").module
    assert "skipped  keys beyond query + 0" in mind_mlir.compile(module).as_text("schedule")
    arguments = arguments_of(module)
    arguments[place][0, 0, 60, 3] = value
    arguments[place][0, 1, 3, 3] = value
    check(module, arguments)


@pytest.mark.usefixtures("either")
def test_rows_of_minus_infinity() -> None:
    """Rows without a finite score are NaN; one that begins with many of them is as good as any."""
    module = attention((1, 1, 50, 90, 8, 8), mask=(50, 90))
    arguments = arguments_of(module)
    arguments["arg3"][7] = -math.inf
    arguments["arg3"][9, :70] = -math.inf
    arguments["arg3"][11, 20:] = -math.inf
    arguments["arg3"][13, 33] = math.inf
    check(module, arguments)


@pytest.mark.parametrize(("name", "number", "alone"), [("Mul", -0.25, 1), ("Div", 8.0, 1), ("Mul", 3.0, 0)])
def test_scaled_queries(name: str, number: float, alone: int) -> None:
    """A number that makes queries no greater scales them on their way, and no tensor of them is written."""
    body = Body([])
    q, k, v = (body.parameter(DType.F32, 2, length, 16) for length in (37, 53, 53))
    scores = body.product(body.binary(name, q, number), k, 1, (2, 2))
    module = to_module(program(body, [body.product(body.softmax(scores), v, 1, (2, 1))]))
    check(module, arguments_of(module))
    assert (nests(mind_mlir.compile(module)) == ["attention"]) == alone


def layered(layers: int, length: int) -> Module:
    """Return attentions one after the other, each added to what it is computed from."""
    body = Body([])
    x = body.parameter(DType.F32, length, 16)
    weights = [[body.parameter(DType.F32, 16, 16) for _ in range(4)] for _ in range(layers)]
    for each in weights:
        q, k, v, out = (body.product(x, weight, 0, (1, 0)) for weight in each)
        scores = body.binary("Mul", body.product(q, body.transpose(k, 1, 0), 0, (1, 0)), 0.25)
        attended = body.product(body.softmax(scores), v, 0, (1, 0))
        x = body.unary("Tanh", body.binary("Add", x, body.binary("Mul", out, attended)))
    return to_module(program(body, [x]))


def test_layers_and_their_gradients() -> None:
    """A layer's function hands no weights on: that of its gradient computes them again."""
    module = mind_mlir.differentiate(layered(6, 32), cotangents="given").module
    assert "@main_layer_1" in mind_mlir.compile(module).as_text("mind")
    check(module, {name: array / 4 for name, array in arguments_of(module).items()}, fused=3)


def test_what_needs_its_scores_keeps_them() -> None:
    """Weights that are a result of the program are computed, and then read, as ever."""
    body = Body([])
    q, k, v = (body.parameter(DType.F32, 2, 32, 16) for _ in range(3))
    weights = body.softmax(body.product(q, body.transpose(k, 0, 2, 1), 1, (2, 1)))
    module = to_module(program(body, [body.product(weights, v, 1, (2, 1)), weights]))
    check(module, arguments_of(module), fused=0)


def test_a_product_of_rows_with_themselves_is_computed_once() -> None:
    """Powers of chances, whose rows are divided by their sums: scores that values are made of, too."""
    x = np.random.default_rng(2).random((48, 48))

    def squared(x: Any) -> Any:
        y = x @ x
        y = y / y.sum(axis=1, keepdims=True)
        return y @ y

    traced = mind_mlir.jit(squared)
    found = traced.lower(x).compile().as_text("schedule")
    assert found.count(". product ") == 2
    assert ". attention " not in found
    np.testing.assert_allclose(traced(x), squared(x), rtol=1e-12)


def test_kernels_are_those_of_other_products() -> None:
    """A product beside an attention packs its right factor by the kernel that packs queries."""
    body = Body([])
    q, k, v = (body.parameter(DType.F32, 48, 16) for _ in range(3))
    attended = body.product(body.softmax(body.product(q, body.transpose(k, 1, 0), 0, (1, 0))), v, 0, (1, 0))
    module = to_module(program(body, [attended, body.product(v, body.transpose(k, 1, 0), 0, (1, 0))]))
    check(module, arguments_of(module))


@pytest.mark.parametrize("target", ["sse", "avx2", "avx512"])
@pytest.mark.parametrize("length", [1024, 4096])
def test_memory(length: int, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it takes grows with the length, not with its square."""
    monkeypatch.setenv("MIND_MLIR_TARGET", target)
    module = attention((1, 4, length, length, 64, 64), hidden=CAUSAL)
    assert scratch(module) <= 1 << 20
    gradient = mind_mlir.differentiate(module, cotangents="given").module
    tensors = 8 * 4 * 4 * length * 64
    assert scratch(gradient) <= tensors + (1 << 20)
    masked = attention((1, 4, length, length, 64, 64), mask=(length, length))
    gradient = mind_mlir.differentiate(masked, cotangents="given").module
    assert scratch(gradient) <= tensors + (1 << 20)


def scratch(module: Module) -> int:
    text = mind_mlir.compile(module).as_text("bufferized")
    found = re.search(r"mind\.scratch_bytes = (\d+)", text)
    assert found is not None
    return int(found[1])


@pytest.mark.parametrize("case", ["causal", "added", "bf16"])
def test_threads_change_no_bit(case: str) -> None:
    module = mind_mlir.differentiate(CASES[case](), cotangents="given").module
    arguments = arguments_of(module)
    before = mind_mlir.get_num_threads()
    found = set()
    try:
        for threads in (1, 2, 3):
            mind_mlir.set_num_threads(threads)
            results = mind_mlir.compile(module)(**arguments)
            found.add(b"".join(np.asarray(result).tobytes() for result in results))
    finally:
        mind_mlir.set_num_threads(before)
    assert len(found) == 1


@pytest.mark.parametrize("scale", [1e-39, 1e-20])
@pytest.mark.parametrize("places", [("arg2",), ("arg0", "arg1", "arg2")])
def test_small_numbers_of_bf16(places: Sequence[str], scale: float) -> None:
    """Neither factors nor products that are subnormal are lost; one of 37 keys has no other beside it."""
    module = attention((2, 1, 33, 37, 16, 24), dtype=DType.BF16)
    arguments = arguments_of(module)
    for place in places:
        small = arguments[place].astype(np.float32) * np.float32(scale)
        arguments[place] = small.astype(arguments[place].dtype)
    (found,) = guarded.call_executable(mind_mlir.compile(module), arguments)
    (expected,) = interpret(module, arguments)
    wide = expected.astype(np.float64)
    np.testing.assert_allclose(found.astype(np.float64), wide, rtol=0, atol=np.abs(wide).max() / 64)


@pytest.mark.parametrize("scale", [1e-39, 1e-20])
@pytest.mark.parametrize("places", [("cotangent_0",), ("arg0", "arg1", "arg2")])
def test_small_numbers_of_bf16_in_gradients(places: Sequence[str], scale: float) -> None:
    """Of 33 queries, too, one has no other beside it."""
    module = mind_mlir.differentiate(
        attention((2, 1, 33, 37, 16, 24), dtype=DType.BF16), cotangents="given"
    ).module
    arguments = arguments_of(module)
    for place in places:
        small = arguments[place].astype(np.float32) * np.float32(scale)
        arguments[place] = small.astype(arguments[place].dtype)
    found = guarded.call_executable(mind_mlir.compile(module), arguments)
    for result, expected in zip(found, interpret(module, arguments), strict=True):
        wide = expected.astype(np.float64)
        np.testing.assert_allclose(result.astype(np.float64), wide, rtol=0, atol=np.abs(wide).max() / 64)


def test_the_place_of_no_query_adds_nothing() -> None:
    """Where a query has no other one beside it in a word: it would have a score that is not a number."""
    module = attention((1, 2, 33, 37, 16, 24), dtype=DType.BF16, turned=True)
    gradient = mind_mlir.differentiate(module, wrt=["arg2"], cotangents="given").module
    arguments = arguments_of(gradient)
    arguments["arg0"][..., 3, :] = -1
    arguments["arg1"][:, :, 5, 3] = math.inf
    check(gradient, arguments)
