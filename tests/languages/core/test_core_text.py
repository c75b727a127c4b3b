"""Both spellings of the Core IR text, and what the reader makes of them."""

from __future__ import annotations

import numpy as np
import pytest

from mind_mlir.diagnostics import SourceText
from mind_mlir.ir.attributes import Padding, PaddingMode, TensorLiteral
from mind_mlir.ir.module import CoreOperation, Module
from mind_mlir.ir.types import DType, SymbolicDim, TensorType
from mind_mlir.languages.core import parse
from mind_mlir.languages.core.printer import print_module
from mind_mlir.passes.verify import check

CANONICAL = """\
%0 = Input {name="x"} : tensor<f32[2, 3]>
%1 = ConstTensor {dtype=f32, shape=[3], value=[1.0, 2.0, 3.0]} : tensor<f32[3]>
%2 = Add (%0, %1) : tensor<f32[2, 3]>
%3 = Sum (%2) {axes=[1], keepdims=false} : tensor<f32[2]>
outputs: %3
"""

GRAMMAR_FORM = """\
# The example of the grammar.
%0 = Input() {name: "x"} : Tensor<f32, [2, 3]>
%1 = BinOp(Add, %0, %0) : Tensor<f32, [2, 3]>   // a comment of the other kind
%2 = Sum(%1, [1], false) : Tensor<f32, [2]>

%3 = Reshape(%1, [3, 2]) : tensor<[3, 2], f32>
%4 = Slice(%1, [0:2, 0:3:2]) : Tensor<f32, [2, 2]>
%5 = Conv2d(%a, %b, [1, 1], Same) : Tensor<f32, [1, 8, 8, 4]>
%6 = ConstF32(1.0) : Tensor<f32, []>
%7 = %6
%8 = Neg(%7) : Tensor<f32, []>
%a = Input {name=image} : Tensor<f32, [1, 8, 8, 3]>
%b = Input() {name: "kernel"} : Tensor<f32, [3, 3, 3, 4]>
outputs: %2, %7
"""

GRAMMAR_FORM_PRINTED = """\
%0 = Input {name="x"} : tensor<f32[2, 3]>
%1 = Add (%0, %0) : tensor<f32[2, 3]>
%2 = Sum (%1) {axes=[1], keepdims=false} : tensor<f32[2]>
%3 = Reshape (%1) {new_shape=[3, 2]} : tensor<f32[3, 2]>
%4 = Slice (%1) {ends=[2, 3], starts=[0, 0], steps=[1, 2]} : tensor<f32[2, 2]>
%5 = Conv2d (%a, %b) {padding=Same, strides=[1, 1]} : tensor<f32[1, 8, 8, 4]>
%6 = ConstF32 {value=1.0} : tensor<f32[]>
%8 = Neg (%6) : tensor<f32[]>
%a = Input {name="image"} : tensor<f32[1, 8, 8, 3]>
%b = Input {name="kernel"} : tensor<f32[3, 3, 3, 4]>
outputs: %2, %6
"""


def only(text: str) -> CoreOperation:
    """Return the single operation that ``text`` spells."""
    (operation,) = parse(text).operations
    return operation


def literal(text: str, dtype: str, shape: str) -> TensorLiteral:
    operation = only(
        f"%0 = ConstTensor {{dtype={dtype}, shape={shape}, value={text}}} : tensor<{dtype}{shape}>"
    )
    value = operation.attributes["value"]
    assert isinstance(value, TensorLiteral)
    return value


def test_canonical_text_gives_the_same_bytes() -> None:
    assert print_module(parse(CANONICAL)) == CANONICAL


def test_grammar_form_is_read_into_the_same_ir() -> None:
    assert print_module(parse(GRAMMAR_FORM)) == GRAMMAR_FORM_PRINTED
    assert parse(GRAMMAR_FORM_PRINTED) == parse(GRAMMAR_FORM)


def test_reference_printer_spellings() -> None:
    text = "%0 = ConstTensor {dtype=f32, shape=(2, 2), value=((1, 2), (3, 4))} : tensor<f32[2, 2]>\n"
    text += "%1 = Sum (%0) {axes=(1,), keepdims=False} : tensor<f32[2]>\n%2 = Input {name=x} : tensor<f32[]>"
    constant, total, given = parse(text).operations
    assert constant.attributes["shape"] == (2, 2)
    assert constant.attributes["value"] == TensorLiteral.of([[1, 2], [3, 4]], DType.F32)
    assert total.attributes == {"axes": (1,), "keepdims": False}
    assert given.attributes == {"name": "x"}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_line_ends_and_blank_lines(newline: str) -> None:
    text = newline.join(["", *CANONICAL.splitlines(), "", "  ", ""])
    assert print_module(parse(text)) == CANONICAL


def test_the_longest_ids() -> None:
    longest = "9" * 18
    (operation,) = parse(f"%{longest} = Frob (%-{longest[1:]}) : tensor<f32[]>").operations
    assert (operation.value_id, operation.operands) == (int(longest), (-int(longest[1:]),))


def test_byte_order_mark_is_skipped() -> None:
    assert print_module(parse("\ufeff" + CANONICAL)) == CANONICAL


@pytest.mark.parametrize(
    "type_text",
    [
        "tensor<f32[2, 3]>",
        "tensor<f32[2,3]>",
        "Tensor<f32, [2, 3]>",
        "tensor<[2, 3], f32>",
        "tensor < f32 [ 2 , 3 ] >",
    ],
)
def test_type_spellings(type_text: str) -> None:
    assert only(f"%0 = Input {{name=x}} : {type_text}").result_type == TensorType(DType.F32, (2, 3))


@pytest.mark.parametrize("type_text", ["tensor<i64[]>", "Tensor<i64, []>", "tensor<i64>", "tensor<[], si64>"])
def test_scalar_type_spellings(type_text: str) -> None:
    assert only(f"%0 = Input {{name=x}} : {type_text}").result_type == TensorType(DType.SI64)


def test_symbolic_extents_are_kept_for_the_verifier() -> None:
    type_ = only("%0 = Input {name=x} : tensor<f32[?B, 3]>").result_type
    assert type_ == TensorType(DType.F32, (SymbolicDim("B"), 3))


def test_named_ids_follow_the_greatest_number_in_order_of_definition() -> None:
    module = parse(
        "%y = Neg (%x) : tensor<f32[]>\n%x = Input {name=x} : tensor<f32[]>\n"
        "%7 = Neg (%missing) : tensor<f32[]>\noutputs: %y"
    )
    assert [op.value_id for op in module.operations] == [8, 9, 7]
    assert [op.operands for op in module.operations] == [(9,), (), (10,)]
    assert module.outputs == (8,)


def test_names_alone_count_from_zero() -> None:
    module = parse("%x = Input {name=x} : tensor<f32[]>\n%y.z = Neg (%x) : tensor<f32[]>\noutputs: %y.z")
    assert [op.value_id for op in module.operations] == [0, 1]


def test_alias_chains() -> None:
    module = parse(
        "%0 = Input {name=x} : tensor<f32[]>\n%1 = %0\n%two = %1\n%3 = Add (%1, %two) : tensor<f32[]>\n"
        "outputs: %two, %3"
    )
    assert module.operations[1].operands == (0, 0)
    assert module.outputs == (0, 3)


def test_outputs_line_may_come_first() -> None:
    module = parse("outputs: %1\n" + CANONICAL.replace("outputs: %3\n", ""))
    assert module.outputs == (1,)


def test_duplicate_definitions_are_kept_for_the_verifier() -> None:
    module = parse("%0 = Input {name=x} : tensor<f32[]>\n%0 = Input {name=y} : tensor<f32[]>")
    assert [op.value_id for op in module.operations] == [0, 0]


def test_unknown_operations_are_kept_for_the_verifier() -> None:
    operation = only(
        '%1 = Frob (%0) {a=[1, [2, "w"]], b=true, c=f32, d=Same, e=-1.5, f="s", g=word} : tensor<f32[]>'
    )
    assert operation.opcode == "Frob"
    assert operation.attributes == {
        "a": (1, (2, "w")),
        "b": True,
        "c": DType.F32,
        "d": Padding(PaddingMode.SAME),
        "e": -1.5,
        "f": "s",
        "g": "word",
    }


@pytest.mark.parametrize("word", ["true", "f32", "nan", "Same", "outputs", "tensor", "é"])
def test_words_are_names_where_a_name_is_wanted(word: str) -> None:
    assert only(f"%0 = Input {{name={word}}} : tensor<f32[]>").attributes["name"] == word


@pytest.mark.parametrize("spelling", ["BinOp(Div, %0, %1)", "Div (%0, %1)", "BinOp (%0, %1) {op=Div}"])
def test_division_is_read(spelling: str) -> None:
    operation = only(f"%2 = {spelling} : tensor<f32[]>")
    assert (operation.opcode, operation.operands) == ("Div", (0, 1))


@pytest.mark.parametrize("spelling", ["Same", "SAME", "same", '"Same"'])
def test_padding_modes_in_any_case(spelling: str) -> None:
    operation = only(f"%2 = Conv2d (%0, %1) {{padding={spelling}, strides=[1, 1]}} : tensor<f32[1, 2, 2, 1]>")
    assert operation.attributes["padding"] == Padding(PaddingMode.SAME)


def test_custom_padding_in_both_forms() -> None:
    want = Padding(PaddingMode.CUSTOM, ((1, 2), (3, 4)))
    canonical = "Conv2d (%0, %1) {padding=Custom([[1, 2], [3, 4]]), strides=[1, 1]}"
    for call in (canonical, "Conv2d(%0, %1, [1, 1], Custom([[1, 2], [3, 4]]))"):
        assert only(f"%2 = {call} : tensor<f32[1, 2, 2, 1]>").attributes["padding"] == want


def test_named_arguments_in_the_call() -> None:
    operation = only("%1 = Sum(%0, axes=[1], keepdims=true) : tensor<f32[1]>")
    assert operation.attributes == {"axes": (1,), "keepdims": True}


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("ConstTensor([[1.0, 2.0]]) : Tensor<f32, [1, 2]>", "dtype=f32, shape=[1, 2], value=[[1.0, 2.0]]"),
        ("ConstTensor([1, 2], f32) : Tensor<f64, [2]>", "dtype=f32, shape=[2], value=[1.0, 2.0]"),
        ("ConstTensor([1, 2]) {shape: [3]} : tensor<i64[2]>", "dtype=i64, shape=[3], value=[1, 2]"),
        ("ConstTensor([[], []]) : tensor<i64[2, 0, 3]>", "dtype=i64, shape=[2, 0, 3], value=[[], []]"),
        ("ConstTensor([1]) : tensor<i64[?B]>", "dtype=i64, value=[1]"),
        ("ConstTensor {value=[1]} : tensor<i64[1]>", "value=[1]"),
    ],
)
def test_the_grammar_form_leaves_dtype_and_shape_to_the_declared_type(text: str, printed: str) -> None:
    operation = only(f"%0 = {text}")
    assert str(operation) == f"%0 = ConstTensor {{{printed}}} : {operation.result_type}"
    literal = operation.attributes["value"]
    assert isinstance(literal, TensorLiteral)
    assert literal.array.shape[0] in (1, 2)


def test_every_list_may_end_in_a_comma() -> None:
    text = """\
%0 = Input("x",) {} : Tensor<f32, [2, 3,]>
%1 = Sum (%0,) {axes=[1,], keepdims=false,} : tensor<f32[2,]>
%2 = Slice(%0, [0:2, 0:3:2,],) : tensor<[2, 2,], f32>
%3 = ConstTensor([[1.0, 2.0,], [3, 4,],],) : tensor<f32[2, 2]>
%4 = Conv2d(%5, %6, (1, 1,), Custom([[1, 1,], [1, 1],],),) : tensor<f32[1, 2, 2, 1]>
outputs: %1, %2,
"""
    printed = """\
%0 = Input {name="x"} : tensor<f32[2, 3]>
%1 = Sum (%0) {axes=[1], keepdims=false} : tensor<f32[2]>
%2 = Slice (%0) {ends=[2, 3], starts=[0, 0], steps=[1, 2]} : tensor<f32[2, 2]>
%3 = ConstTensor {dtype=f32, shape=[2, 2], value=[[1.0, 2.0], [3.0, 4.0]]} : tensor<f32[2, 2]>
%4 = Conv2d (%5, %6) {padding=Custom([[1, 1], [1, 1]]), strides=[1, 1]} : tensor<f32[1, 2, 2, 1]>
outputs: %1, %2
"""
    assert print_module(parse(text)) == printed


@pytest.mark.parametrize("call", ["Add(%0, %0)", "BinOp(Add, %0, %0)", "Sum(%0, [0], false)", 'Input("y")'])
def test_attributes_may_follow_the_call_of_every_operation(call: str) -> None:
    operation = only(f'%1 = {call} {{note: "x"}} : tensor<f32[2]>')
    assert operation.attributes["note"] == "x"
    first = check(parse(f'%0 = Input("x") : tensor<f32[2]>\n%1 = {call} {{note: "x"}} : tensor<f32[2]>'))[0]
    assert (first.code, first.message) == ("E1103", f"{operation.opcode} has no attribute 'note'")
    assert first.location is not None
    assert first.location.text == 'note: "x"'


def test_a_flat_text_has_no_other_names_of_operations() -> None:
    (found, *_) = check(parse('%0 = Input("x") : tensor<f32[2]>\n%1 = tensor.exp (%0) : tensor<f32[2]>'))
    assert (found.code, found.message) == ("E1102", "unknown operation 'tensor.exp'")
    assert (
        found.help == "write Exp: tensor.exp is its name in profile core-functions, in a module of functions"
    )


def test_statements_may_break_inside_brackets() -> None:
    head = "%0 = ConstTensor {\n  dtype=f32, shape=[2, 2],  # here\n"
    operation = only(head + "  value=[[1, 2], // row\n\n  [3, 4]]\n} : tensor<f32[2, 2]>")
    assert operation.attributes["value"] == TensorLiteral.of([[1, 2], [3, 4]], DType.F32)


def test_string_escapes() -> None:
    operation = only(r'%0 = Input {name="a\n\r\t\\\"\u{1F600}\u{0}é"} : tensor<f32[]>')
    assert operation.attributes["name"] == 'a\n\r\t\\"\U0001f600\0é'


def test_source_info_is_exact() -> None:
    source = SourceText(
        "m.ir", "\n  %2 = Sum (%1) {axes=[1], keepdims=false} : tensor<f32[2]>  # c\noutputs: %2"
    )
    module = parse(source)
    info = module.operations[0].source
    assert info is not None
    assert (info.statement.line, info.statement.column, info.statement.length) == (2, 3, 57)
    assert [(s.line, s.column, s.length) for s in info.operands] == [(2, 13, 2)]
    assert {k: (s.column, s.length) for k, s in info.attributes.items()} == {
        "axes": (18, 8),
        "keepdims": (28, 14),
    }
    assert info.result_type is not None
    assert (info.result_type.column, info.result_type.length) == (46, 14)
    where = module.returned.location_of(0)
    assert where is not None
    assert (where.line, where.column, where.length) == (3, 10, 2)


def test_source_info_of_trailing_arguments() -> None:
    info = only("%4 = Slice(%1, [0:2, 0:3:2]) : Tensor<f32, [2, 2]>").source
    assert info is not None
    assert {(k, s.column, s.length) for k, s in info.attributes.items()} == {
        (name, 16, 12) for name in ("starts", "ends", "steps")
    }


class TestLiterals:
    @pytest.mark.parametrize(
        ("text", "shape"),
        [("[]", (0,)), ("[[], []]", (2, 0)), ("[[1], [2]]", (2, 1)), ("[[[1, 2]]]", (1, 1, 2)), ("7", ())],
    )
    def test_shape_is_that_of_the_nesting(self, text: str, shape: tuple[int, ...]) -> None:
        assert literal(text, "f32", str(list(shape))).array.shape == shape

    def test_empty_literal_takes_the_rest_of_its_shape_from_the_declaration(self) -> None:
        assert literal("[[], []]", "f32", "[2, 0, 3]").array.shape == (2, 0, 3)

    @pytest.mark.parametrize("text", ["inf", "-inf", "+inf", "1", "-0.0"])
    def test_scalars(self, text: str) -> None:
        operation = only(f"%0 = ConstF32 {{value={text}}} : tensor<f32[]>")
        assert operation.attributes["value"] == TensorLiteral.of(float(text), DType.F32)

    def test_special_floats(self) -> None:
        array = literal("[inf, -inf, nan, -0.0, 1e-400]", "f64", "[5]").array
        np.testing.assert_array_equal(array, [np.inf, -np.inf, np.nan, -0.0, 0.0])
        assert np.signbit(array[3])

    @pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
    def test_decimals_are_rounded_once(self, dtype: str) -> None:
        """1 + ulp/2 is a tie; a decimal a little above it, which f64 cannot tell from it, goes up."""
        bits = {"f32": 23, "f16": 10, "bf16": 7}[dtype]
        ulp, tie = 2.0**-bits, 1 + 2.0 ** -(bits + 1)
        exact = f"{tie:.40f}"  # of which all digits are shown
        array = literal(f"[{exact}, {exact}1]", dtype, "[2]").array.astype(np.float64)
        assert array.tolist() == [1.0, 1.0 + ulp]

    @pytest.mark.parametrize(
        ("dtype", "low", "high"),
        [("i32", -(2**31), 2**31 - 1), ("i64", -(2**63), 2**63 - 1), ("ui64", 0, 2**64 - 1), ("si4", -8, 7)],
    )
    def test_integer_limits(self, dtype: str, low: int, high: int) -> None:
        assert [int(v) for v in literal(f"[{low}, {high}]", dtype, "[2]").array] == [low, high]

    def test_other_radices_and_whole_floats(self) -> None:
        assert literal("[0x1f, 0b101, 0o17, 1_000, 2.0, 3e2]", "i32", "[6]").array.tolist() == [
            31,
            5,
            15,
            1000,
            2,
            300,
        ]

    def test_booleans(self) -> None:
        assert literal("[true, false, 1, 0]", "i1", "[4]").array.tolist() == [True, False, True, False]

    def test_element_dtype_comes_from_the_attribute(self) -> None:
        operation = only("%0 = ConstTensor {dtype=f64, shape=[1], value=[0.1]} : tensor<f32[1]>")
        assert operation.attributes["value"] == TensorLiteral.of([0.1], DType.F64)

    def test_a_million_numbers(self) -> None:
        rows = np.arange(1_000_000, dtype=np.float32).reshape(1000, 1000) / np.float32(7)
        read = literal(str(rows.tolist()), "f32", "[1000, 1000]")
        np.testing.assert_array_equal(read.array, rows)


def test_ten_thousand_operations() -> None:
    lines = ["%0 = Input {name=x} : tensor<f32[4, 4]>"]
    lines += [f"%{i} = Add (%{i - 1}, %0) : tensor<f32[4, 4]>" for i in range(1, 10_000)]
    text = "\n".join([*lines, "outputs: %9999"])
    module = parse(text)
    assert isinstance(module, Module)
    assert len(module.operations) == 10_000
