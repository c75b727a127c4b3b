"""What type rules say of Core IR, in the words of the surface language."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Any

import pytest

from mind_mlir import DType, TensorType
from mind_mlir.builders.builder import Builder
from mind_mlir.diagnostics import Diagnostic, VerificationError
from mind_mlir.diagnostics.checks import IndexCheck
from mind_mlir.diagnostics.render import render
from mind_mlir.languages.mind.elaboration.types import spell, spell_dtype
from mind_mlir.languages.mind.elaboration.wording import SurfaceSpelling, reworded, spelling
from mind_mlir.ops import registry

if TYPE_CHECKING:
    from mind_mlir.ops.opdef import OpDef

F, N, P = DType.F32, DType.SI64, DType.I1
TYPES = [*(TensorType(F, shape) for shape in ((), (2, 3), (4,))), TensorType(N, (2, 3)), TensorType(P, (3,))]
#: What nobody who writes `.mind` has to know.
FOREIGN = re.compile(r"tensor<|%\w|\boperand \d|\battribute|\blhs\b|\brhs\b|\bi1\b|\bCore IR\b")


def findings_of(opcode: str, *operands: TensorType, **attributes: Any) -> list[Diagnostic]:
    builder = Builder(profile="core-functions")
    values = [builder.parameter(type_) for type_ in operands]
    with pytest.raises(VerificationError) as caught:
        builder.emit(opcode, *values, **attributes)
    return list(caught.value.diagnostics)


def test_an_operator_has_sides() -> None:
    found = reworded(findings_of("Mul", TYPES[1], TYPES[3]), SurfaceSpelling.operator("Mul", "*"))
    assert render(found) == (
        "error[E2004]: Dtype mismatch: '*' of f32 and i64\n"
        " = note: left operand is Tensor<f32, [2, 3]>\n"
        " = note: right operand is Tensor<i64, [2, 3]>\n"
        " = help: convert one of them by cast with dtype=f32; there is no implicit promotion\n"
        "\n1 error\n"
    )
    assert found[0].context["operation"] == "*"


def test_a_function_has_named_arguments() -> None:
    written = SurfaceSpelling("Reshape", "reshape", ("x",), {"new_shape": "shape"})
    (found,) = reworded(findings_of("Reshape", TYPES[0]), written)
    assert found.message == "reshape needs argument 'shape'"
    (found,) = reworded(findings_of("Exp", TYPES[3]), SurfaceSpelling("Exp", "exp", ("x",)))
    assert found.message == "exp does not take i64 as its input"
    assert found.notes[0] == "x has type Tensor<i64, [2, 3]>"


def test_an_index_at_run_time_has_no_number_of_a_value() -> None:
    (found,) = reworded([IndexCheck("Gather", "%3", 0, (4,)).finding(7)])
    assert found.message == "gather: index 7 is out of bounds for axis 0 with extent 4"


def test_operations_are_spelled_as_programs_do() -> None:
    assert [spelling(opcode) for opcode in ("Add", "MatMul", "ExpandDims", "Conv2d", "ArgMax", "Log1p")] == [
        "+",
        "matmul",
        "expand_dims",
        "conv2d",
        "argmax",
        "log1p",
    ]
    assert spell(TensorType(P, (2,))) == "Tensor<bool, [2]>"
    assert spell(TensorType(F)) == spell_dtype(F) == "f32"


@pytest.mark.parametrize("record", registry.all_ops(), ids=lambda record: record.opcode)
def test_no_word_of_the_ir_is_left(record: OpDef) -> None:
    """Wrong operands of every operation, with the attributes of its first example."""
    attributes: dict[str, Any] = dict(record.examples[0].attributes) if record.examples else {}
    for count in (0, 1, 2, 3):
        for operands in itertools.islice(itertools.product(TYPES, repeat=count), 30):
            builder = Builder(profile="core-functions")
            values = [builder.parameter(type_) for type_ in operands]
            try:
                builder.emit_all(record.opcode, *values, **attributes)
            except VerificationError as error:
                for found in reworded(error.diagnostics):
                    text = "\n".join([found.message, *found.notes, found.help or ""])
                    assert not FOREIGN.search(text), text
