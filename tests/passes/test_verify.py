"""The verifier: every rule from text to diagnostic, with code, place and caret span."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mind_mlir.diagnostics import Diagnostic, MindError, VerificationError
from mind_mlir.ir.attributes import AttributeValue, Padding, PaddingMode, TensorLiteral
from mind_mlir.ir.module import Block, CoreOperation, Functions, Module, Parameter, Return
from mind_mlir.ir.types import DType, SymbolicDim, TensorType, TupleType
from mind_mlir.languages.core import parse
from mind_mlir.ops import registry
from mind_mlir.passes.verify import check, verify

F32 = TensorType(DType.F32)
HEAD = """\
%0 = Input {name="x"} : tensor<f32[2, 3]>
%1 = Input {name="y"} : tensor<f32[2, 3]>
%2 = Input {name="n"} : tensor<i32[2, 3]>
%3 = Input {name="v"} : tensor<f32[3]>
%4 = Input {name="image"} : tensor<f32[1, 4, 4, 3]>
%5 = Input {name="filter"} : tensor<f32[1, 1, 3, 2]>
"""
FIRST_LINE = HEAD.count("\n") + 1


def findings(text: str) -> list[Diagnostic]:
    """Return everything that reading and verifying ``text`` reports."""
    try:
        return check(parse(text, "m.ir"))
    except MindError as error:
        return list(error.diagnostics)


def marked(diagnostic: Diagnostic) -> str:
    """Return the source text under the carets."""
    where = diagnostic.location
    assert where is not None
    start = where.column - 1
    return where.source.lines[where.line - 1][start : start + where.length]


# The marked text fixes the caret span: it is looked for in the line.
RULES = [
    ("E2001", "%9 = Add (%0, %1) : tensor<f32[3, 2]>", "tensor<f32[3, 2]>", "is tensor<f32[2, 3]>"),
    ("E2001", "%9 = Add (%0, %1) : tensor<f64[2, 3]>", "tensor<f64[2, 3]>", "is tensor<f32[2, 3]>"),
    ("E2001", "%9 = Neg (%0) : tensor<f32[?B, 3]>", "tensor<f32[?B, 3]>", "declared as tensor<f32[?B, 3]>"),
    ("E2004", "%9 = Add (%0, %2) : tensor<f32[2, 3]>", "%2", "Dtype mismatch: Add of f32 and i32"),
    ("E2004", "%9 = BinOp(Mul, %2, %0) : Tensor<f32, [2, 3]>", "%0", "Dtype mismatch: Mul of i32 and f32"),
    ("E2005", "%9 = Log (%2) : tensor<i32[2, 3]>", "%2", "Log does not take i32"),
    ("E2005", "%9 = ConstTensor {dtype=bf16, shape=[], value=1} : tensor<bf16[]>", "tensor<bf16[]>", "bf16"),
    ("E2007", "%9 = Add (%0) : tensor<f32[2, 3]>", "Add", "takes 2 operands, found 1"),
    (
        "E3001",
        "%9 = Add (%0, %4) : tensor<f32[2, 3]>",
        "Add",
        "Broadcasting failed at dimension 2: 2 against 4",
    ),
    ("E3002", "%9 = MatMul (%0, %3) : tensor<f32[2]>", "%3", "rank 1"),
    ("E3002", "%9 = Conv2d (%0, %5, [1, 1], Same) : tensor<f32[1, 4, 4, 2]>", "%0", "rank 4"),
    ("E3003", "%9 = MatMul (%0, %1) : tensor<f32[2, 3]>", "MatMul", "extents are 3 and 2"),
    ("E3004", "%9 = Sum (%0) {axes=[2], keepdims=false} : tensor<f32[2]>", "axes=[2]", "axis 2 is outside"),
    ("E3004", "%9 = Sum(%0, [2], false) : Tensor<f32, [2]>", "[2]", "axis 2 is outside"),
    ("E3004", "%9 = ExpandDims (%3) {axes=[3]} : tensor<f32[1, 3]>", "axes=[3]", "axis 3 is outside"),
    ("E3005", "%9 = Sum (%0) {axes=[1, 1], keepdims=false} : tensor<f32[2]>", "axes=[1, 1]", "given twice"),
    ("E3006", "%9 = Reshape (%0) {new_shape=[6, 0]} : tensor<f32[6, 0]>", "new_shape=[6, 0]", "extent 0"),
    ("E3006", "%9 = ConstTensor {dtype=f32, shape=[0], value=[]} : tensor<f32[0]>", "shape=[0]", "extent 0"),
    ("E3007", "%9 = Reshape (%0, [2, 2]) : Tensor<f32, [2, 2]>", "[2, 2]", "lement count mismatch"),
    (
        "E3008",
        "%9 = Transpose (%0) {permutation=[0, 0]} : tensor<f32[2, 2]>",
        "permutation=[0, 0]",
        "permutation",
    ),
    ("E3009", "%9 = Squeeze (%0) {axes=[1]} : tensor<f32[2]>", "axes=[1]", "extent is 3"),
    (
        "E3010",
        "%9 = ConstTensor {dtype=f32, shape=[2], value=[1, 2, 3]} : tensor<f32[2]>",
        "value=[1, 2, 3]",
        "[3], but [2] is declared",
    ),
    (
        "E3010",
        "%9 = ConstTensor {dtype=f32, shape=[2], value=[1, [2]]} : tensor<f32[2]>",
        "[1, [2]]",
        "ragged",
    ),
    ("E4001", "%9 = Add (%0, %8) : tensor<f32[2, 3]>", "%8", "%8 is not defined"),
    ("E4001", "%9 = Add (%0, %nobody) : tensor<f32[2, 3]>", "%nobody", "%nobody is not defined"),
    ("E4002", "%0 = Neg (%1) : tensor<f32[2, 3]>", "%0", "%0 is defined twice"),
    ("E4004", '%9 = Input {name="x"} : tensor<f32[2]>', 'name="x"', "two inputs are called 'x'"),
    ("E4004", '%9 = Input {name=""} : tensor<f32[2]>', 'name=""', "empty name"),
    ("E4004", "%9 = Input : tensor<f32[2]>", "Input", "needs attribute 'name'"),
    ("E4004", "%9 = Input {name=7} : tensor<f32[2]>", "name=7", "must be a string"),
    ("E4004", "%9 = Input {name=z} : tensor<f16[2]>", "tensor<f16[2]>", "dtype f16"),
    ("E4004", "%9 = Input {name=z} : tensor<f32[-2]>", "tensor<f32[-2]>", "extent -2"),
    ("E4004", "%9 = Input {name=z} : tensor<f32[?B]>", "tensor<f32[?B]>", "extent ?B"),
    (
        "E4005",
        "%9 = ConstTensor {dtype=i32, shape=[1], value=[1.5]} : tensor<i32[1]>",
        "1.5",
        "not an integer",
    ),
    ("E4005", "%9 = ConstF32 {value=1} : tensor<f64[]>", "value=1", "not a f32 scalar"),
    ("E4005", "%9 = ConstI64 : tensor<i64[]>", "ConstI64", "needs attribute 'value'"),
    ("E4006", "%9 = Index (%0) {indices=[1]} : tensor<f32[]>", "indices=[1]", "needs 2 indices, found 1"),
    (
        "E4007",
        "%9 = Slice (%0) {ends=[2, 3], starts=[0], steps=[1, 1]} : tensor<f32[2, 3]>",
        "starts=[0]",
        "1 starts, 2 ends and 2 steps",
    ),
    ("E4007", "%9 = Slice(%0, [0:2]) : Tensor<f32, [2, 3]>", "[0:2]", "1 starts"),
    (
        "E4008",
        "%9 = Slice(%0, [0:2:1, 0:3:0]) : Tensor<f32, [2, 3]>",
        "[0:2:1, 0:3:0]",
        "step 0 in dimension 1",
    ),
    (
        "E4009",
        "%9 = Conv2d (%4, %4) {padding=Valid, strides=[1, 1]} : tensor<f32[1, 1, 1, 3]>",
        "Conv2d",
        "3 channels, but its filter takes 4",
    ),
    (
        "E4010",
        "%9 = Conv2d (%4, %5) {padding=Valid, strides=[1, 0]} : tensor<f32[1, 4, 4, 2]>",
        "strides=[1, 0]",
        "two positive strides",
    ),
    ("E4011", "%9 = Gather (%0, %3) : tensor<f32[3, 3]>", "%3", "f32"),
    # Ours.
    ("E1102", "%9 = Relux (%0) : tensor<f32[2, 3]>", "Relux", "unknown operation 'Relux'"),
    ("E1102", "%9 = BinOp(Pow, %0, %1) : tensor<f32[2, 3]>", "Pow", "unknown operation 'Pow'"),
    ("E1103", "%9 = Sum (%0) {axes=1, keepdims=false} : tensor<f32[2]>", "axes=1", "list of integers"),
    ("E1103", "%9 = Neg (%0) {axes=[1]} : tensor<f32[2, 3]>", "axes=[1]", "no attribute 'axes'"),
    ("E4102", "%9 = Div (%0, %1) : tensor<f32[2, 3]>", "Div", "not allowed in profile core-v1"),
    ("E4102", "%9 = BinOp(Div, %0, %1) : tensor<f32[2, 3]>", "Div", "not allowed in profile core-v1"),
    (
        "E4104",
        "%9 = Input {name=z} : tensor<f32[4294967296, 4294967296]>",
        "tensor<f32[4294967296, 4294967296]>",
        "does not fit",
    ),
    (
        "E4104",
        "%9 = Input {name=z} : tensor<f64[1152921504606846976]>",
        "tensor<f64[1152921504606846976]>",
        "does not fit",
    ),
    (
        "E4106",
        f"%9 = Input {{name=z}} : tensor<f32[{', '.join('1' * 65)}]>",
        f"tensor<f32[{', '.join('1' * 65)}]>",
        "rank 65",
    ),
]


@pytest.mark.parametrize(("code", "line", "under", "words"), RULES)
def test_rule(code: str, line: str, under: str, words: str) -> None:
    (found,) = findings(f"{HEAD}  {line}  # a comment\noutputs: %0\n")
    assert found.code == code
    assert words in found.message
    assert found.location is not None
    assert found.location.line == FIRST_LINE
    assert marked(found) == under
    assert found.location.column - 1 in (f"  {line}".index(under), f"  {line}".rindex(under))


def test_every_shape_and_verification_code_is_tested() -> None:
    tested = {code for code, *_ in RULES} | {"E4003"}
    assert {f"E30{n:02}" for n in range(1, 11)} <= tested
    assert {f"E40{n:02}" for n in range(1, 12)} <= tested
    assert {"E2004", "E2005"} <= tested


@pytest.mark.parametrize(
    "type_text",
    [
        f"f32[{', '.join('1' * 64)}]",
        "f32[2305843009213693951]",
        "i1[9223372036854775807]",
        "f64[1152921504606846975]",
    ],
    ids=["rank 64", "f32", "i1", "f64"],
)
def test_the_largest_values_are_allowed(type_text: str) -> None:
    assert findings(f"%0 = Input {{name=x}} : tensor<{type_text}>\noutputs: %0\n") == []


def test_outputs_must_exist() -> None:
    (found,) = findings(f"{HEAD}outputs: %0, %nobody, %1\n")
    assert (found.code, marked(found), found.context["output"]) == ("E4003", "%nobody", 1)
    assert "output 1 is %nobody" in found.message


def test_two_places_of_a_double_definition() -> None:
    (found,) = findings(f"{HEAD}%0 = Neg (%1) : tensor<f32[2, 3]>\noutputs: %0\n")
    assert found.notes == ("the first definition is at m.ir:1:1",)
    assert found.context["places"] == ("m.ir:1:1", f"m.ir:{FIRST_LINE}:1")


def test_a_second_definition_of_another_type_changes_no_use_of_the_first() -> None:
    for second in ("%0 = Neg (%2) : tensor<i32[2, 3]>", "%0 = Neg (%4) : tensor<f32[1, 4, 4, 3]>"):
        text = f"{HEAD}{second}\n%9 = Add (%0, %1) : tensor<f32[2, 3]>\noutputs: %9\n"
        assert [found.code for found in findings(text)] == ["E4002"]


def test_uses_before_the_definition() -> None:
    text = f"{HEAD}%9 = Add (%8, %0) : tensor<f32[2, 3]>\n%8 = Neg (%8) : tensor<f32[2, 3]>\noutputs: %9\n"
    forward, itself = findings(text)
    assert (forward.code, itself.code) == ("E4001", "E4001")
    assert forward.message == "%8 is used before its definition"
    assert forward.notes == (f"the definition is at m.ir:{FIRST_LINE + 1}:1",)
    assert forward.context["instruction"] == FIRST_LINE - 1
    assert itself.notes == ("the definition is this operation",)


def test_division_names_the_alternative() -> None:
    (found,) = findings(f"{HEAD}%9 = Div (%0, %1) : tensor<f32[2, 3]>\noutputs: %9\n")
    assert found.help is not None
    assert "Reciprocal" in found.help
    assert "Mul" in found.help


def test_inputs_may_follow_other_operations() -> None:
    text = f"{HEAD}%9 = Neg (%0) : tensor<f32[2, 3]>\n%10 = Input {{name=late}} : tensor<f32[]>\noutputs: %10"
    assert findings(text) == []


def test_extension_operations_are_accepted() -> None:
    assert findings(f"{HEAD}%9 = Reciprocal (%0) : tensor<f32[2, 3]>\noutputs: %9\n") == []


def test_one_mistake_is_reported_once() -> None:
    """After an error the declared type counts; where that is no type either, consumers are left alone."""
    text = f"""{HEAD}\
%9 = Frob (%0) : tensor<f32[7]>
%10 = Add (%9, %9) : tensor<f32[7]>
%11 = Sum (%0) {{axes=[5], keepdims=false}} : tensor<f32[-1]>
%12 = Add (%11, %0) : tensor<f32[2, 3]>
%13 = Log (%2) : tensor<f32[2, 3]>
%14 = Exp (%13) : tensor<f32[2, 3]>
outputs: %10, %12, %14
"""
    assert [found.code for found in findings(text)] == ["E1102", "E3004", "E2005"]


def test_all_findings_come_at_once_in_source_order() -> None:
    text = f"""outputs: %99
{HEAD}\
%9 = Add (%0, %2) : tensor<f32[2, 3]>
%10 = Sum (%0) {{axes=[5], keepdims=3, what=1}} : tensor<f32[2]>
%11 = Add (%77, %78) : tensor<f32[2]>
"""
    found = findings(text)
    assert [d.code for d in found] == ["E4003", "E2004", "E1103", "E1103", "E4001", "E4001"]
    places = [(d.location.line, d.location.column) for d in found if d.location]
    assert places == sorted(places)
    assert len(places) == len(found)


def test_module_without_outputs_is_warned_about() -> None:
    module = parse(HEAD)
    (found,) = check(module)
    assert (found.code, found.severity) == ("E4101", "warning")
    assert verify(module) is module


def test_verify_raises_every_error_and_no_warning() -> None:
    module = parse(f"{HEAD}%9 = Frob (%0) : tensor<f32[]>\n%10 = Neg (%8) : tensor<f32[]>")
    with pytest.raises(VerificationError) as caught:
        verify(module)
    assert [found.code for found in caught.value.diagnostics] == ["E1102", "E4001"]


class TestModulesWithoutText:
    def test_findings_name_their_operation(self) -> None:
        operations = [
            CoreOperation.create(0, "Input", (), {"name": "x"}, F32),
            CoreOperation.create(5, "Add", (0, 3), {}, F32),
        ]
        undefined, output = check(Module.flat(operations, [5, 8]))
        assert undefined.notes == ("in %5 = Add (%0, %3)",)
        assert (output.code, output.location) == ("E4003", None)

    def test_unknown_profile(self) -> None:
        (found,) = check(Module(Module.flat([], []).functions, "core-v7"))
        assert found.code == "E4105"
        assert "core-v1" in (found.help or "")

    def test_blocks_and_functions_are_refused(self) -> None:
        (function,) = Module.flat([], []).functions
        parameterised = Block((), Return(()), (Parameter(0, F32),))
        for blocks in ((*function.blocks, *function.blocks), (parameterised,)):
            changed = type(function)("main", blocks)
            assert [found.code for found in check(Module(Functions([changed])))] == ["E4103"]
        assert [found.code for found in check(Module(Functions([function, function])))] == ["E4103"]

    @pytest.mark.parametrize("type_", [TupleType((F32,)), TensorType(DType.F32, (SymbolicDim("B"),))])
    def test_types_outside_the_profile(self, type_: TensorType | TupleType) -> None:
        operations = [
            CoreOperation.create(0, "Input", (), {"name": "x"}, F32),
            CoreOperation.create(1, "Neg", (0,), {}, type_),
            CoreOperation.create(2, "Neg", (1,), {}, F32),
        ]
        assert [found.code for found in check(Module.flat(operations, [2]))] == ["E2001"]

    @pytest.mark.parametrize(
        "axes", [(True,), (False,), (0, True), (1.0,), ("1",), 1, (2**63,), (-(2**63) - 1,)]
    )
    def test_attributes_of_kinds_that_only_look_right(self, axes: Any) -> None:
        operations = [
            CoreOperation.create(0, "Input", (), {"name": "x"}, TensorType(DType.F32, (2, 3))),
            CoreOperation.create(1, "Sum", (0,), {"axes": axes, "keepdims": False}, F32),
        ]
        (found,) = check(Module.flat(operations, [1]))
        assert found.code == "E1103"
        assert "axes" in found.message

    def test_a_number_is_no_truth_value(self) -> None:
        operations = [
            CoreOperation.create(0, "Input", (), {"name": "x"}, TensorType(DType.F32, (2, 3))),
            CoreOperation.create(1, "Sum", (0,), {"axes": (), "keepdims": 0}, F32),
        ]
        assert [found.code for found in check(Module.flat(operations, [1]))] == ["E1103"]

    def test_literal_of_another_dtype(self) -> None:
        literal = TensorLiteral.of([1.0], DType.F64)
        attributes: dict[str, AttributeValue] = {"value": literal, "dtype": DType.F32, "shape": (1,)}
        operation = CoreOperation.create(0, "ConstTensor", (), attributes, TensorType(DType.F32, (1,)))
        assert [found.code for found in check(Module.flat([operation], [0]))] == ["E4005"]


_OPCODES = [*registry.by_opcode(), "Div", "Frob"]
_NAMES = sorted({a.name for record in registry.all_ops() for a in record.attributes} | {"odd"})
_TYPES = st.builds(
    TensorType,
    st.sampled_from([DType.F32, DType.F32, DType.SI32, DType.I1, DType.F16]),
    st.lists(st.sampled_from([0, 1, 2, 2, -1, SymbolicDim("B")]), max_size=3).map(tuple),
) | st.just(TupleType(()))
_SOUND_TYPES = st.builds(
    TensorType,
    st.sampled_from([DType.F32, DType.F32, DType.SI32, DType.SI64, DType.I1]),
    st.lists(st.sampled_from([1, 2, 3, 2**31]), max_size=4).map(tuple),
)
_LISTS = st.lists(st.sampled_from([-3, -1, 0, 1, 2, 2**63 - 1, -(2**63), 2**70]), max_size=4).map(tuple)
_VALUES: st.SearchStrategy[AttributeValue] = _LISTS | st.sampled_from(
    [
        True,
        0,
        1,
        "x",
        "Less",
        1.5,
        DType.F32,
        TensorLiteral.of(1.0, DType.F32),
        TensorLiteral.of([[1, 2]], DType.SI32),
        Padding(PaddingMode.SAME),
        Padding(PaddingMode.CUSTOM, ((-1, 2), (3,))),
        Padding(PaddingMode.CUSTOM, ((1, 2), (3, 2**62))),
    ]
)


@st.composite
def operations(draw: st.DrawFn) -> CoreOperation:
    """Draw an operation that is often nearly right: its record's attributes, and a few operands."""
    opcode = draw(st.sampled_from(_OPCODES))
    record = registry.lookup(opcode)
    names = [a.name for a in record.attributes] if record else []
    attributes: dict[str, AttributeValue] = {name: draw(_VALUES) for name in names if draw(st.integers(0, 9))}
    if not draw(st.integers(0, 5)):
        attributes[draw(st.sampled_from(_NAMES))] = draw(_VALUES)
    count = len(record.operands) if record and draw(st.integers(0, 5)) else draw(st.integers(0, 3))
    operands = [draw(st.integers(-6, 4)) for _ in range(count)]
    return CoreOperation.create(draw(st.integers(0, 4)), opcode, operands, attributes, draw(_TYPES))


@st.composite
def bodies(draw: st.DrawFn) -> list[CoreOperation]:
    """Draw operations over six sound inputs with ids from -6, and over each other's values."""
    inputs = [
        CoreOperation.create(value, "Input", (), {"name": f"x{value}"}, draw(_SOUND_TYPES))
        for value in range(-6, 0)
    ]
    return inputs + draw(st.lists(operations(), max_size=8))


@given(bodies(), st.lists(st.integers(-6, 4), max_size=2))
def test_any_module_is_judged(body: list[CoreOperation], outputs: list[int]) -> None:
    module = Module.flat(body, outputs)
    first = check(module)
    assert check(module) == first
    assert all(found.message and found.code for found in first)


def test_ten_thousand_operations() -> None:
    lines = ["%0 = Input {name=x} : tensor<f32[4, 4]>"]
    lines += [f"%{i} = Add (%{i - 1}, %0) : tensor<f32[4, 4]>" for i in range(1, 10_000)]
    module = parse("\n".join([*lines, "outputs: %9999"]))
    assert check(module) == []
