"""Products: what they read through, when they multiply, what stays, and that no bit changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from simplify_harness import Bench, assert_same, opcodes, results

from mind_mlir.builders.builder import Builder
from mind_mlir.ir.types import DType
from mind_mlir.passes.simplify.dots import PATTERNS
from mind_mlir.passes.simplify.pattern import by_opcode
from mind_mlir.passes.simplify.sweep import rewritten
from mind_mlir.passes.simplify.tables import simplify_dots

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.ir.module import Function
    from mind_mlir.ir.value import Value

BY_NAME = {pattern.before: pattern for pattern in PATTERNS}
TURNED, SINGLE, COLUMN = (pattern.before for pattern in PATTERNS)
F32, I32, I64 = DType.F32, DType.SI32, DType.SI64


class Case(NamedTuple):
    """A use of a pattern, or what is close to it; ``left`` are the opcodes that stay, None for all."""

    pattern: str
    dtype: DType
    shapes: tuple[tuple[int, ...], ...]
    build: Callable[..., Value | tuple[Value, ...]]
    left: tuple[str, ...] | None


def dot(g: Bench, x: Value, y: Value, batch: Any, contract: Any, accumulator: DType | None = None) -> Value:
    lists = {
        "batch_lhs": batch[0],
        "batch_rhs": batch[1],
        "contract_lhs": contract[0],
        "contract_rhs": contract[1],
    }
    return g("DotGeneral", x, y, **lists, accum_dtype=accumulator or g.dtype, out_dtype=g.dtype)


def turn(g: Bench, x: Value, *permutation: int) -> Value:
    return g("Transpose", x, permutation=permutation)


NONE = ((), ())
MATRICES = ((1,), (0,))
HEADS = ((2, 5, 3, 4), (2, 7, 3, 4))


def heads(g: Bench, x: Value, y: Value) -> Value:
    """Return scores of attention over heads that are not in front."""
    return dot(g, turn(g, x, 0, 2, 1, 3), turn(g, y, 0, 2, 3, 1), ((0, 1), (0, 1)), ((3,), (2,)))


ONE = ("DotGeneral",)

FIRES = [
    Case(TURNED, F32, ((5, 3), (7, 3)), lambda g, x, y: dot(g, x, turn(g, y, 1, 0), NONE, MATRICES), ONE),
    Case(TURNED, F32, ((3, 5), (3, 7)), lambda g, x, y: dot(g, turn(g, x, 1, 0), y, NONE, MATRICES), ONE),
    Case(TURNED, F32, HEADS, heads, ONE),
    Case(
        TURNED,
        F32,
        ((5, 4, 3), (4, 7, 3)),
        lambda g, x, y: dot(g, turn(g, x, 2, 0, 1), turn(g, y, 2, 0, 1), ((0,), (0,)), ((2,), (1,))),
        ONE,
    ),
    Case(
        SINGLE,
        I32,
        ((5, 1), (1, 7)),
        lambda g, x, y: dot(g, x, y, NONE, MATRICES),
        ("BroadcastTo", "BroadcastTo", "Mul"),
    ),
    Case(
        SINGLE,
        DType.SI8,
        ((2, 5, 1), (2, 7, 1)),
        lambda g, x, y: dot(g, x, y, ((0,), (0,)), ((2,), (2,)), I32),
        ("Cast", "BroadcastTo", "Reshape", "Cast", "BroadcastTo", "Mul", "Cast"),
    ),
    Case(
        SINGLE,
        DType.UI8,
        ((), (3,)),
        lambda g, x, y: dot(g, x, y, NONE, NONE),
        ("Reshape", "BroadcastTo", "Mul"),
    ),
    Case(SINGLE, DType.SI4, ((3,), (3,)), lambda g, x, y: dot(g, x, y, ((0,), (0,)), NONE), ("Mul",)),
]

STAYS = [
    Case(
        TURNED,
        F32,
        ((5, 4, 3), (3, 7)),
        lambda g, x, y: dot(g, turn(g, x, 1, 0, 2), y, NONE, ((2,), (0,))),
        None,
    ),
    Case(SINGLE, F32, ((5, 1), (1, 7)), lambda g, x, y: dot(g, x, y, NONE, MATRICES), None),
    Case(SINGLE, I32, ((5, 2), (2, 7)), lambda g, x, y: dot(g, x, y, NONE, MATRICES), None),
    Case(SINGLE, I32, ((2, 5), (2, 7)), lambda g, x, y: dot(g, x, y, NONE, ((0,), (0,))), None),
    Case(SINGLE, I32, ((2, 5), (2, 5)), lambda g, x, y: dot(g, x, y, ((1, 0), (1, 0)), NONE), None),
]


def made(case: Case) -> Function:
    bench = Bench(case.dtype)
    found = case.build(bench, *[bench.parameter(shape) for shape in case.shapes])
    return bench.function(*(found if isinstance(found, tuple) else (found,)))


def arguments(function: Function) -> list[Any]:
    rng = np.random.default_rng(0)
    types = [parameter.tensor_type for parameter in function.parameters]
    return [np.asarray(rng.integers(-5, 5, each.extents)).astype(each.dtype.numpy) for each in types]


@pytest.mark.parametrize("case", FIRES)
def test_it_reads_less_and_no_bit_changes(case: Case) -> None:
    function = made(case)
    changed = simplify_dots(function)
    assert rewritten(function, by_opcode([BY_NAME[case.pattern]])) is not function
    assert opcodes(changed) == [*(case.left or ())]
    assert simplify_dots(changed) is changed
    given = arguments(function)
    assert_same(results(function, given), results(changed, given))


@pytest.mark.parametrize("case", STAYS)
def test_what_is_close_to_it_stays(case: Case) -> None:
    function = made(case)
    assert simplify_dots(function) is function


def test_a_batch_axis_comes_last_only_where_nothing_else_reads_the_transpose() -> None:
    bench = Bench(F32)
    x, y = bench.parameter((2, 5, 3)), bench.parameter((3, 7, 2))
    turned = turn(bench, y, 2, 0, 1)
    product = dot(bench, x, turned, ((0,), (0,)), ((2,), (1,)))
    assert opcodes(simplify_dots(bench.function(product))) == ["DotGeneral"]
    function = bench.function(product, turned)
    assert simplify_dots(function) is function


@pytest.mark.parametrize(
    ("opcode", "left", "right"),
    [("MatMul", (5, 1), (1, 7)), ("MatMul", (2, 5, 1), (1, 7)), ("Dot", (1,), (1,)), ("Dot", (5, 1), (1,)),
     ("Dot", (1,), (1, 7)), ("Dot", (5, 1), (1, 7))],
)  # fmt: skip
def test_columns_times_rows_of_integers_are_products(
    opcode: str, left: tuple[int, ...], right: tuple[int, ...]
) -> None:
    for dtype, multiplies in ((I64, True), (F32, False)):
        bench = Bench(dtype, Builder(profile="core-functions"))
        function = bench.function(bench(opcode, bench.parameter(left), bench.parameter(right)))
        changed = simplify_dots(function)
        assert (opcode not in opcodes(changed)) is multiplies
        given = arguments(function)
        assert_same(results(function, given), results(changed, given))
        assert multiplies or changed is function
