"""The `mind` dialect: its definition, what it rejects, how it holds attributes, what `emit` leaves in it."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from mind_mlir import Builder, DType, TensorType, canonicalize, parse
from mind_mlir.ir.attributes import Padding, PaddingMode, TensorLiteral
from mind_mlir.ir.types import DTypeKind
from mind_mlir.lowering import dialect
from mind_mlir.lowering.dialect import definition
from mind_mlir.lowering.dialect.emit import emit
from mind_mlir.lowering.pipeline import Lowering
from mind_mlir.mlir import codec
from mind_mlir.mlir.bindings import MLIRError, func, ir, irdl, new_context
from mind_mlir.mlir.types import element_type, from_mlir_element, from_mlir_tensor, tensor_type
from mind_mlir.ops.attribute_kinds import KINDS, AttrKind
from mind_mlir.ops.registry import all_ops, by_mnemonic, by_opcode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mind_mlir import Module
    from mind_mlir.mlir.bindings import Context
    from mind_mlir.ops.opdef import OpDef

OPERATIONS = [record for record in all_ops() if record.in_dialect]


@pytest.fixture
def context() -> Iterator[Context]:
    """A context with the verified dialect, entered."""
    created = new_context()
    dialect.load(created)
    with created, ir.Location.unknown():
        yield created


# The definition


def test_the_definition_is_deterministic() -> None:
    script = "from mind_mlir.lowering import dialect; print(dialect.irdl_text(), end='')"
    child = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert child.stdout == dialect.irdl_text()


def test_the_definition_is_valid_irdl() -> None:
    with new_context(("irdl",)), ir.Location.unknown():
        module = ir.Module.parse(dialect.irdl_text())
        assert module.operation.verify()
        irdl.load_dialects(module)


def test_every_operation_is_defined(context: Context) -> None:
    assert all(context.is_registered_operation(f"mind.{record.mnemonic}") for record in OPERATIONS)
    assert not context.is_registered_operation("mind.input")
    assert not context.is_registered_operation("mind.nonsense")


def test_the_dialect_can_be_loaded_into_many_contexts() -> None:
    for _ in range(3):
        for verify in (True, False):
            dialect.load(new_context(), verify=verify)


# Verification


def operation(
    name: str, operands: list[str], result: str, attributes: str = "", parameters: list[str] | None = None
) -> str:
    """Return a function that applies one operation to its arguments."""
    types = parameters or operands
    arguments = ", ".join(f"%a{i}: {type_}" for i, type_ in enumerate(types))
    values = ", ".join(f"%a{i}" for i in range(len(operands)))
    return (
        f"func.func @f({arguments}) -> {result} {{\n"
        f'  %0 = "mind.{name}"({values}) {{{attributes}}} : ({", ".join(operands)}) -> {result}\n'
        f"  return %0 : {result}\n}}\n"
    )


def test_a_valid_operation_is_accepted(context: Context) -> None:
    text = operation("add", ["tensor<2x3xf32>", "tensor<3xf32>"], "tensor<2x3xf32>")
    assert ir.Module.parse(text).operation.verify()


A, B = "tensor<2x3xf32>", "tensor<3x2xf32>"
SUM = "axes = array<i64: 1>, keepdims = false"


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        (operation("add", [A, B], A), "E3001", "Broadcasting failed"),
        (operation("add", [A, "tensor<3xf64>"], A), "E2004", "Dtype mismatch"),
        (operation("add", [A], A), "E2007", "takes 2 operands, found 1"),
        (operation("log", ["tensor<2xsi32>"], "tensor<2xsi32>"), "E2005", "does not take i32"),
        (operation("add", [A, A], "tensor<2x4xf32>"), "E2001", "but tensor<f32[2, 4]> is declared"),
        (operation("add", [A, A], "tensor<2x3xf64>"), "E2001", "but tensor<f64[2, 3]> is declared"),
        (operation("matmul", [A, A], A), "E3003", "contracts dimension 1"),
        (operation("matmul", ["tensor<3xf32>", B], A), "E3002", "rank 2 or more"),
        (operation("sum", [A], "tensor<f32>", "axes = array<i64: 2>, keepdims = false"), "E3004", "axis 2"),
        (
            operation("sum", [A], "tensor<2xf32>", "axes = array<i64: 1, 1>, keepdims = false"),
            "E3005",
            "twice",
        ),
        (operation("sum", [A], "tensor<2xf32>", "axes = 1 : i64, keepdims = false"), "E1103", "list of int"),
        (
            operation("sum", [A], "tensor<2xf32>", "axes = array<i32: 1>, keepdims = false"),
            "E1103",
            "list of int",
        ),
        (operation("sum", [A], "tensor<2xf32>", "axes = array<i64: 1>, keepdims = 1 : i64"), "E1103", "bool"),
        (operation("sum", [A], "tensor<2xf32>", "axes = array<i64: 1>"), "", "keepdims"),
        (
            operation("reshape", [A], "tensor<5xf32>", "new_shape = array<i64: 5>"),
            "E3007",
            "lement count mismatch",
        ),
        (operation("transpose", [A], B, "permutation = array<i64: 0, 0>"), "E3008", "not a permutation"),
        (operation("squeeze", [A], "tensor<3xf32>", "axes = array<i64: 0>"), "E3009", "extent is 2"),
        (operation("index", [A], "tensor<f32>", "indices = array<i64: 1, 0, 0>"), "E4006", "at most 2"),
        (operation("gather", [A, A], A), "E4011", "does not take f32"),
        (operation("compare", [A, A], "tensor<2x3xi1>", 'op = "Smaller"'), "E1103", "Less"),
        (operation("add", ["tensor<?xf32>"] * 2, "tensor<?xf32>"), "E4004", "static shape"),
        (operation("add", ["tensor<*xf32>"] * 2, "tensor<*xf32>"), "E4004", "static shape"),
        (operation("add", ["tensor<2xf80>"] * 2, "tensor<2xf80>"), "E4004", "known dtype"),
        (operation("add", ["tensor<2xi32>"] * 2, "tensor<2xi32>"), "E4004", "known dtype"),
        (operation("log", ["tensor<2xui32>"], "tensor<2xui32>"), "E2005", "ui32"),
        (operation("add", ["memref<2xf32>"] * 2, "memref<2xf32>"), "E4004", "tensors"),
        (operation("nonsense", [A], A), "", "unregistered operation 'mind.nonsense'"),
        (
            operation("const_f32", [], "tensor<f32>", "value = dense<1.0> : tensor<f64>"),
            "E4005",
            "not a f32 scalar",
        ),
        (
            operation(
                "const_tensor", [], A, f"value = dense<0.0> : {B}, dtype = f32, shape = array<i64: 2, 3>"
            ),
            "E3010",
            "the literal has shape [3, 2]",
        ),
        (
            operation(
                "const_tensor", [], A, f"value = dense<0.0> : {A}, dtype = i32, shape = array<i64: 2, 3>"
            ),
            "E1103",
            "is not a dtype",
        ),
        (
            operation(
                "conv2d",
                ["tensor<1x4x4x1xf32>", "tensor<1x1x1x1xf32>"],
                "tensor<1x4x4x1xf32>",
                'strides = array<i64: 1, 1>, padding = "Nearly"',
            ),
            "E1103",
            "Nearly",
        ),
        (
            operation(
                "conv2d",
                ["tensor<1x4x4x1xf32>", "tensor<1x1x1x1xf32>"],
                "tensor<1x4x4x1xf32>",
                "strides = array<i64: 1, 1>, padding = array<i64: 0, 0>",
            ),
            "E1103",
            "is not a padding",
        ),
    ],
)
def test_bad_operations_are_rejected(context: Context, text: str, code: str, words: str) -> None:
    with pytest.raises(MLIRError) as caught:
        ir.Module.parse(text)
    message = str(caught.value)
    assert words in message
    assert f"[{code}]" in message or not code


def test_the_error_is_located(context: Context) -> None:
    with pytest.raises(MLIRError) as caught:
        ir.Module.parse("\n\n  " + operation("add", [A, B], A))
    assert '"-":4:' in str(caught.value)


def test_all_findings_of_an_operation_are_reported() -> None:
    created = new_context()
    dialect.load(created, verify=False)
    attributes = "starts = array<i64: 0, 0>, ends = array<i64: 1, 1>, steps = array<i64: 0, 0>"
    with created:
        module = ir.Module.parse(operation("slice", [A], "tensor<1x1xf32>", attributes))
        found = dialect.verify_operation(
            module.body.operations[0].regions[0].blocks[0].operations[0].operation
        )
    assert [finding[:7] for finding in found] == ["[E4008]", "[E4008]"]


def test_verification_can_be_left_out() -> None:
    created = new_context()
    dialect.load(created, verify=False)
    with created:
        assert ir.Module.parse(operation("add", [A, B], A)).operation.verify()


# Attributes


@pytest.mark.parametrize("record", [pytest.param(record, id=record.opcode) for record in OPERATIONS])
def test_attributes_of_every_example_survive(context: Context, record: OpDef) -> None:
    for example in record.examples:
        held = dialect.encode_attributes(record, example.attributes)
        created = ir.Operation.create(f"mind.{record.mnemonic}", results=[], attributes=held)
        assert dialect.decode_attributes(record, created) == example.attributes


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (AttrKind.BOOL, True),
        (AttrKind.BOOL, False),
        (AttrKind.I64, 0),
        (AttrKind.I64, -(2**63)),
        (AttrKind.I64, 2**63 - 1),
        *((AttrKind.F64, value) for value in (0.0, 1e-5, -0.1, 5e-324, 1.7976931348623157e308, float("inf"))),
        (AttrKind.I64_LIST, ()),
        (AttrKind.I64_LIST, (0, -1, 2**63 - 1, -(2**63))),
        (AttrKind.STRING, ""),
        (AttrKind.STRING, 'quote " backslash \\ line\n NUL \0 \u00e9\U0001f600'),
        (AttrKind.ENUM, "LessEqual"),
        (AttrKind.PADDING, Padding(PaddingMode.VALID)),
        (AttrKind.PADDING, Padding(PaddingMode.SAME)),
        (AttrKind.PADDING, Padding(PaddingMode.CUSTOM, ((0, 1), (2, 3)))),
        *((AttrKind.DTYPE, dtype) for dtype in DType),
    ],
)
def test_attributes_of_every_kind_survive(context: Context, kind: AttrKind, value: Any) -> None:
    held = kind.encode(codec, value)
    assert definition._decode(kind, held) == value
    printed = ir.Attribute.parse(str(held))
    assert definition._decode(kind, printed) == value


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize(
    "text", ["unit", '"Nonsense"', "array<i8: 1>", "array<i64: 1>", "1 : i32", "f32", "[1, 2]"]
)
def test_attributes_of_another_kind_are_refused(context: Context, kind: AttrKind, text: str) -> None:
    held = ir.Attribute.parse(text)
    accepted = {
        '"Nonsense"': (AttrKind.STRING, AttrKind.ENUM),
        "array<i64: 1>": (AttrKind.I64_LIST,),
        "1 : i32": (AttrKind.I64,),
        "f32": (AttrKind.DTYPE,),
    }
    if kind in accepted.get(text, ()):
        definition._decode(kind, held)
        return
    with pytest.raises(ValueError, match=r".+"):
        definition._decode(kind, held)


CORE = [DType.I1, DType.SI32, DType.SI64, DType.F32, DType.F64]


@pytest.mark.parametrize("dtype", [dtype for dtype in DType if dtype.kind is not DTypeKind.COMPLEX])
@pytest.mark.parametrize("shape", [(), (1,), (3,), (8,), (9,), (2, 3, 5), (64,), (0,), (2, 0, 3)])
def test_literals_survive_bit_for_bit(context: Context, dtype: DType, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    size = int(np.prod(shape))
    if dtype is DType.I1:
        data = rng.random(size) < 0.5
    else:  # any bits at all: NaNs with payloads, subnormals, extremes
        data = np.frombuffer(rng.bytes(size * dtype.itemsize), dtype.numpy)
    literal = TensorLiteral.of(data.reshape(shape), dtype)
    held = AttrKind.LITERAL.encode(codec, literal)
    assert from_mlir_tensor(held.type) == literal.type
    assert dialect.decode_literal(held) == literal
    assert dialect.decode_literal(ir.Attribute.parse(str(held))) == literal


@pytest.mark.parametrize("dtype", CORE)
@pytest.mark.parametrize("value", [0, 1, -1, -0.0, np.nan, np.inf])
def test_splats_survive(context: Context, dtype: DType, value: float) -> None:
    if not dtype.is_float and value not in ((0, 1) if dtype is DType.I1 else (0, 1, -1)):
        return
    value = value if dtype.is_float else int(value)
    literal = TensorLiteral.of(np.full((3, 4), value), dtype)
    held = AttrKind.LITERAL.encode(codec, literal)
    assert held.is_splat
    assert dialect.decode_literal(held) == literal


@pytest.mark.parametrize("dtype", list(DType))
def test_types_survive(context: Context, dtype: DType) -> None:
    type_ = TensorType(dtype, (2, 0, 3))
    assert from_mlir_tensor(tensor_type(type_, signed=True)) == type_
    assert from_mlir_element(element_type(dtype, signed=True)) is dtype
    signless = element_type(dtype, signed=False)
    if dtype.kind in (DTypeKind.SIGNED, DTypeKind.UNSIGNED):
        assert str(signless) == f"i{max(dtype.bits, 8)}"
    else:
        assert signless == element_type(dtype, signed=True)


# Emission

TEXT = """\
%3 = Input {name="first input"} : tensor<f32[2, 3]>
%7 = Input {name="w"} : tensor<f32[3]>
  %20 = Add (%3, %7) : tensor<f32[2, 3]>
%21 = Sum (%20) {axes=[1]} : tensor<f32[2]>
outputs: %21, %3, %21
"""


def emitted(module: Module) -> tuple[Any, Any]:
    """Return the emitted module and its function; the module owns the context."""
    created = new_context()
    dialect.load(created)
    result = emit(module, created)
    return result, result.body.operations[0]


def test_the_function_mirrors_the_module() -> None:
    module, function = emitted(parse(TEXT, "net.ir"))
    assert isinstance(function, func.FuncOp)
    assert module.operation.verify()
    assert function.name.value == "main"
    assert str(function.type) == (
        "(tensor<2x3xf32>, tensor<3xf32>) -> (tensor<2xf32>, tensor<2x3xf32>, tensor<2xf32>)"
    )
    names = [attributes["mind.name"].value for attributes in function.arg_attrs]
    assert names == ["first input", "w"]
    assert function.attributes["mind.profile"].value == "core-v1"


def test_every_operation_becomes_one() -> None:
    _, function = emitted(parse(TEXT))
    operations = [op.operation.name for op in function.body.blocks[0].operations]
    assert operations == ["mind.add", "mind.sum", "func.return"]


def test_defaults_are_spelled_out() -> None:
    _, function = emitted(parse(TEXT))
    attributes = function.body.blocks[0].operations[1].attributes
    assert {name: str(attributes[name]) for name in attributes} == {
        "axes": "array<i64: 1>",
        "keepdims": "false",
    }


def test_values_keep_their_names_and_places() -> None:
    _, function = emitted(parse(TEXT, "net.ir"))
    block = function.body.blocks[0]
    locations = [argument.location for argument in block.arguments]
    locations += [op.location for op in list(block.operations)[:2]]
    assert list(map(str, locations)) == [
        'loc("%3"("net.ir":1:1))',
        'loc("%7"("net.ir":2:1))',
        'loc("%20"("net.ir":3:3))',
        'loc("%21"("net.ir":4:1))',
    ]


def test_values_without_a_place_keep_their_names() -> None:
    b = Builder(next_id=5)
    x = b.input("x", TensorType(DType.F32, (2,)))
    _, function = emitted(b.build([b.emit("Exp", x)]))
    operation_ = function.body.blocks[0].operations[0]
    assert re.fullmatch(r'loc\("%6"(\(unknown\))?\)', str(operation_.location))


def test_places_reach_the_llvm_dialect() -> None:
    lowering = Lowering()
    lowering.run(canonicalize(parse(TEXT, "net.ir")))
    assert lowering.mlir is not None
    text = lowering.mlir.operation.get_asm(enable_debug_info=True)
    assert '"net.ir":3:3' in text
    assert '"net.ir":4:1' in text


@pytest.mark.parametrize("signed", [DType.SI32, DType.SI64])
def test_integers_keep_their_sign(signed: DType) -> None:
    b = Builder()
    x = b.input("x", TensorType(signed, (2,)))
    _, function = emitted(b.build([b.emit("Neg", x)]))
    assert str(function.type) == f"(tensor<2xsi{signed.bits}>) -> tensor<2xsi{signed.bits}>"


def test_records_and_dialect_agree_on_names() -> None:
    assert set(by_mnemonic()) == {record.mnemonic for record in by_opcode().values()}
    defined = set(re.findall(r"irdl\.operation @(\w+)", dialect.irdl_text()))
    assert defined == {record.mnemonic for record in OPERATIONS}
