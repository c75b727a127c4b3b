"""Writes programs as the display text (ptir-formats.md, "Display text")."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.types import TensorType, ValueType
from mind_mlir.languages.ptir.display_data import spell_literal, spell_spec
from mind_mlir.languages.ptir.program import Function, Instruction, Program, Region, TupleElement, ValueRef
from mind_mlir.languages.ptir.regions import region_results
from mind_mlir.languages.ptir.schema import DTYPE_NAMES, known_form
from mind_mlir.languages.ptir.text import spelled_dims, spelled_name


def display_pieces(program: Program) -> Iterator[str]:
    """Yield the text of a program in pieces.

    Raises:
        ValueError: No record has one of its operations, or hints are no JSON.
    """
    yield f"program {spelled_name(program.entry)} (spec_version = {program.spec_version}) {{\n"
    for function in program.functions:
        yield from _function(function)
    for region in program.regions:
        yield from _region(region)
    yield "}\n"


def _function(function: Function) -> Iterator[str]:
    yield f"  func {spelled_name(function.name)} {{\n    params:\n"
    for id_, type_ in zip(function.parameter_ids, function.parameters, strict=True):
        yield f"      %{id_} : {spelled_type(type_)}\n"
    yield from _body(function.body)
    yield "    results:\n"
    for id_, type_ in zip(function.result_ids, function.results, strict=True):
        yield f"      %{id_} : {spelled_type(type_)}\n"
    if function.hints is not None:
        yield f"    hints: {json.dumps(function.hints, allow_nan=False)}\n"
    yield "  }\n"


def _region(region: Region) -> Iterator[str]:
    yield f"  region ^r{region.id} {{\n    params:\n"
    for index, type_ in enumerate(region.parameters):
        yield f"      %{index} : {spelled_type(type_)}\n"
    yield from _body(region.body)
    yield "    results:\n"
    values = region_results(region.body, region.results)
    for index, type_ in enumerate(region.results):
        value = f"{spelled_value(values[index])} " if values else ""
        yield f"      {value}: {spelled_type(type_)}\n"
    yield "  }\n"


def _body(body: Sequence[Instruction]) -> Iterator[str]:
    yield "    body:\n"
    for instruction in body:
        yield f"      %{instruction.id} = {instruction.operation.name}"
        yield from spell_spec(known_form(instruction.operation), instruction.operation.fields)
        for index, operand in enumerate(instruction.operands):
            yield ", " if index else "("
            if isinstance(operand, TensorLiteral):
                yield from spell_literal(operand)
            else:
                yield spelled_value(operand)
        yield f"{')' if instruction.operands else ''} -> {spelled_type(instruction.output)}\n"


def spelled_value(operand: ValueRef | TupleElement) -> str:
    """Return ``%4`` or ``%4[1]``."""
    return f"%{operand.tuple}[{operand.index}]" if isinstance(operand, TupleElement) else f"%{operand.value}"


def spelled_type(type_: ValueType) -> str:
    """Return ``tensor<F32 x 2x3>`` or ``tuple<...>``."""
    if isinstance(type_, TensorType):
        return f"tensor<{DTYPE_NAMES[type_.dtype]} x {spelled_dims(type_.shape) or '[]'}>"
    return f"tuple<{', '.join(map(spelled_type, type_.elements))}>"
