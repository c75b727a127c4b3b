"""The display text: it reads back as it was, in the notation that the format says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ptir_programs import FORMS, instructions, programs

from mind_mlir.diagnostics import ParseError
from mind_mlir.ir.types import DType, SymbolicDim, TensorType
from mind_mlir.languages.ptir import dumps, parse
from mind_mlir.languages.ptir.files import FORMATS as TEXTS
from mind_mlir.languages.ptir.program import Function, Operation, Program, TupleElement, ValueRef
from mind_mlir.ops.contract import Tagged
from mind_mlir.support.frozen import FrozenDict

TEXT = """\
program @main (spec_version = ptir.v0.4) {
  func @main {
    params:
      %0 : tensor<F32 x 2x?B>
    body:
      %1 = Transpose(TransposeSpec { perm: [1, 0] })(%0) -> tensor<F32 x ?Bx2>
      %2 = ElementwiseUnary(Exp)(%1) -> tensor<F32 x ?Bx2>
      %3 = Constant(TensorLiteral { spec: TensorSpec { dtype: F32, shape: Shape { dims: [] } }, bytes: [0, 0, 0, 0] }) -> tensor<F32 x []>
      %4 = Select(%2, %9[1], TensorLiteral { spec: TensorSpec { dtype: I1, shape: Shape { dims: [Static(1)] } }, bytes: [1] }) -> tuple<tensor<F32 x []>, tensor<I1 x 1>>
      %5 = Pad(PadSpec { low: [1], high: [0], interior: [0], pad_value: Float(-inf) })(%4) -> tensor<F32 x []>
    results:
      %4 : tensor<F32 x 2x?B>
    hints: {"why": [1]}
  }
  region ^r7 {
    params:
      %0 : tensor<I1 x []>
    body:
      %1 = Compare(CompareSpec { op: Less })(%0, %0) -> tensor<I1 x []>
    results:
      %1 : tensor<I1 x []>
  }
}
"""  # noqa: E501 -- an instruction is a line


@settings(max_examples=60, deadline=None)
@given(programs())
def test_round_trip(made: Program) -> None:
    assert parse(dumps(made, "display"), "display") == made


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.variant or form.name)
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_every_operation_comes_back(form: Any, data: st.DataObject) -> None:
    made = Program((Function("main", (), (), (data.draw(instructions(form)),), (), ()),))
    assert parse(dumps(made, "display")) == made


def test_it_is_the_notation_of_the_format() -> None:
    read = parse(TEXT)
    assert dumps(read, "display") == TEXT
    (function,), (region,) = read.functions, read.regions
    assert function.parameters == (TensorType(DType.F32, (2, SymbolicDim("B"))),)
    assert function.body[3].operands[:2] == (ValueRef(2), TupleElement(9, 1))
    assert function.body[4].operation.fields["pad_value"] == Tagged("Float", float("-inf"))
    assert function.hints == {"why": [1]}
    assert region.id == 7
    assert function.body[1].location is not None
    assert function.body[1].location.text == "%2 = ElementwiseUnary(Exp)(%1) -> tensor<F32 x ?Bx2>"


@pytest.mark.parametrize(
    ("spelled", "operation"),
    [
        ("Slice(SliceSpec { starts: [0], sizes: [1], })", ("Slice", {"starts": (0,), "sizes": (1,)})),
        ("Slice { starts: [0], sizes: (1) }", ("Slice", {"starts": (0,), "sizes": (1,)})),
        (
            "BroadcastTo(S { result_shape: Shape { dims: [Static(2), Dynamic(DimSymbol(\"B\"))] } })",
            ("BroadcastTo", {"result_shape": (2, SymbolicDim("B"))}),
        ),
        (
            "BroadcastTo({\"result_shape\": {\"dims\": [?B]}})",
            ("BroadcastTo", {"result_shape": (SymbolicDim("B"),)}),
        ),
        (
            "Reshape(ReshapeSpec { new_shape: [Explicit(Static(2)), Infer] })",
            ("Reshape", {"new_shape": (2, None)}),
        ),
        (
            "Cond(CondSpec { true_region: RegionId(1), false_region: ^r2 })",
            ("Cond", {"true_region": 1, "false_region": 2}),
        ),
    ],
)  # fmt: skip
def test_other_ways_to_write_it(spelled: str, operation: tuple[str, Any]) -> None:
    text = f"program @f {{ func @f {{ params: body: %0 = {spelled} -> tensor<F32 x []> results: }} }}"
    (function,) = parse(text).functions
    name, fields = operation
    assert function.body[0].operation == Operation(name, None, FrozenDict(fields))


PRODUCED = """\
program @main (spec_version = ptir.v0.4) {
  func @main {
    body:
      %0 = Iota(IotaSpec { shape: Shape { dims: [] }, dtype: I1, axis: 0 }) -> tensor<I1 x []>
      %1 = Cond(CondSpec { true_region: RegionId(0), false_region: RegionId(0) })(%0, %0) -> tensor<I1 x []>
    hints:
      fused_hint id=3 kind=ElementwiseDag policy=Preferred {
        inputs: [%0, %1]
        exports: [%2]
        attrs:
          tile = I64Array([8, 4])
        body:
          %2 = Select(%1, %0[1], %0) -> tensor<I1 x []>
      }
      fused_hint id=4 kind=DotEpilogue policy=Optional {
      }
    results:
      %1 : tensor<I1 x []>
  }
  region ^r0 {
    params:
      %arg0 : tensor<I1 x []>
    body:
      %1 = Compare(CompareSpec { op: Less })(%0, %0) -> tensor<I1 x []>
    results:
      %res0 : tensor<I1 x []>
  }
}
"""


def test_what_the_producer_prints() -> None:
    read = parse(PRODUCED)
    (function,), (region,) = read.functions, read.regions
    assert (function.parameters, function.result_ids) == ((), (1,))
    assert region.body[0].operands == (ValueRef(0), ValueRef(0))
    first, second = function.hints
    assert (first["inputs"], first["exports"]) == ([0, 1], [2])
    assert first["attrs"] == {"tile": {"kind": "I64Array", "value": [8, 4]}}
    (held,) = first["body"]
    assert (held["op"], held["operands"][1]) == ("Select", {"TupleElement": {"tuple": 0, "index": 1}})
    assert second.items() >= {"id": 4, "kind": "DotEpilogue", "policy": "Optional", "body": []}.items()
    for form in TEXTS:
        assert parse(dumps(read, form), form) == read


@pytest.mark.parametrize(
    ("old", "new", "words", "place"),
    [
        ("%0)", "literal(dtype=I1, shape=2))", "elements of this literal", "literal(dtype=I1, shape=2)"),
        ("%arg0", "%arg1", "expected the number of a value, such as %0", "%arg1"),
        ("id=3", "id=-3", "expected a number, found '-3'", "-3"),
        ("[%2]", "[%x]", "expected the number of a value, such as %0", "%x"),
        ("    body:", "    bdy:", "expected '}', found 'bdy'", "bdy"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_what_the_producer_prints(old: str, new: str, words: str, place: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(PRODUCED.replace(old, new, 1))
    found = caught.value.diagnostics[0]
    assert (found.code, found.location and found.location.text) == ("E1101", place)
    assert words in found.message


@pytest.mark.parametrize(
    ("old", "new", "code", "words", "place"),
    [
        ("ptir.v0.4", "ptir.v1", "E1105", "the program follows 'ptir.v1', expected 'ptir.v0.4'", "ptir.v1"),
        ("Transpose(", "Transpse(", "E1102", "'Transpse'; did you mean Transpose?", "Transpse"),
        ("(Exp)", "(Expo)", "E1102", "found the string 'Expo'; did you mean Exp?", "Expo"),
        ("perm: [1, 0]", "prm: [1, 0]", "E1103", "field 'perm' is missing", None),
        ("perm: [1, 0]", "perm: [1, x]", "E1103", "expected an integer, found the string 'x'", "x"),
        ("dtype: F32", "dtype: F33", "E1104", "unknown dtype 'F33'", "F33"),
        ("[0, 0, 0, 0]", "[0, 0, 0]", "E3010", "has 4 bytes, found 3", "[0, 0, 0]"),
        ("[0, 0, 0, 0]", "[0, 0, 999, 0]", "E4005", "from 0 to 255, found 999", "999"),
        ("tensor<F32 x 2x?B>", "tensor<F33 x 2x?B>", "E1104", "unknown dtype 'F33'", "F33"),
        ("2x?B>", "2y?B>", "E1101", "expected extents such as 4x?B, found '2y?B'", "2y?B"),
        ("%2 = Elem", "%x = Elem", "E1101", "expected the number of a value, such as %0", "%x"),
        ("%9[1]", "%9[-1]", "E1101", "expected the number of an element, found '-1'", "-1"),
        ("%3 =", f"%{'9' * 30} =", "E1005", "does not fit 64 bits", "9" * 30),
        (") -> tuple", ") tuple", "E1101", "expected '->', found 'tuple'", "tuple"),
        ("-inf", "1e999", "E1005", "the number 1e999 is beyond every float", "1e999"),
        ('{"why": [1]}', '{"why": [NaN]}', "E1101", "expected a JSON value", "{"),
        ("      %1 : tensor<I1", "      %0 : tensor<I1", "E1101", "results of a region are its last", None),
        ("  region", "func @main { params: body: results: }\n  region", "E4107", "is defined twice", None),
        ("program @main", "program @mian", "E4121", "no function @mian; did you mean main?", "@mian"),
    ],
)  # fmt: skip
def test_what_is_malformed(old: str, new: str, code: str, words: str, place: str | None) -> None:
    assert old in TEXT
    with pytest.raises(ParseError) as caught:
        parse(TEXT.replace(old, new, 1))
    found = caught.value.diagnostics[0]
    assert found.code == code
    assert words in found.message
    assert found.location is not None
    assert place is None or found.location.text in (place, f"%{place}")


def test_one_mistake_is_one_finding_and_others_are_found() -> None:
    text = TEXT.replace("(Exp)", "(Expo)").replace("op: Less", "op: Lesser").replace("%5 = Pad", "%5 := Pad")
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert [found.code for found in caught.value.diagnostics] == ["E1102", "E1101", "E1103"]
