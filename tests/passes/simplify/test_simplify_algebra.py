"""Identities: that each fires, that what is close to it does not, and that bits stay, also compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from simplify_harness import (
    FLOATS,
    INTEGERS,
    REAL,
    SIGNED,
    TRUTHS,
    UNSIGNED,
    Bench,
    Case,
    assert_same,
    edge_pairs,
    module,
    opcodes,
    results,
)

import mind_mlir
from mind_mlir.ir.elements import limits
from mind_mlir.ir.types import DType
from mind_mlir.passes.simplify.pattern import by_opcode
from mind_mlir.passes.simplify.sweep import rewritten
from mind_mlir.passes.simplify.tables import ALGEBRA, simplify_algebra

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.ir.value import Value

    Build = Callable[[Bench, Value, Value], Value]

PATTERNS = {pattern.before: pattern for patterns in ALGEBRA.values() for pattern in patterns}
INFINITE = tuple(dtype for dtype in FLOATS if dtype is not DType.FP8_E4M3)


def with_number(opcode: str, number: object, *, first: bool = False, **attributes: object) -> Build:
    """Return what computes ``x <op> number``, or with the number in front."""

    def build(g: Bench, x: Value, _: Value) -> Value:
        operands = (x, g.number(number, x))
        return g(opcode, *(operands[::-1] if first else operands), **attributes)

    return build


def end(dtype: DType, place: int) -> float:
    return (-np.inf, np.inf)[place] if dtype.is_float else limits(dtype)[place]


def with_end(opcode: str, place: int, **attributes: object) -> Build:
    return lambda g, x, _: g(opcode, x, g.number(end(g.dtype, place), x), **attributes)


def with_itself(opcode: str, **attributes: object) -> Build:
    return lambda g, x, _: g(opcode, x, x, **attributes)


def with_opposite(opcode: str) -> Build:
    return lambda g, p, _: g(opcode, g("Not", p), p)


def twice(opcode: str, first: float, second: float) -> Build:
    return lambda g, x, _: g(opcode, g.number(second, x), g(opcode, x, g.number(first, x)))


def with_bits(opcode: str, bits: bool) -> Build:
    """Return what computes ``x <op>`` all bits, or none of them."""

    def build(g: Bench, x: Value, _: Value) -> Value:
        ones = True if g.dtype is DType.I1 else limits(g.dtype)[1] if g.dtype in UNSIGNED else -1
        return g(opcode, x, g.number(ones if bits else 0, x))

    return build


def decided(truth: bool) -> Build:
    return lambda g, x, y: g("Select", g.full(truth, DType.I1, x.shape), x, y)


def of_truths(truth: bool) -> Build:
    return lambda g, p, _: g("Select", p, g.number(truth, p), g.number(not truth, p))


def clamp(g: Bench, x: Value, low: object, high: object) -> Value:
    return g("Clamp", x, g.number(low, x), g.number(high, x))


def choice(g: Bench, x: Value, y: Value) -> tuple[Value, Value]:
    """Return two truth values."""
    return g("Compare", x, y, op="Less"), g("Compare", x, y, op="Equal")


def choose(build: Callable[[Bench, Value, Value, Value], Value]) -> Build:
    return lambda g, x, y: build(g, choice(g, x, y)[0], x, y)


def chain(opcode: str, *opcodes: str) -> Build:
    """Return what applies operations of one operand one after the other."""

    def build(g: Bench, x: Value, _: Value) -> Value:
        for each in (opcode, *opcodes):
            x = g(each, x)
        return x

    return build


def by_way_of(*dtypes: DType) -> Build:
    def build(g: Bench, x: Value, _: Value) -> Value:
        for dtype in dtypes:
            x = g("Cast", x, dtype=dtype)
        return x

    return build


def of_parts(opcode: str) -> Build:
    return lambda g, x, y: g(opcode, g("Complex", x, y))


def part_of_cast(opcode: str) -> Build:
    return lambda g, x, _: g(opcode, g("Cast", x, dtype=DType.CF32))


def reduced(kind: str, accumulator: DType) -> Build:
    def build(g: Bench, x: Value, _: Value) -> Value:
        form = {"kind": kind, "keepdims": False, "accum_dtype": accumulator, "out_dtype": g.dtype}
        return g("Reduce", g("Reshape", x, new_shape=(x.shape[0], 1)), axes=(1,), **form)

    return build


def totals(opcode: str) -> Build:
    def build(g: Bench, x: Value, _: Value) -> Value:
        column = g("Reshape", x, new_shape=(1, x.shape[0], 1))
        return g(opcode, column, axes=(0, 2), keepdims=False)

    return build


BITS = (*TRUTHS, *INTEGERS)
F32, I32, BF16 = (DType.F32,), (DType.SI32,), (DType.BF16,)
PARTS_OF_REAL = "real(cast(x, B)), imag(cast(x, B))"
CASTS = "cast(cast(x, B), C)"
ONE_TERM, ONE_REDUCED = "sum(x), mean(x) over extents of 1", "reduce(x) over extents of 1"
WIDE = (DType.SI32, DType.SI64, DType.F32, DType.F64)
LESS = {"op": "Less"}

FIRES = [
    Case("x + -0.0", REAL, with_number("Add", -0.0), ()),
    Case("x + -0.0", F32, with_number("Add", -0.0, first=True), ()),
    Case("x - 0.0", REAL, with_number("Sub", 0.0), ()),
    Case("-0.0 - x", REAL, with_number("Sub", -0.0, first=True), ("Neg",)),
    Case("x - x", INTEGERS, lambda g, x, _: g("Sub", x, x), ()),
    Case("x + -y", REAL, lambda g, x, y: g("Add", g("Neg", x), y), ("Sub",)),
    Case("x - -y", REAL, lambda g, x, y: g("Sub", x, g("Neg", y)), ("Add",)),
    Case("-(-x)", REAL, chain("Neg", "Neg"), ()),
    Case("-(x - y)", INTEGERS, lambda g, x, y: g("Neg", g("Sub", x, y)), ("Sub",)),
    *(
        Case(
            "(x + c) + d, (x * c) * d",
            INTEGERS,
            twice(op, 5, 7),
            (op,),
        )
        for op in ("Add", "Mul")
    ),
    Case("x * 1", REAL, with_number("Mul", 1), ()),
    Case("x * -1", (*FLOATS, *SIGNED), with_number("Mul", -1), ("Neg",)),
    Case("x * 0", INTEGERS, with_number("Mul", 0), ()),
    Case("-x * -y, -x / -y", REAL, lambda g, x, y: g("Mul", g("Neg", x), g("Neg", y)), ("Mul",)),
    Case("-x * -y, -x / -y", FLOATS, lambda g, x, y: g("Div", g("Neg", x), g("Neg", y)), ("Div",)),
    Case("-x * c", REAL, lambda g, x, _: g("Mul", g("Neg", x), g.number(3, x)), ("Mul",)),
    Case("-x * c", F32, lambda g, x, _: g("Mul", g("Neg", x), g.number(0.0, x)), ("Mul",)),
    Case("x / 1", REAL, with_number("Div", 1), ()),
    Case("x / -1", (*FLOATS, *SIGNED), with_number("Div", -1), ("Neg",)),
    *(Case("x / c", FLOATS, with_number("Div", c), ("Mul",)) for c in (8.0, 0.25, -0.5)),
    Case("x / c", F32, with_number("Div", 2.0**126), ("Mul",)),
    Case("max(x, x), min(x, x)", REAL, lambda g, x, _: g("Maximum", x, x), ()),
    Case("max(x, least), min(x, greatest)", (*INTEGERS, *INFINITE), with_end("Maximum", 0), ()),
    Case("max(x, least), min(x, greatest)", (*INTEGERS, *INFINITE), with_end("Minimum", 1), ()),
    Case("max(x, greatest), min(x, least)", INTEGERS, with_end("Maximum", 1), ()),
    Case("max(x, greatest), min(x, least)", INTEGERS, with_end("Minimum", 0), ()),
    *(
        Case(
            "max(max(x, c), d), min(min(x, c), d)",
            dtypes,
            twice(op, 0.0, d),
            (op,),
        )
        for op in ("Maximum", "Minimum")
        for d, dtypes in ((3, (*FLOATS, *SIGNED)), (-0.0, FLOATS), (np.nan, FLOATS))
    ),
    Case(
        "clamp(x, least, h), clamp(x, l, greatest)",
        (*INTEGERS, *INFINITE),
        lambda g, x, y: g("Clamp", x, g.number(end(g.dtype, 0), x), y),
        ("Minimum",),
    ),
    Case(
        "clamp(x, least, h), clamp(x, l, greatest)",
        (*INTEGERS, *INFINITE),
        lambda g, x, y: g("Clamp", x, y, g.number(end(g.dtype, 1), x)),
        ("Maximum",),
    ),
    Case(
        "clamp(clamp(x, l, h), l, h)",
        REAL,
        lambda g, x, y: g("Clamp", g("Clamp", x, y, x), y, x),
        ("Clamp",),
    ),
    Case(
        "clamp(clamp(x, a, b), c, d)",
        REAL,
        lambda g, x, _: clamp(g, clamp(g, x, 1, 5), 2, 6),
        ("Clamp",),
    ),
    Case(
        "clamp(clamp(x, a, b), c, d)",
        FLOATS,
        lambda g, x, _: clamp(g, clamp(g, x, -0.0, 3), -5, 0.0),
        ("Clamp",),
    ),
    Case("abs(x)", UNSIGNED, chain("Abs"), ()),
    Case("abs(abs(x)), abs(relu(x))", (*FLOATS, *SIGNED), chain("Abs", "Abs"), ("Abs",)),
    Case("abs(abs(x)), abs(relu(x))", (*FLOATS, *SIGNED), chain("Relu", "Abs"), ("Relu",)),
    Case("abs(-x)", (*FLOATS, *SIGNED), chain("Neg", "Abs"), ("Abs",)),
    Case("relu(relu(x))", REAL, chain("Relu", "Relu"), ("Relu",)),
    *(
        Case(
            "x == x, x <= x, x >= x, x != x",
            (*INTEGERS, *TRUTHS),
            with_itself("Compare", op=op),
            (),
        )
        for op in ("Equal", "LessEqual", "GreaterEqual", "NotEqual", "Less", "Greater")
    ),
    *(
        Case("x == x, x <= x, x >= x, x != x", FLOATS, with_itself("Compare", op=op), ())
        for op in ("Less", "Greater")
    ),
    *(
        Case(
            "x < least, x >= least, x > greatest, x <= greatest",
            INTEGERS,
            with_end("Compare", place, op=op),
            (),
        )
        for op, place in (("Less", 0), ("GreaterEqual", 0), ("Greater", 1), ("LessEqual", 1))
    ),
    Case(
        "x < least, x >= least, x > greatest, x <= greatest",
        INTEGERS,
        lambda g, x, _: g("Compare", g.number(end(g.dtype, 0), x), x, op="Greater"),
        (),
    ),
    *(
        Case(
            "p == true, p != false, p == false, p != true",
            TRUTHS,
            with_number("Compare", truth, op=op),
            () if truth is (op == "Equal") else ("Not",),
        )
        for op in ("Equal", "NotEqual")
        for truth in (True, False)
    ),
    Case("not (x < y)", INTEGERS, lambda g, x, y: g("Not", choice(g, x, y)[0]), ("Compare",)),
    Case("not (x < y)", FLOATS, lambda g, x, y: g("Not", choice(g, x, y)[1]), ("Compare",)),
    *(
        Case(
            "select(true, x, y), select(false, x, y)",
            REAL,
            decided(truth),
            (),
        )
        for truth in (True, False)
    ),
    Case("select(p, x, x)", REAL, choose(lambda g, p, x, _: g("Select", p, x, x)), ()),
    Case(
        "select(not p, x, y)",
        REAL,
        lambda g, x, y: g("Select", g("Not", choice(g, x, y)[0]), x, y),
        ("Compare", "Select"),
    ),
    Case(
        "select(p, select(p, x, y), z), select(p, x, select(p, y, z))",
        REAL,
        choose(lambda g, p, x, y: g("Select", p, g("Select", p, y, x), x)),
        ("Compare", "Select"),
    ),
    Case(
        "select(p, select(p, x, y), z), select(p, x, select(p, y, z))",
        REAL,
        choose(lambda g, p, x, y: g("Select", p, x, g("Select", p, y, y))),
        ("Compare", "Select"),
    ),
    *(
        Case(
            "select(p, true, false), select(p, false, true)",
            TRUTHS,
            of_truths(truth),
            () if truth else ("Not",),
        )
        for truth in (True, False)
    ),
    *(
        Case(
            "p and true, p or false, p xor false, p and false, p or true, p xor true",
            BITS,
            with_bits(op, truth),
            ("Not",) if truth and op == "Xor" else (),
        )
        for op in ("And", "Or", "Xor")
        for truth in (True, False)
    ),
    *(Case("p and p, p or p, p xor p", BITS, with_itself(op), ()) for op in ("And", "Or", "Xor")),
    *(
        Case(
            "p and not p, p or not p, p xor not p",
            (*TRUTHS, *INTEGERS),
            with_opposite(op),
            (),
        )
        for op in ("And", "Or", "Xor")
    ),
    Case("p and (p or q), p or (p and q)", BITS, lambda g, p, q: g("And", p, g("Or", q, p)), ()),
    Case("p and (p or q), p or (p and q)", BITS, lambda g, p, q: g("Or", g("And", p, q), p), ()),
    Case("not (not p)", BITS, chain("Not", "Not"), ()),
    Case("cast(x, own dtype of x)", REAL, lambda g, x, _: g("Cast", x, dtype=g.dtype), ()),
    Case(CASTS, BF16, by_way_of(DType.F32, DType.BF16), ()),
    Case(
        "cast(cast(x, B), C)", (DType.F16, DType.SI8, DType.UI8), by_way_of(DType.F32, DType.BF16), ("Cast",)
    ),
    Case(CASTS, (DType.SI4,), by_way_of(DType.FP8_E5M2, DType.UI64), ("Cast",)),
    Case(CASTS, (DType.UI4,), by_way_of(DType.FP8_E4M3, DType.SI8), ("Cast",)),
    Case(CASTS, (DType.SI32,), by_way_of(DType.F64, DType.UI16), ("Cast",)),
    Case(CASTS, TRUTHS, by_way_of(DType.FP8_E5M2, DType.SI64), ("Cast",)),
    Case("stop_gradient(x)", REAL, chain("StopGradient"), ()),
    Case("tile(x) with repeats of 1", REAL, lambda g, x, _: g("Tile", x, repeats=(1,)), ()),
    *(
        Case(
            "sum(x), mean(x) over extents of 1",
            (DType.F32, DType.F64),
            totals(op),
            ("Reshape", "Reshape", "Add"),
        )
        for op in ("Sum", "Mean")
    ),
    Case(ONE_TERM, (DType.SI32,), totals("Mean"), ("Reshape", "Reshape")),
    Case(
        "reduce(x) over extents of 1",
        F32,
        reduced("Sum", DType.F64),
        ("Reshape", "Reshape", "Cast", "Add", "Cast"),
    ),
    Case(ONE_REDUCED, BF16, reduced("Sum", DType.BF16), ("Reshape", "Reshape", "Add")),
    Case(
        "reduce(x) over extents of 1", I32, reduced("Sum", DType.SI16), ("Reshape", "Reshape", "Cast", "Cast")
    ),
    Case(ONE_REDUCED, F32, reduced("Max", DType.F32), ("Reshape", "Reshape")),
    *(
        Case(
            "real(complex(x, y)), imag(complex(x, y))",
            (DType.F32, DType.F64),
            of_parts(op),
            (),
        )
        for op in ("Real", "Imag")
    ),
    *(
        Case(PARTS_OF_REAL, dtypes, part_of_cast(op), left)
        for op, dtypes, left in (
            ("Real", (DType.F32,), ()),
            ("Real", (DType.F64, DType.SI32), ("Cast",)),
            ("Imag", (DType.F32, DType.SI32), ()),
        )
    ),
]

STAYS = [
    Case("x + -0.0", FLOATS, with_number("Add", 0.0), None),
    Case("x - 0.0", FLOATS, with_number("Sub", -0.0), None),
    Case("-0.0 - x", FLOATS, with_number("Sub", 0.0, first=True), None),
    Case("x - x", FLOATS, lambda g, x, _: g("Sub", x, x), None),
    Case("-(x - y)", FLOATS, lambda g, x, y: g("Neg", g("Sub", x, y)), None),
    Case(
        "(x + c) + d, (x * c) * d",
        FLOATS,
        lambda g, x, _: g("Add", g("Add", x, g.number(3, x)), g.number(1, x)),
        None,
    ),
    Case("x * 1", (DType.CF32,), with_number("Mul", 1), None),
    Case("x * -1", (DType.CF32,), with_number("Mul", -1), None),
    Case("x * 0", FLOATS, with_number("Mul", 0), None),
    Case("-x * -y, -x / -y", SIGNED, lambda g, x, y: g("Div", g("Neg", x), g("Neg", y)), None),
    Case("x / 1", (DType.CF64,), with_number("Div", 1), None),
    Case("x / -1", (DType.UI8,), with_number("Div", 255), None),
    Case("x / c", FLOATS, with_number("Div", 3), None),
    Case("x / c", INTEGERS, with_number("Div", 4), None),
    Case("x / c", F32, with_number("Div", 2.0**127), None),
    Case("x / c", F32, with_number("Div", 2.0**-127), None),
    Case("x / c", FLOATS, with_number("Div", 0.0), None),
    Case("max(x, least), min(x, greatest)", F32, with_number("Maximum", -3.4028235e38), None),
    Case("max(x, least), min(x, greatest)", F32, with_number("Minimum", -np.inf), None),
    Case("max(x, least), min(x, greatest)", (DType.FP8_E4M3,), with_number("Minimum", 448.0), None),
    Case("max(x, greatest), min(x, least)", INFINITE, with_end("Maximum", 1), None),
    Case("clamp(clamp(x, a, b), c, d)", REAL, lambda g, x, _: clamp(g, clamp(g, x, 5, 1), 2, 6), None),
    Case("clamp(clamp(x, a, b), c, d)", F32, lambda g, x, _: clamp(g, clamp(g, x, 0.0, -0.0), 2, 7), None),
    Case("clamp(clamp(x, a, b), c, d)", F32, lambda g, x, _: clamp(g, clamp(g, x, 1, 5), np.nan, 7), None),
    Case("abs(-x)", UNSIGNED, chain("Neg", "Abs"), ("Neg",)),
    Case("relu(relu(x))", FLOATS, chain("Abs", "Relu"), None),
    Case("relu(relu(x))", FLOATS, chain("Exp", "Relu"), None),
    *(
        Case("x == x, x <= x, x >= x, x != x", FLOATS, with_itself("Compare", op=op), None)
        for op in ("Equal", "LessEqual", "NotEqual")
    ),
    *(
        Case(
            "x < least, x >= least, x > greatest, x <= greatest",
            INFINITE,
            with_number("Compare", -np.inf, op=op),
            None,
        )
        for op in ("GreaterEqual", "Less")
    ),
    Case("not (x < y)", FLOATS, lambda g, x, y: g("Not", choice(g, x, y)[0]), None),
    Case(
        "select(p, select(p, x, y), z), select(p, x, select(p, y, z))",
        REAL,
        lambda g, x, y: g("Select", choice(g, x, y)[0], g("Select", choice(g, x, y)[1], x, y), y),
        None,
    ),
    Case(CASTS, F32, by_way_of(DType.BF16, DType.F32), None),
    Case(CASTS, (DType.FP8_E5M2,), by_way_of(DType.FP8_E4M3, DType.F32), None),
    Case(CASTS, (DType.SI64,), by_way_of(DType.F64, DType.SI64), None),
    Case(CASTS, (DType.SI8,), by_way_of(DType.UI64, DType.SI8), None),
    Case(CASTS, (DType.UI4,), by_way_of(DType.FP8_E5M2, DType.SI8), None),
    Case(
        ONE_TERM,
        WIDE,
        lambda g, x, _: g("Sum", g("Tile", x, repeats=(2,)), axes=(0,), keepdims=False),
        None,
    ),
    Case(PARTS_OF_REAL, (DType.CF64,), part_of_cast("Real"), None),
    *(Case("-(-x)", FLOATS, chain(op, op), None) for op in ("Reciprocal", "Exp")),
    Case("-(-x)", F32, chain("Exp", "Log"), None),
    Case("-(-x)", F32, chain("Log", "Exp"), None),
]


def name_of(case: Case) -> str:
    return case.pattern


@pytest.mark.parametrize("case", FIRES, ids=name_of)
def test_it_fires_and_no_bit_changes(case: Case) -> None:
    rules = by_opcode([PATTERNS[case.pattern]])
    for dtype in case.dtypes:
        function = case.function(dtype)
        assert rewritten(function, rules) is not function
        changed = simplify_algebra(function)
        assert opcodes(changed) == [*(case.left or ())]
        assert simplify_algebra(changed) is changed
        arguments = edge_pairs(dtype)
        assert_same(results(function, arguments), results(changed, arguments))


@pytest.mark.parametrize("case", STAYS, ids=name_of)
def test_what_is_close_to_it_stays(case: Case) -> None:
    rules = by_opcode([PATTERNS[case.pattern]])
    for dtype in case.dtypes:
        function = case.function(dtype)
        assert rewritten(function, rules) is function
        # Where something is left, another identity has its say.
        assert (simplify_algebra(function) is function) is (case.left is None)


def test_compiled_code_agrees_with_and_without() -> None:
    bench, pairs = Bench(DType.F32), edge_pairs(DType.F32)
    x, y = (bench.parameter(array.shape) for array in pairs)
    # One use of each identity: compiling all of them would take seconds.
    cases = {case.pattern: case for case in FIRES if DType.F32 in case.dtypes}
    made = module(bench.function(*(case.build(bench, x, y) for case in cases.values())))
    with_them = mind_mlir.compile(made)(*pairs)
    without = mind_mlir.compile(made, disabled_passes=["algebra"])(*pairs)
    assert_same(without, with_them)


def test_every_identity_has_a_use_and_every_near_miss_a_test() -> None:
    assert {case.pattern for case in FIRES} == set(PATTERNS)
    assert {name for name, pattern in PATTERNS.items() if pattern.unlike} <= {case.pattern for case in STAYS}
