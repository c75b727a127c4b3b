"""What the tables of the targets say of each operation and dtype is what conversion does, both ways."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from itertools import groupby

import pytest

from mind_mlir import parse
from mind_mlir.builders.builder import Builder
from mind_mlir.conversion import (
    ConversionTarget,
    LegalityTable,
    OperationRule,
    check_program_legality,
    convert,
    list_conversion_targets,
)
from mind_mlir.diagnostics import InternalError, UnsupportedError, VerificationError
from mind_mlir.ir.module import Function, Functions, Module
from mind_mlir.ir.profiles import PTIR
from mind_mlir.ir.types import MAX_RANK, DType
from mind_mlir.languages.ptir.to_module import to_module
from mind_mlir.ops.dtype_support import YES, support, uses
from mind_mlir.ops.registry import all_ops

TARGETS = [pytest.param(each, id=each.name) for each in list_conversion_targets()]
NARROW = [
    pytest.param(each, id=each.name)
    for each in list_conversion_targets()
    if each.legality.max_rank < MAX_RANK
]


@cache
def functions() -> dict[tuple[str, DType], Function]:
    """Return a function for each operation and dtype that has a use: its first one."""
    found: dict[tuple[str, DType], Function] = {}
    for record in all_ops():
        for dtype in DType:
            for types, attributes in uses(record, dtype):
                builder = Builder(profile=PTIR.name)
                operands = [builder.parameter(type_, f"x{place}") for place, type_ in enumerate(types)]
                with suppress(VerificationError):  # an example that broadcasts
                    results = builder.emit_all(record.opcode, *operands, **attributes)
                    found[record.opcode, dtype] = builder.function(f"{record.opcode}_{dtype.name}", results)
                    break
    return found


def module(*chosen: Function) -> Module:
    return Module(Functions(chosen), PTIR.name)


def programs() -> list[Module]:
    """Return the uses of the operations that run regions and functions."""
    return [parse(program.text) for record in all_ops() for program in record.programs]


def test_there_is_a_use_of_every_pair() -> None:
    expected = {
        (record.opcode, dtype)
        for record in all_ops()
        for dtype in DType
        if record.examples and record.in_dialect and support(record, dtype)[0] == YES
    }
    assert functions().keys() == expected


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_legal_converts_and_what_is_not_is_refused(target: ConversionTarget) -> None:
    """To `linalg` and `llvm` goes one dtype of each operation: tests/ops compiles and runs every pair."""
    found = {pair: check_program_legality(module(each), target) for pair, each in functions().items()}
    legal = [pair for pair, findings in found.items() if not findings]
    if target.name in ("linalg", "llvm"):
        legal = [next(pairs) for _, pairs in groupby(legal, key=lambda pair: pair[0])]
    if target.legality.functions:
        # A program has annotations, or collectives of its own.
        for chosen in (
            [each for each in legal if each[0] != "Shard"],
            [each for each in legal if each[0] == "Shard"],
        ):
            result = convert(module(*(functions()[pair] for pair in chosen)), target)
            assert len(result.entry_points) == len(chosen)
    else:
        for pair in legal:
            convert(module(functions()[pair]), target)
    for pair, findings in found.items():
        if findings:
            with pytest.raises(UnsupportedError) as raised:
                convert(module(functions()[pair]), target)
            assert raised.value.diagnostics == findings
            assert {each.code for each in findings} <= {"E7201", "E7202"}


@pytest.mark.parametrize("target", TARGETS)
def test_what_runs_regions_and_functions(target: ConversionTarget) -> None:
    for each in programs():
        findings = check_program_legality(each, target)
        if not findings:
            assert convert(each, target).entry_points
            continue
        with pytest.raises(UnsupportedError) as raised:
            convert(each, target)
        assert raised.value.diagnostics == findings


@pytest.mark.parametrize("target", TARGETS)
def test_a_table_refuses_no_pair_that_the_conversion_takes(target: ConversionTarget) -> None:
    """The target's own function, which nobody keeps from what is illegal, fails on it."""
    for each in functions().values():
        if check_program_legality(module(each), target):
            with pytest.raises(UnsupportedError):
                target.convert(module(each))


FLAT = """
%0 = Input {name="x"} : tensor<f32[2]>
%1 = Mul (%0, %0) : tensor<f32[2]>
outputs: %1, %0
"""
BLOCKS = """
func @memcpy(%x: tensor<f32[2]>, %p: tensor<i1[]>) -> (tensor<f32[2]>) {
^entry:
  cond_br %p, ^one, ^two(%x)
^one:
  %y = Call (%x) {callee="f.g"} : tensor<f32[2]>
  br ^two(%y)
^two(%r: tensor<f32[2]>):
  return %r
}
internal func @f.g(%x: tensor<f32[2]>) -> (tensor<f32[2]>) {
^entry:
  %y = Neg (%x) : tensor<f32[2]>
  return %y
}
func @f-g(%x: tensor<f32[2]>) -> (tensor<f32[2]>) {
^entry:
  %y = Call (%x) {callee="f.g"} : tensor<f32[2]>
  return %y
}
"""
TUPLES = """
func @main(%t: tuple<tensor<f32, 0x2>, tensor<f32, 3>>, %x: tensor<f32, 0x2>) -> tensor<f32, 0x2> {
  %e = mul %x, %x -> tensor<f32, 0x2>
  return %e
}
"""
WIDE = """
func @main(%x: tensor<f32, {0}>) -> tensor<f32, {0}> {{
  %e = mul %x, %x -> tensor<f32, {0}>
  return %e
}}
"""


@pytest.mark.parametrize("target", TARGETS)
def test_forms_are_legal_where_they_convert(target: ConversionTarget) -> None:
    widest = "x".join(["1"] * target.legality.max_rank)
    for text in (FLAT, BLOCKS.replace("f-g", "f_g"), TUPLES, WIDE.format(widest)):
        program = parse(text)
        findings = check_program_legality(program, target)
        if not findings:
            result = convert(program, target)
            assert all(f"{entry.symbol}(" in str(result.text) for entry in result.entry_points)
            continue
        with pytest.raises(UnsupportedError) as raised:
            convert(program, target)
        assert raised.value.diagnostics == findings


@pytest.mark.parametrize("target", NARROW)
def test_no_more_dimensions_than_a_target_has(target: ConversionTarget) -> None:
    wide = parse(WIDE.format("x".join(["1"] * (target.legality.max_rank + 1))))
    assert {each.context["form"] for each in check_program_legality(wide, target)} == {"max_rank"}
    with pytest.raises((UnsupportedError, InternalError)):
        target.convert(to_module(wide))


def test_a_pair_is_legal_where_the_table_says_so() -> None:
    """A target that takes half of everything: each finding is about what the table leaves out."""
    dtypes = (DType.F32, DType.SI32, DType.SI64, DType.I1)
    rules = {record.opcode: OperationRule() for record in all_ops()[::2]}
    table = LegalityTable(operations=rules, dtypes=dtypes)
    half = ConversionTarget(name="half", summary="half", suffix=".txt", legality=table, convert=str)
    for (opcode, _), each in functions().items():
        if opcode == "CustomCall":
            continue  # what it is made of decides
        codes = {finding.code for finding in check_program_legality(module(each), half)}
        given = [parameter.tensor_type.dtype for parameter in each.parameters]
        made = [type_.dtype for operation in each.entry.operations for type_ in operation.result_types]
        assert ("E7201" in codes) == (opcode not in rules)
        # The dtypes of what the table leaves out are no matter, but for those of parameters.
        assert ("E7202" in codes) == (not {*given, *(made if opcode in rules else ())} <= {*dtypes})
