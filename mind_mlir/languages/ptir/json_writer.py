"""Writes programs as JSON (ptir-formats.md, "JSON"): one instruction a line, literals piece by piece."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.languages.ptir import spelling
from mind_mlir.languages.ptir.literals import spell_bytes
from mind_mlir.languages.ptir.schema import known_form

if TYPE_CHECKING:
    from mind_mlir.ir.types import ValueType
    from mind_mlir.languages.ptir.program import Function, Instruction, Operation, Program, Region


def json_pieces(program: Program) -> Iterator[str]:
    """Yield the text of a program in pieces.

    Raises:
        ValueError: No record has one of its operations, or hints are no JSON.
    """
    yield f'{{\n  "spec_version": {_text(program.spec_version)},\n  "entry": {_text(program.entry)},\n'
    yield '  "functions": '
    yield from _lines(map(_function, program.functions), 2)
    yield ',\n  "regions": '
    yield from _lines(map(_region, program.regions), 2)
    yield "\n}\n"


def _function(function: Function) -> Iterator[str]:
    yield f'{{"name": {_text(function.name)},\n'
    yield f'     "parameters": {_types(function.parameters)},\n'
    yield f'     "parameter_ids": {_text(list(function.parameter_ids))},\n'
    yield f'     "results": {_types(function.results)},\n     "body": '
    yield from _lines(map(_instruction, function.body), 5)
    if function.hints is not None:
        yield f',\n     "hints": {_text(function.hints)}'
    yield f',\n     "result_ids": {_text(list(function.result_ids))}}}'


def _region(region: Region) -> Iterator[str]:
    yield f'{{"id": {region.id},\n     "parameters": {_types(region.parameters)},\n     "body": '
    yield from _lines(map(_instruction, region.body), 5)
    yield f',\n     "results": {_types(region.results)}}}'


def instruction_data(instruction: Instruction) -> Any:
    """Return the JSON of an instruction, as data."""
    return json.loads("".join(_instruction(instruction)))


def _instruction(instruction: Instruction) -> Iterator[str]:
    yield f'{{"id": {instruction.id}, "op": '
    yield from _operation(instruction.operation)
    yield ', "operands": ['
    for index, operand in enumerate(instruction.operands):
        if index:
            yield ", "
        if isinstance(operand, TensorLiteral):
            yield '{"Literal": '
            yield from _literal(operand)
            yield "}"
        else:
            yield _text(spelling.reference(operand))
    yield f'], "output": {_text(spelling.value_type(instruction.output))}}}'


def _operation(operation: Operation) -> Iterator[str]:
    form = known_form(operation)
    if form.variant is not None:
        yield _text({form.name: form.variant})
    elif form.literal is not None:
        yield f'{{"{form.name}": '
        yield from _literal(operation.fields[form.literal.name])
        yield "}"
    elif form.fields:
        yield _text({form.name: spelling.fields(operation.fields, form.fields)})
    else:
        yield _text(form.name)


def _literal(literal: TensorLiteral) -> Iterator[str]:
    yield f'{{"spec": {_text(spelling.tensor_spec(literal.type))}, "bytes": ['
    yield from spell_bytes(literal.data, ",")
    yield "]}"


def _types(types: Iterable[ValueType]) -> str:
    return _text(list(map(spelling.value_type, types)))


def _text(data: Any) -> str:
    return json.dumps(data, allow_nan=False)


def _lines(items: Iterable[Iterator[str]], indent: int) -> Iterator[str]:
    """Yield a list of ``items``, each on a line of its own."""
    empty = True
    for item in items:
        yield f"{'[' if empty else ','}\n{' ' * (indent + 2)}"
        yield from item
        empty = False
    yield "[]" if empty else f"\n{' ' * indent}]"
