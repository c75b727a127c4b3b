"""What the reader says about ill-formed text: code, place and words; nothing ever escapes undiagnosed."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mind_mlir.diagnostics import Diagnostic, MindError, ParseError
from mind_mlir.languages.core import parse

T = "tensor<f32[]>"


def findings(text: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(ParseError) as caught:
        parse(text, "m.ir")
    return caught.value.diagnostics


def place(diagnostic: Diagnostic) -> tuple[int, int, int]:
    location = diagnostic.location
    assert location is not None
    return location.line, location.column, location.length


@pytest.mark.parametrize(
    ("text", "code", "where", "words"),
    [
        # Lexical.
        ("%0 = Add (%1, @) : " + T, "E1002", (1, 15, 1), "'@'"),
        ("%0 = \x00 : " + T, "E1002", (1, 6, 1), "U+0000"),
        ("% = Neg (%0) : " + T, "E1002", (1, 1, 1), "' '"),
        ("%1a = Neg (%0) : " + T, "E1002", (1, 1, 3), "'%1a'"),
        ("%$ = Neg (%0) : " + T, "E1002", (1, 1, 2), "'$'"),
        ('%0 = Input {name="a\x1bb"} : ' + T, "E1002", (1, 20, 1), "U+001B"),
        ('%0 = Input {name="abc} : ' + T, "E1003", (1, 18, 21), "string is not closed"),
        ('%0 = Input {name="a\\q"} : ' + T, "E1004", (1, 20, 2), "Invalid escape sequence '\\q'"),
        ('%0 = Input {name="\\u{110000}"} : ' + T, "E1004", (1, 19, 10), "Invalid escape sequence"),
        ('%0 = Frob {a=["\\q"]} : ' + T, "E1004", (1, 16, 2), "Invalid escape sequence"),
        ("%0 = Frob {a=0b2} : " + T, "E1005", (1, 14, 3), "'0b2'"),
        ("%0 = ConstF32 {value=1.2.3} : " + T, "E1005", (1, 22, 5), "'1.2.3'"),
        ("%0 = Frob {a=[1, 1.2.3]} : " + T, "E1005", (1, 18, 5), "'1.2.3'"),
        ("%0 = Frob {a=1e999} : " + T, "E1005", (1, 14, 5), "out of range of f64"),
        ("%0 = Frob {a=" + "9" * 5000 + "} : " + T, "E1005", (1, 14, 5000), "fits no integer type"),
        ("%99999999999999999999 = Frob : " + T, "E1005", (1, 1, 21), "64 bits"),
        ("%1234567890123456789 = Frob : " + T, "E1005", (1, 1, 20), "64 bits"),
        ("%0 = Frob : tensor<f32[99999999999999999999]>", "E1005", (1, 24, 20), "64 bits"),
        # Syntax.
        ("%0 = Add (%1, %2)", "E1101", (1, 18, 1), "expected ': <type>', found the end of the line"),
        ("%0 = Add (%1 %2) : " + T, "E1101", (1, 14, 2), "expected ',' or ')', found '%2'"),
        ("%0 = Add (%1, : " + T, "E1101", (1, 15, 1), "expected an argument"),
        ("%0 Add (%1) : " + T, "E1101", (1, 4, 3), "expected '='"),
        ("%0 = Sum (%1) {axes} : " + T, "E1101", (1, 20, 1), "expected '=' or ':'"),
        ("%0 = Sum (%1) {axes=[1] keepdims=true} : " + T, "E1101", (1, 25, 8), "expected ',' or '}'"),
        ("x = Add (%1, %2) : " + T, "E1101", (1, 3, 1), "expected a definition"),
        ("%0 = Add (%1, %2) : " + T + " junk", "E1101", (1, 35, 4), "expected the end of the statement"),
        ("%0 = Add (%1, %2) : f32", "E1101", (1, 21, 3), "expected a type"),
        ("%0 = Add (%1, %2) : tensor<f32[2", "E1101", (1, 21, 12), "expected '>'"),
        ("%0 = Add (%1, %2) : tensor<2x3xf32>", "E1101", (1, 21, 15), "malformed type"),
        ("%0 = Add (%1, %2) : tensor<f32[2, x]>", "E1101", (1, 34, 2), "expected an extent, found 'x'"),
        ("%0 = Sum (%1, [1, 2) : " + T, "E1101", (1, 15, 1), "'[' is not closed"),
        ("%0 = Frob {a=[1 2]} : " + T, "E1101", (1, 17, 1), "expected ',' or a closing bracket"),
        ("%0 = Sum (%1,, %2) : " + T, "E1101", (1, 14, 1), "expected an argument"),
        ("outputs: %1,, %2", "E1101", (1, 13, 1), "expected a value"),
        ("%0 = Neg (%1) : tensor<f32[2,,]>", "E1101", (1, 30, 1), "expected an extent, found nothing"),
        ("%0 = Neg (%1) : tensor<f32[,]>", "E1101", (1, 28, 1), "expected an extent, found nothing"),
        ("%0 = Neg (%1) : (tensor<f32[]>, tensor<f32[]>)", "E1101", (1, 1, 2), "one result has 2 types"),
        ("%0, %1 = F (%1) : tensor<f32[]>", "E1101", (1, 1, 6), "2 results have 1 type"),
        ("%0 = call (%1) : " + T, "E1101", (1, 6, 4), "a call names its function"),
        ("^body:", "E1101", (1, 1, 5), "labels and blocks stand in a function"),
        ("%0 = Neg (%1) : " + T + " {", "E1101", (1, 31, 1), "expected the end of the statement"),
        ("%0 = Frob {a=[1,, 2]} : " + T, "E1101", (1, 17, 1), "expected an element"),
        ("%0 = Frob {a=" + "[" * 10_000 + "]" * 10_000 + "} : " + T, "E1101", (1, 78, 1), "64 deep"),
        ("%0 = Frob {a=" + "[" * 10_000, "E1101", (1, 14, 1), "not closed"),
        ("%0 = Sum ([1], %1) : " + T, "E1101", (1, 16, 2), "operands come before attributes"),
        ("%0 = Slice (%1, [0:2, 1]) : " + T, "E1101", (1, 22, 2), "expected a range"),
        ("result: %0", "E1101", (1, 1, 6), "expected 'outputs:'"),
        ("outputs: %0\noutputs: %1", "E1101", (2, 1, 7), "one outputs line"),
        # What a record says.
        ("%0 = Frob (%1, [1]) : " + T, "E1102", (1, 6, 4), "unknown operation 'Frob'"),
        ("%0 = Sum (%1) {axes=[0], axes=[1]} : " + T, "E1103", (1, 26, 8), "given twice"),
        ("%0 = Sum (%1, [0]) {axes=[1]} : " + T, "E1103", (1, 21, 8), "given twice"),
        ("%0 = Sum (%1, [0], true, 3) : " + T, "E1103", (1, 26, 1), "2 trailing arguments"),
        ("%0 = BinOp (Relu, %1, %2) : " + T, "E1103", (1, 13, 4), "no binary operator"),
        ("%0 = BinOp (%1, %2) : " + T, "E1103", (1, 6, 5), "needs its operator"),
        ("%0 = Conv2d (%1, %2, [1, 1], Custm([[1, 1], [1, 1]])) : " + T, "E1103", (1, 30, 5), "'Custm'"),
        ("%0 = Conv2d (%1, %2, [1, 1], Custom([1, 1])) : " + T, "E1103", (1, 37, 6), "pairs of integers"),
        ("%0 = Neg (%1) : tensor<float32[2]>", "E1104", (1, 24, 7), "'float32'"),
        ("%0 = ConstTensor {dtype=f23, shape=[], value=1} : " + T, "E1104", (1, 25, 3), "'f23'"),
        # Literals that the IR cannot hold.
        ("%0 = ConstTensor (value=[[1], 2]) : " + T, "E3010", (1, 25, 8), "ragged"),
        ("%0 = ConstTensor (value=[[1], []]) : " + T, "E3010", (1, 25, 9), "ragged"),
        ("%0 = ConstTensor (value=[1, [2]]) : " + T, "E3010", (1, 25, 8), "ragged"),
        ("%0 = ConstF32 (1e999) : " + T, "E4005", (1, 16, 5), "out of range of f32"),
        ("%0 = ConstF32 (3.5e38) : " + T, "E4005", (1, 16, 6), "out of range of f32"),
        ("%0 = ConstTensor (value=[1, 1.5]) : tensor<i32[2]>", "E4005", (1, 29, 3), "not an integer"),
        ("%0 = ConstTensor (value=[nan]) : tensor<i32[1]>", "E4005", (1, 26, 3), "not an integer"),
        ("%0 = ConstI64 (9223372036854775808) : tensor<i64[]>", "E4005", (1, 16, 19), "out of range of i64"),
        ("%0 = ConstI64 (1e9999999999999999999) : tensor<i64[]>", "E4005", (1, 16, 21), "out of range"),
        ("%0 = ConstI64 (1e-9999999999999999999) : tensor<i64[]>", "E4005", (1, 16, 22), "not an integer"),
        ("%0 = ConstI64 (1E-9999999999999999999) : tensor<i64[]>", "E4005", (1, 16, 22), "not an integer"),
        ("%0 = ConstI64 (1E9999999999999999999) : tensor<i64[]>", "E4005", (1, 16, 21), "out of range"),
        ("%0 = ConstTensor (value=[2]) : tensor<i1[1]>", "E4005", (1, 26, 1), "not an i1 value"),
        # Aliases leave no operation behind, so the reader answers for them.
        ("%1 = %0", "E4001", (1, 6, 2), "no definition before this alias"),
        (f"%0 = Frob : {T}\n%1 = %0\n%1 = %0", "E4002", (3, 1, 2), "defined twice"),
        (f"%0 = Frob : {T}\n%1 = %0\n%1 = Frob : {T}", "E4002", (3, 1, 2), "defined twice"),
    ],
)
def test_finding(text: str, code: str, where: tuple[int, int, int], words: str) -> None:
    found = findings(text)
    assert [d.code for d in found] == [code]
    assert place(found[0]) == where
    assert words in found[0].message


def test_all_findings_of_a_source_are_reported_in_order() -> None:
    text = f"""\
%0 = Input {{name="x}} : {T}
%1 = Add (%0, %0 : {T}
%2 = Add (%0, $) : {T}
%3 = Neg (%2) : {T}
%4 = Neg (%3) : tensor<f33[]>
%5 = Sum (%3, [1, 2
%6 = %2
"""
    found = findings(text)
    assert [(d.code, place(d)[0]) for d in found] == [
        ("E1003", 1),
        ("E1101", 2),
        ("E1002", 3),
        ("E1104", 5),
        ("E1101", 6),
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("%0 = Summ (%1, [1]) : " + T, "did you mean Sum?"),
        ("%0 = matmul (%1, %2, 3) : " + T, "did you mean MatMul?"),
        ("%0 = Neg (%1) : tensor<float[]>", "did you mean f32?"),
        ("%0 = Neg (%1) : tensor<f65[]>", "did you mean f64?"),
    ],
)
def test_suggestions(text: str, words: str) -> None:
    (found,) = findings(text)
    assert found.help is not None
    assert words in found.help


_FRAGMENTS = ["%0", "%x", "=", "Add", "Sum", "ConstTensor", "(", ")", "{", "}", "[", "]", ",", ":", '"', "\\"]
_FRAGMENTS += [
    "func @f(",
    "internal ",
    "-> (",
    "^a",
    "br ",
    "cond_br ",
    "return ",
    "yield ",
    "call @f",
    "{\n",
    "\n}\n",
    "\nfunc @f() -> () {\n^entry:\n",
    "tensor<f32[2]>",
    "tensor<",
    ">",
    "1",
    "-1.5",
    "1e999",
    "nan",
    "axes",
    "value",
    "\n",
    "\r",
    " ",
]
_FRAGMENTS += ["#", "//", "outputs:", "\x00", "é", "Custom", "Slice", "true", "0:2", "\u2028", "%", "\\u{41}"]


@given(st.lists(st.sampled_from(_FRAGMENTS), max_size=40).map("".join) | st.text(max_size=60))
@example("(" * 5000)
@example("%0 = Frob {a=" + "(" * 100_000)
def test_any_text_is_read_or_diagnosed(text: str) -> None:
    try:
        parse(text)
    except MindError as error:
        for diagnostic in error.diagnostics:
            assert diagnostic.location is not None
            lines = diagnostic.location.source.lines
            assert 1 <= diagnostic.location.line <= len(lines)
            assert diagnostic.location.length >= 1
            assert diagnostic.location.column <= len(lines[diagnostic.location.line - 1]) + 2
