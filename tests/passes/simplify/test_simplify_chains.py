"""Chains of operations that move elements: what gets shorter, what stays, and that no bit changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from simplify_harness import Bench, assert_same, opcodes, results

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.types import DType
from mind_mlir.passes.simplify.pattern import by_opcode
from mind_mlir.passes.simplify.sweep import rewritten
from mind_mlir.passes.simplify.tables import CHAINS, shorten_chains

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.ir.value import Value

PATTERNS = {pattern.before: pattern for patterns in CHAINS.values() for pattern in patterns}


class Case(NamedTuple):
    """A use of a pattern, or what is close to it.

    Attributes:
        pattern: What it is called.
        shapes: Those of the parameters.
        build: Makes the results of a bench and the parameters.
        left: The opcodes that are left; None where nothing may change.
    """

    pattern: str
    shapes: tuple[tuple[int, ...], ...]
    build: Callable[..., Value | tuple[Value, ...]]
    left: tuple[str, ...] | None


def reshape(g: Bench, x: Value, *shape: int) -> Value:
    return g("Reshape", x, new_shape=shape)


def turn(g: Bench, x: Value, *permutation: int) -> Value:
    return g("Transpose", x, permutation=permutation)


def spread(g: Bench, x: Value, *shape: int) -> Value:
    return g("BroadcastTo", x, result_shape=shape)


def cut(g: Bench, x: Value, *bounds: tuple[int, int]) -> Value:
    """Take from ``start`` up to ``end`` on each axis."""
    starts, ends = zip(*bounds, strict=True)
    return _slice(g, x, starts, ends)


def _slice(
    g: Bench, x: Value, starts: Sequence[int], ends: Sequence[int], steps: Sequence[int] = ()
) -> Value:
    given = tuple(steps) or (1,) * len(starts)
    return g("Slice", x, starts=tuple(starts), ends=tuple(ends), steps=given)


def join(g: Bench, axis: int, *values: Value) -> Value:
    return g("Concat", *values, axis=axis)


def pad(
    g: Bench, x: Value, low: Sequence[int], high: Sequence[int], gaps: Sequence[int], number: float
) -> Value:
    value = TensorLiteral.of(number, x.type.dtype)
    return g("Pad", x, low=tuple(low), high=tuple(high), interior=tuple(gaps), pad_value=value)


CHOSEN = "select(pad(true) with false, pad(x), v), select(pad(false) with true, v, pad(x))"


def chosen(*, inside: bool, edge: float) -> Callable[[Bench, Value], Value]:
    """Return what chooses what is padded where truth values are, whose padding is ``edge``."""

    def build(g: Bench, x: Value) -> Value:
        places = ((2, 0), (0, 1), (0, 2))
        truths = pad(g, g.full(inside, DType.I1, x.shape), *places, inside if edge else not inside)
        padded = pad(g, x, *places, 1.0)
        around = g.full(-0.0, x.type.dtype, padded.shape)
        return g("Select", truths, padded, around) if inside else g("Select", truths, around, padded)

    return build


def indices(g: Bench, numbers: Any, dtype: DType = DType.SI64) -> Value:
    return g.builder.constant(np.array(numbers, dtype.numpy), dtype)


def extreme(g: Bench, x: Value, kind: str, *axes: int, keepdims: bool = False) -> Value:
    form = {"kind": kind, "keepdims": keepdims, "accum_dtype": g.dtype, "out_dtype": g.dtype}
    return g("Reduce", x, axes=axes, **form)


def window_at(start: list[int]) -> Callable[..., Value]:
    return lambda g, x: g("DynamicSlice", x, indices(g, start), sizes=(2, 5))


def twice(first: Callable[[], Value], second: Callable[[Value], Value]) -> tuple[Value, Value]:
    """Return what ``second`` makes of ``first``, which is a result, too."""
    inner = first()
    return second(inner), inner


SAME = "reshape(x), expand_dims(x), squeeze(x) to the shape of x"
ROWS = "gather(x), take(x) of constant indices that count evenly"
STARTS = "dynamic_slice(x) of constant starts, or of all elements"
SUNK = "f(broadcast(x), broadcast(y))"
EXTREMES = "max(broadcast(x)), min(broadcast(x)) over axes"

FIRES = [
    Case(SAME, ((3, 2),), lambda g, x: reshape(g, x, 3, 2), ()),
    Case(SAME, ((3, 2),), lambda g, x: g("ExpandDims", x, axes=()), ()),
    Case("reshape(reshape(x))", ((4, 6),), lambda g, x: reshape(g, reshape(g, x, 24), 3, 8), ("Reshape",)),
    Case("reshape(reshape(x))", ((4, 6),), lambda g, x: reshape(g, reshape(g, x, 3, 8), 4, 6), ()),
    Case(
        "reshape(reshape(x))",
        ((3,),),
        lambda g, x: g("Squeeze", g("ExpandDims", x, axes=(0,)), axes=(0,)),
        (),
    ),
    Case("reshape(reshape(x))", ((),), lambda g, x: reshape(g, reshape(g, x, 1, 1), 1), ("Reshape",)),
    Case(
        "reshape(broadcast(x))",
        ((3, 1),),
        lambda g, x: reshape(g, spread(g, x, 2, 3, 5), 2, 1, 3, 5, 1),
        ("Reshape", "BroadcastTo"),
    ),
    Case("reshape(broadcast(x))", ((1,),), lambda g, x: reshape(g, spread(g, x, 6), 2, 3), ("BroadcastTo",)),
    Case(
        "transpose(x) where only extents of 1 change place",
        ((2, 1, 3),),
        lambda g, x: turn(g, x, 1, 0, 2),
        ("Reshape",),
    ),
    Case("transpose(x) where only extents of 1 change place", ((2, 3),), lambda g, x: turn(g, x, 0, 1), ()),
    Case("transpose(transpose(x))", ((2, 3, 4),), lambda g, x: turn(g, turn(g, x, 1, 2, 0), 2, 0, 1), ()),
    Case(
        "transpose(transpose(x))",
        ((2, 3, 4),),
        lambda g, x: turn(g, turn(g, x, 1, 2, 0), 1, 2, 0),
        ("Transpose",),
    ),
    Case(
        "transpose(broadcast(x))",
        ((3,),),
        lambda g, x: turn(g, spread(g, x, 2, 3), 1, 0),
        ("Reshape", "BroadcastTo"),
    ),
    Case(
        "transpose(broadcast(x))",
        ((2, 3),),
        lambda g, x: turn(g, spread(g, x, 4, 2, 3), 0, 2, 1),
        ("Transpose", "BroadcastTo"),
    ),
    Case(
        "broadcast(broadcast(x))",
        ((3, 1),),
        lambda g, x: spread(g, spread(g, x, 3, 4), 2, 3, 4),
        ("BroadcastTo",),
    ),
    Case("broadcast(x) that repeats nothing", ((3,),), lambda g, x: spread(g, x, 1, 3), ("Reshape",)),
    Case("broadcast(x) that repeats nothing", ((3,),), lambda g, x: spread(g, x, 3), ()),
    Case(
        "broadcast(reshape(x))",
        ((3,),),
        lambda g, x: spread(g, reshape(g, x, 1, 1, 3), 2, 5, 3),
        ("BroadcastTo",),
    ),
    Case("slice(x) of all elements", ((3, 2),), lambda g, x: cut(g, x, (0, 3), (0, 2)), ()),
    Case(
        "slice(slice(x))",
        ((9, 5),),
        lambda g, x: cut(g, cut(g, x, (1, 8), (0, 5)), (2, 4), (4, 5)),
        ("Slice",),
    ),
    Case(
        "slice(slice(x))",
        ((9, 5),),
        lambda g, x: _slice(g, _slice(g, x, (8, 0), (-10, 5), (-1, 2)), (7, 2), (0, -4), (-3, -1)),
        ("Slice",),
    ),
    Case(
        "slice(slice(x))",
        ((9,),),
        lambda g, x: _slice(g, _slice(g, x, (8,), (-10,), (-1,)), (8,), (-10,), (-1,)),
        (),
    ),
    Case(
        "slice(concat(x, y))",
        ((2, 3), (4, 3)),
        lambda g, x, y: _slice(g, join(g, 0, x, y), (5, 0), (1, 3), (-1, 1)),
        ("Slice",),
    ),
    Case(
        "slice(concat(x, y))", ((2, 3), (4, 3)), lambda g, x, y: cut(g, join(g, 0, x, y), (2, 6), (0, 3)), ()
    ),
    Case(
        "slice(pad(x))",
        ((3, 4),),
        lambda g, x: cut(g, pad(g, x, (2, 0), (1, 5), (0, 0), 0.0), (2, 4), (1, 4)),
        ("Slice",),
    ),
    Case(
        "slice(broadcast(x))",
        ((3, 1),),
        lambda g, x: cut(g, spread(g, x, 4, 3, 5), (1, 2), (1, 3), (0, 4)),
        ("Slice", "BroadcastTo"),
    ),
    *(
        Case(
            STARTS,
            ((7, 5),),
            window_at(start),
            ("Slice",),
        )
        for start in ([3, 0], [-2, 9], [100, 1])
    ),
    Case(STARTS, ((7,),), lambda g, x: g("DynamicSlice", x, g.parameter((1,), DType.SI32), sizes=(7,)), ()),
    Case(
        "dynamic_update_slice(x, y) of the shape of x",
        ((4,), (4,)),
        lambda g, x, y: g("DynamicUpdateSlice", x, y, g.parameter((1,), DType.SI32)),
        (),
    ),
    Case(ROWS, ((7, 5),), lambda g, x: g("Take", x, indices(g, [1, 3, 5])), ("Slice",)),
    Case(ROWS, ((7, 5),), lambda g, x: g("Take", x, indices(g, 6)), ("Slice", "Reshape")),
    Case(ROWS, ((7, 5),), lambda g, x: g("Take", x, indices(g, [6, 5])), ("Slice",)),
    Case(ROWS, ((3,),), lambda g, x: g("Take", x, indices(g, [0, 1, 2], DType.SI32)), ()),
    Case("concat(x, empty)", ((3,),), lambda g, x: join(g, 0, x), ()),
    Case(
        "concat(x, empty)",
        ((3,), (2,)),
        lambda g, x, y: join(g, 0, x, _slice(g, x, (1,), (1,)), y, _slice(g, x, (1,), (1,))),
        ("Concat",),
    ),
    Case(
        "concat(concat(x, y), z)",
        ((2, 3), (1, 3)),
        lambda g, x, y: join(g, 0, join(g, 0, x, y), join(g, 0, y, y), x),
        ("Concat",),
    ),
    Case(
        "concat(slice(x), slice(x))",
        ((9, 5),),
        lambda g, x: join(
            g, 0, cut(g, x, (0, 4), (1, 3)), cut(g, x, (4, 5), (1, 3)), cut(g, x, (5, 8), (1, 3))
        ),
        ("Slice",),
    ),
    Case(
        "concat(slice(x), slice(x))",
        ((9,),),
        lambda g, x: join(g, 0, cut(g, x, (0, 4)), cut(g, x, (4, 9))),
        (),
    ),
    Case("pad(x) of nothing", ((9,),), lambda g, x: pad(g, x, (0,), (0,), (0,), 1.0), ()),
    Case("pad(x) of nothing", ((1,),), lambda g, x: pad(g, x, (0,), (0,), (3,), 1.0), ()),
    Case(
        "pad(pad(x))",
        ((3, 2),),
        lambda g, x: pad(g, pad(g, x, (1, 0), (0, 2), (1, 0), -0.0), (0, 3), (4, 0), (0, 0), -0.0),
        ("Pad",),
    ),
    Case(CHOSEN, ((3, 2),), chosen(inside=True, edge=0.0), ("Pad",)),
    Case(CHOSEN, ((3, 2),), chosen(inside=False, edge=0.0), ("Pad",)),
    Case(SUNK, ((3, 1),), lambda g, x: g("Exp", spread(g, x, 3, 5)), ("Exp", "BroadcastTo")),
    Case(
        SUNK,
        ((3, 1), (4,)),
        lambda g, x, y: g("Mul", spread(g, x, 2, 3, 4), spread(g, y, 2, 3, 4)),
        ("BroadcastTo", "BroadcastTo", "Mul", "BroadcastTo"),
    ),
    Case(
        SUNK,
        ((3, 1),),
        lambda g, x: g(
            "Select",
            g("Compare", spread(g, x, 3, 5), g.full(2.0, g.dtype, (3, 5)), op="Less"),
            spread(g, x, 3, 5),
            g.full(-0.0, g.dtype, (3, 5)),
        ),
        ("Compare", "Select", "BroadcastTo"),
    ),
    Case(SUNK, ((3, 1),), lambda g, x: g("IsFinite", spread(g, x, 3, 5)), ("IsFinite", "BroadcastTo")),
    Case(SUNK, ((),), lambda g, x: g("Cast", spread(g, x, 3, 5), dtype=DType.SI64), ("Cast", "BroadcastTo")),
    Case(
        EXTREMES,
        ((3, 1),),
        lambda g, x: extreme(g, spread(g, x, 2, 3, 5), "Max", 0, 2),
        ("Reshape", "Reduce"),
    ),
    Case(
        EXTREMES,
        ((3, 4),),
        lambda g, x: extreme(g, spread(g, x, 2, 3, 4), "Min", 0, 2, keepdims=True),
        ("Reshape", "Reduce"),
    ),
]

STAYS = [
    Case("reshape(reshape(x))", ((4, 6),), lambda g, x: reshape(g, reshape(g, x, 2, 2, 6), 2, 12), None),
    Case("reshape(broadcast(x))", ((3, 1),), lambda g, x: reshape(g, spread(g, x, 3, 4), 12), None),
    Case("broadcast(reshape(x))", ((3,),), lambda g, x: spread(g, reshape(g, x, 3, 1), 3, 5), None),
    Case("slice(concat(x, y))", ((2,), (4,)), lambda g, x, y: cut(g, join(g, 0, x, y), (1, 3)), None),
    Case("slice(pad(x))", ((3,),), lambda g, x: cut(g, pad(g, x, (2,), (1,), (0,), 0.0), (1, 4)), None),
    Case("slice(pad(x))", ((3,),), lambda g, x: cut(g, pad(g, x, (2,), (1,), (1,), 0.0), (2, 3)), None),
    Case(STARTS, ((7,),), lambda g, x: g("DynamicSlice", x, g.parameter((1,), DType.SI64), sizes=(3,)), None),
    Case(ROWS, ((7,),), lambda g, x: g("Take", x, indices(g, [5, 6, 7])), None),
    Case(ROWS, ((7,),), lambda g, x: g("Take", x, indices(g, [-1])), None),
    Case(ROWS, ((7,),), lambda g, x: g("Take", x, indices(g, [2, 2])), None),
    Case(ROWS, ((7,),), lambda g, x: g("Take", x, indices(g, [[1, 2]])), None),
    Case(
        "concat(concat(x, y), z)",
        ((2, 2),),
        lambda g, x: join(g, 0, join(g, 1, x, x), join(g, 1, x, x)),
        None,
    ),
    Case(
        "concat(concat(x, y), z)",
        ((2,),),
        lambda g, x: twice(lambda: join(g, 0, x, x), lambda inner: join(g, 0, inner, x)),
        None,
    ),
    Case(
        "concat(slice(x), slice(x))",
        ((9,),),
        lambda g, x: join(g, 0, cut(g, x, (0, 4)), cut(g, x, (5, 9)), cut(g, x, (0, 5))),
        None,
    ),
    Case(
        "concat(slice(x), slice(x))",
        ((4, 4),),
        lambda g, x: join(g, 0, cut(g, x, (0, 2), (0, 2)), cut(g, x, (2, 4), (1, 3))),
        None,
    ),
    Case(
        "pad(pad(x))",
        ((3,),),
        lambda g, x: pad(g, pad(g, x, (1,), (0,), (0,), 0.0), (1,), (0,), (0,), -0.0),
        None,
    ),
    Case(
        "pad(pad(x))",
        ((3,),),
        lambda g, x: pad(g, pad(g, x, (1,), (0,), (0,), 0.0), (1,), (0,), (1,), 0.0),
        None,
    ),
    Case(CHOSEN, ((3, 2),), chosen(inside=True, edge=1.0), None),
    Case(
        CHOSEN,
        ((3,),),
        lambda g, x: g(
            "Select",
            pad(g, g.full(True, DType.I1, (3,)), (1,), (0,), (0,), False),
            pad(g, x, (0,), (1,), (0,), 0.0),
            g.full(0.0, x.type.dtype, (4,)),
        ),
        None,
    ),
    Case(SUNK, ((3,),), lambda g, x: g("Add", spread(g, x, 2, 3), g.parameter((2, 3))), None),
    Case(SUNK, (), lambda g: g("Exp", g.full(1.5, g.dtype, (3,))), None),
    Case(EXTREMES, ((3, 1),), lambda g, x: extreme(g, spread(g, x, 3, 5), "Sum", 1), None),
    Case(EXTREMES, ((3, 1),), lambda g, x: extreme(g, spread(g, x, 3, 5), "Max", 0), None),
    Case(EXTREMES, ((3, 1),), lambda g, x: extreme(g, spread(g, x, 3, 0), "Max", 1), None),
]


def made(case: Case, dtype: DType) -> Any:
    bench = Bench(dtype)
    parameters = [bench.parameter(shape) for shape in case.shapes]
    found = case.build(bench, *parameters)
    return bench.function(*(found if isinstance(found, tuple) else (found,)))


def arguments(function: Any) -> list[Any]:
    rng = np.random.default_rng(0)
    awkward = [0.0, -0.0, np.nan, np.inf, -np.inf, 1.5, -2.5]
    given = []
    for parameter in function.parameters:
        type_ = parameter.tensor_type
        numbers = (
            rng.choice(awkward, type_.extents) if type_.dtype.is_float else rng.integers(-9, 9, type_.extents)
        )
        given.append(np.asarray(numbers, type_.dtype.numpy))
    return given


@pytest.mark.parametrize("case", FIRES, ids=lambda case: case.pattern)
def test_it_gets_shorter_and_no_bit_changes(case: Case) -> None:
    function = made(case, DType.F32)
    assert rewritten(function, by_opcode([PATTERNS[case.pattern]])) is not function
    changed = shorten_chains(function)
    assert opcodes(changed) == [*(case.left or ())]
    assert shorten_chains(changed) is changed
    given = arguments(function)
    assert_same(results(function, given), results(changed, given))


@pytest.mark.parametrize("case", STAYS, ids=lambda case: case.pattern)
def test_what_is_close_to_it_stays(case: Case) -> None:
    function = made(case, DType.F32)
    assert rewritten(function, by_opcode([PATTERNS[case.pattern]])) is function


def test_every_form_has_a_use_and_every_near_miss_a_test() -> None:
    assert {case.pattern for case in FIRES} == set(PATTERNS)
    assert {name for name, pattern in PATTERNS.items() if pattern.unlike} <= {case.pattern for case in STAYS}


def test_what_is_emitted_is_called_what_it_takes_the_place_of() -> None:
    bench = Bench(DType.F32)
    x = bench.parameter((3, 2))
    changed = shorten_chains(bench.function(reshape(bench, reshape(bench, x, 6), 2, 3)))
    (operation,) = changed.entry.operations
    assert (operation.opcode, operation.label) == ("Reshape", "%2")
