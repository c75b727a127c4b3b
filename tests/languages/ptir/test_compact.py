"""The compact text: it reads back as it was, means what people write, and mistakes have places."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ptir_programs import FORMS, instructions, literals, programs

from mind_mlir.diagnostics import ParseError
from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.types import DType, SymbolicDim, TensorType
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
from mind_mlir.ops.contract import Tagged
from mind_mlir.support.frozen import FrozenDict

TEXT = """\
spec_version "ptir.v0.4"
func @softmax(%x: tensor<f32, 4x?B>, %2: tensor<i1>) -> tensor<f32, 4x?B> {
  hints {"why": [1]}
  %m = exp %x -> tensor<f32, 4x?B>
  %b = broadcast_to %m shape[4, 8] -> tensor<f32, 4x8>
  %d = sub %x, %b -> tensor<f32, 4x8>
  %c = constant dense<f32, 2x2>[1.0, 2.5, -inf, nan] -> tensor<f32, 2x2>
  %9 = compare %d, dense<f32, 4x8>[0.0] op[less_equal] -> tensor<i1, 4x8>
  %p = pad %c low[0, 1] high[0, 1] interior[0, 0] pad_value[-0.5] -> tensor<f32, 2x4>
  %w = cond %2, %x, %t[1] true_region[^0] false_region[^1] -> tuple<tensor<f32, 4x8>>
  %r = reshape %w[0] new_shape[2, infer] -> tensor<f32, 2x16>
  return %r
}
region ^0(%a: tensor<f32, 4x8>) -> tensor<f32, 4x8> {
  %e = neg %a -> tensor<f32, 4x8>
  yield %e
}
region ^1(%0: tensor<f32, 4x8>, %1: tensor<f32>) -> (tensor<f32, 4x8>, tensor<f32>) {
  %2 = custom_stand_in %0, %1 -> tuple<tensor<f32, 4x8>, tensor<f32>>
  yield %2[0], %2[1]
}
""".replace("custom_stand_in", "maximum")


@settings(max_examples=60, deadline=None)
@given(programs())
def test_round_trip(made: Program) -> None:
    assert parse(dumps(made, "compact"), "compact") == made


@settings(max_examples=30, deadline=None)
@given(programs())
def test_all_formats_hold_the_same(made: Program) -> None:
    json, display, compact = (dumps(made, form) for form in ("json", "display", "compact"))
    assert dumps(parse(json), "display") == display
    assert dumps(parse(display), "compact") == compact
    assert dumps(parse(compact), "json") == json


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.variant or form.name)
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_every_operation_comes_back(form: Any, data: st.DataObject) -> None:
    made = Program((Function("main", (), (), (data.draw(instructions(form)),), (), ()),))
    assert parse(dumps(made, "compact")) == made


@settings(max_examples=100, deadline=None)
@given(literals())
def test_every_literal_comes_back(literal: TensorLiteral) -> None:
    constant = Operation("Constant", None, FrozenDict({"value": literal}))
    made = Program((Function("main", (), (), (Instruction(0, constant, (), literal.type),), (), ()),))
    assert parse(dumps(made, "compact")) == made


def test_what_people_write() -> None:
    read = parse(TEXT)
    function, regions = read.functions[0], read.regions
    ids = {name: id_ for id_, name in function.names.items()}
    assert (read.entry, function.parameters[0]) == ("softmax", TensorType(DType.F32, (4, SymbolicDim("B"))))
    assert function.parameter_ids == (0, 2)
    assert [instruction.id for instruction in function.body] == [1, 3, 4, 5, 9, 6, 7, 8]
    assert function.body[1].operation.fields == {"result_shape": (4, 8)}
    assert function.body[2].operands == (ValueRef(0), ValueRef(3))
    assert function.body[4].operands[1] == TensorLiteral(TensorType(DType.F32, (4, 8)), bytes(128))
    assert function.body[5].operation.fields["pad_value"] == Tagged("Float", -0.5)
    assert function.body[6].operands == (ValueRef(2), ValueRef(0), TupleElement(ids["t"], 1))
    assert function.body[7].operation.fields == {"new_shape": (2, None)}
    assert function.hints == {"why": [1]}
    assert [region.id for region in regions] == [0, 1]
    assert regions[0].names == {0: "a", 1: "e"}
    assert function.body[0].location is not None
    assert function.body[0].location.text == "%m = exp %x -> tensor<f32, 4x?B>"


def test_names_are_written_again_where_they_read_back_the_same() -> None:
    read = parse(TEXT)
    assert dumps(read, "compact") == TEXT.replace("%t[1]", "%10[1]")
    function = read.functions[0]
    other = Function(**{**_parts(function), "names": FrozenDict({6: "y", 9: "x"})})
    text = dumps(Program((other,), read.regions, "softmax"), "compact")
    assert "%y" not in text
    assert parse(text).functions[0] == other


def _parts(function: Function) -> dict[str, Any]:
    names = ("name", "parameters", "parameter_ids", "body", "results", "result_ids", "hints", "names")
    return {name: getattr(function, name) for name in names}


@pytest.mark.parametrize(
    ("names", "entry", "line"),
    [
        (["a", "main"], "main", ""),
        (["a", "b"], "a", ""),
        (["a", "b"], "b", "entry @b\n"),
        (["main", "é"], "é", 'entry @"\\u00e9"\n'),
    ],
)  # fmt: skip
def test_entries(names: list[str], entry: str, line: str) -> None:
    made = Program(tuple(Function(name, (), (), (), (), ()) for name in names), (), entry)
    text = dumps(made, "compact")
    assert text.startswith(f'spec_version "ptir.v0.4"\n{line}func')
    assert parse(text) == made


@pytest.mark.parametrize(
    ("type_", "shape"),
    [
        ("tensor<f32>", ()),
        ("tensor<f32, []>", ()),
        ("tensor< f32 , 2 x 3 >", (2, 3)),
        ("tensor<f32, ?Bx3>", (SymbolicDim("B"), 3)),
        ("tensor<f32, ?axx3x?B>", (SymbolicDim("ax"), 3, SymbolicDim("B"))),
        ('tensor<f32, ?"Bx3"x?x>', (SymbolicDim("Bx3"), SymbolicDim("x"))),
        ('tensor<f32, ?"a>b">', (SymbolicDim("a>b"),)),
    ],
)
def test_types(type_: str, shape: tuple[Any, ...]) -> None:
    read = parse(f"func @f(%x: {type_}) -> () {{ return }}")
    assert read.functions[0].parameters == (TensorType(DType.F32, shape),)
    assert parse(dumps(read, "compact")) == read


@pytest.mark.parametrize(
    ("old", "new", "code", "words", "place"),
    [
        ("= exp", "= expo", "E1102", "unknown operation 'expo'; did you mean exp?", "expo"),
        ("shape[4, 8]", "shap[4, 8]", "E1103", "field 'result_shape' is missing", None),
        ("shape[4, 8]", "shape[4, x]", "E1103", "expected an integer, found the string 'x'", "x"),
        ("shape[4, 8]", "shape[4, 8] shape[1]", "E1103", "'shape' is given twice", "shape"),
        ("exp %x", "exp %x axes[1]", "E1103", "'axes' is no field of exp, which has none", "axes[1]"),
        ("less_equal", "les", "E1103", "expected one of Less", "les"),
        ("[1.0, 2.5, -inf, nan]", "[1.0, 2.5]", "E3010", "has 4 elements, found 2", None),
        ("[1.0, 2.5, -inf, nan]", "[1.0, 2.5, x, 1]", "E1101", "expected a number, found 'x'", None),
        ("[1.0, 2.5, -inf, nan]", '"zz"', "E4005", "pairs of hexadecimal digits", None),
        ("[1.0, 2.5, -inf, nan]", '"00"', "E3010", "has 16 bytes, found 1", None),
        ("dense<f32, 2x2>", "dense<si8, 2x2>", "E4005", "2.5 is not an integer", None),
        ("tensor<i1>)", "tensor<i2>)", "E1104", "unknown dtype 'i2'", "i2"),
        ("return %r", "", "E1101", "expected 'return' at the end of the function", None),
        ("return %r", "return %r, %x", "E1101", "@softmax returns 1 values, found 2", "return %r, %x"),
        ("return %r", "return %w[0]", "E1101", "no elements of tuples", "%w"),
        ("yield %e", "yield %a", "E1101", "a region yields its last instructions, in order", "yield %a"),
        ("(%0: tensor", "(%1: tensor", "E1101", "parameter 0 of a region is %0", "%1"),
        ("%9 =", f"%{'9' * 20} =", "E1005", "does not fit 64 bits", None),
        ("region ^1", "region ^0", "E4302", "region 0 is defined twice", None),
        ("ptir.v0.4", "ptir.v9", "E1105", "the program follows 'ptir.v9'", None),
        ("func", "entry @x\nfunc", "E4121", "no function @x", "@x"),
        ("%d = sub", "%d := sub", "E1101", "expected '=', found ':'", ":"),
        ("pad_value[-0.5]", "pad_value[[1]]", "E1103", "expected scalar literal", None),
        ("true_region[^0]", "true_region[zero]", "E1103", "an integer, found the string 'zero'", "zero"),
    ],
)  # fmt: skip
def test_what_is_malformed(old: str, new: str, code: str, words: str, place: str | None) -> None:
    assert old in TEXT
    with pytest.raises(ParseError) as caught:
        parse(TEXT.replace(old, new, 1))
    found = next(d for d in caught.value.diagnostics if d.code == code)
    assert words in found.message
    assert found.location is not None
    assert place is None or found.location.text == place
    assert len(caught.value.diagnostics) <= 2


def test_one_mistake_is_one_finding_and_others_are_found() -> None:
    text = TEXT.replace("= exp", "= expo").replace("%d = sub", "%d := sub").replace("= neg", "= ng")
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert [found.code for found in caught.value.diagnostics] == ["E1102", "E1101", "E1102"]


def test_regions_keep_their_names() -> None:
    (region,) = parse("func @f() -> () { return } region ^3(%a: tensor<f32>) -> () { }").regions
    assert region == Region(3, (TensorType(DType.F32),), (), ())
    assert region.names == {0: "a"}
