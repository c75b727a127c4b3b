"""Damaged program texts: valid ones with characters and tokens deleted, inserted and replaced."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from mind_mlir import Builder, DType, TensorType, print_module
from mind_mlir.ir.profiles import CORE_V1
from mind_mlir.ops.registry import all_ops

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hypothesis.strategies import DrawFn

    from mind_mlir import Module
    from mind_mlir.ops.opdef import OpDef, OperandDef

_TOKEN = re.compile(r'"[^"\n]*"|[%@^!#]?[\w.]+|->|\s+|.', re.S)

#: What is put in: fragments of the grammar, numbers at the edges, and characters that mean nothing.
CORE_FRAGMENTS = (
    *(record.opcode for record in all_ops()),
    *"()[]{}<>,:=%-+.\"'#/\\@;*?!&|~`^$\n\r\t\0\x7f\u2028\ufeff\u00e9\U0001f600",
    *(
        "%0",
        "%1",
        "%-1",
        "%007",
        "%x",
        "%99999999999999999999",
        "outputs:",
        "outputs: %0",
        "BinOp",
        "func @main(",
    ),
    *(
        "0",
        "-1",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775809",
        "1e999",
        "1e-999",
        "0x1F",
    ),
    *("1.5", "-0.0", "nan", "inf", "-inf", "true", "false", "1_000", "1.2.3", "0b2", "1e", "--1", "1" * 5000),
    *(
        "f32",
        "i1",
        "i64",
        "si4",
        "bf16",
        "cf64",
        "?B",
        "tensor<f32[2]>",
        "Tensor<f32, [2]>",
        "tensor<f32[-1]>",
    ),
    *("func @f(", "internal ", "-> (", "^head", "^body:", "br ", "cond_br ", "return ", "yield ", "call @f"),
    *("{\n", "\n}\n", "func @f() -> () {\n^entry:\n", "%a, %b", "tensor.sum_all", ": (tensor<f32[2]>) {\n"),
    *(
        "axes=",
        "axes=[]",
        "value=",
        "dtype=f32",
        "shape=[2]",
        "padding=Same",
        "Custom([[1, 1], [1, 1]])",
        "0:2",
    ),
    *(
        "[" * 300,
        "]" * 300,
        "(" * 300,
        "[[],[]]",
        "[1, [2]]",
        "/*",
        "*/",
        "//",
        "# comment\n",
        '"\\q"',
        '"\\u{110000}"',
    ),
)

GRAMMAR_FORM = """# spelled by hand
%x = Input() {name: "x"} : Tensor<f32, [2, 3]>
%1 = BinOp(Add, %x, %x) : Tensor<f32, [2, 3]>
%2 = Sum(%1, [1], false) : Tensor<f32, [2]>
%3 = Reshape(%1, [3, -1]) : Tensor<f32, [3, 2]>
%4 = Slice(%1, [0:2, 0:3:2]) : Tensor<f32, [2, 2]>
%5 = ConstF32(1.0) : Tensor<f32, []>
%6 = ConstTensor([[1, -2.5e3], [nan, inf]], f64, [2, 2]) : Tensor<f64, [2, 2]>
%7 = %5
outputs: %2, %3, %4, %6, %7
"""
FUNCTION_FORM = """# with blocks, calls and regions
func @main(%x: tensor<f32[2]>, %n {name="a b"}: tensor<i64[]>) -> (tensor<f32[2]>, tensor<i64[]>) {
^entry:
  %zero = ConstI64 {value=0} : tensor<i64[]>
  br ^head(%x, %zero)
^head(%y: tensor<f32[2]>, %i: tensor<i64[]>):
  %more = Compare (%i, %n) {op=Less} : tensor<i1[]>
  cond_br %more, ^body, ^done
^body:
  %y2, %z = call @twice (%y) : (tensor<f32[2]>, tensor<f32[]>)
  %i2 = tensor.add(%i, %one) : tensor<[], i64>
  br ^head(%y2, %i2)
^done:
  %one = ConstI64(1) : tensor<i64>
  return %y, %i
}
internal func @twice(%0: tensor<f32[2]>) -> (tensor<f32[2]>, tensor<f32[]>) {
^entry:
  %b = %a
  %a = tensor.sum_all(%0) : tensor<f32[]>
  %p = Compare (%a, %b) {op=Less} : tensor<i1[]>
  %c = Cond (%p) : tensor<f32[2]> {
  ^then:
    yield %0
  ^else:
    %d = Add (%0, %0) : tensor<f32[2]>
    yield %d
  }
  return %c, %a
}
"""


@cache
def example_modules() -> tuple[Module, ...]:
    """Return a module for every operation of Core v1, with all its examples, in f32 where it takes that."""
    known = [record for record in all_ops() if record.in_dialect and record.opcode not in CORE_V1.refused]
    return tuple(module for module in map(_examples, known) if module.outputs)


@cache
def core_texts() -> tuple[str, ...]:
    """Return the texts of `example_modules`, of functions in records, and one of each other form."""
    programs = [program.text for record in all_ops() for program in record.programs]
    return (*map(print_module, example_modules()), GRAMMAR_FORM, *programs, *[FUNCTION_FORM] * 5)


def _examples(record: OpDef) -> Module:
    b = Builder()
    outputs = []
    for number, example in enumerate(record.examples):
        types = [parse_type(spelled, record.operand(index)) for index, spelled in enumerate(example.operands)]
        if any(0 in type_.shape for type_ in types):
            continue  # no input may be empty
        used = {type_.dtype for type_ in types}
        used |= {value for value in example.attributes.values() if isinstance(value, DType)}
        if not used <= {*CORE_V1.dtypes}:
            continue
        operands = [b.input(f"x{number}_{index}", type_) for index, type_ in enumerate(types)]
        attributes: Mapping[str, Any] = example.attributes
        outputs.append(b.emit(record.opcode, *operands, **attributes))
    return b.build(outputs)


def parse_type(spelled: str, operand: OperandDef) -> TensorType:
    """Return the type an example spells, with f32 for its ``T``, or else what the operand takes first."""
    name, _, extents = spelled.removesuffix("]").partition("[")
    any_ = DType.F32 if DType.F32 in operand.dtypes else operand.dtypes[0]
    dtype = any_ if name == "T" else DType.from_name(name)
    assert dtype is not None
    return TensorType(dtype, tuple(int(extent) for extent in extents.split(",") if extent.strip()))


@st.composite
def mutated(draw: DrawFn, texts: Sequence[str], fragments: Sequence[str]) -> str:
    """Generate texts that are one to four edits away from one of ``texts``."""
    text = draw(st.sampled_from(texts))
    for _ in range(draw(st.integers(1, 4))):
        edit = draw(st.sampled_from(["replace", "delete", "insert", "duplicate", "swap", "character", "cut"]))
        text = _edit(draw, edit, text, fragments)
    return text


def _edit(draw: DrawFn, edit: str, text: str, fragments: Sequence[str]) -> str:
    if edit in ("character", "cut") or not text:
        at = draw(st.integers(0, len(text)))
        if edit == "cut":
            return text[:at]
        inserted = draw(st.characters() | st.sampled_from(fragments))
        return text[:at] + inserted + text[at + draw(st.integers(0, 1)) :]
    tokens = _TOKEN.findall(text)
    at, other = (draw(st.integers(0, len(tokens) - 1)) for _ in range(2))
    match edit:
        case "replace":
            tokens[at] = draw(st.sampled_from([*fragments, tokens[other]]))
        case "delete":
            del tokens[min(at, other) : max(at, other) + 1 if abs(at - other) < 8 else min(at, other) + 1]
        case "insert":
            tokens.insert(at, draw(st.sampled_from([*fragments, tokens[other]])))
        case "duplicate":
            tokens[at:at] = tokens[at : at + 12]
        case "swap":
            tokens[at], tokens[other] = tokens[other], tokens[at]
    return "".join(tokens)
