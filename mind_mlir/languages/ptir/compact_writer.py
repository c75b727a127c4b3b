"""Writes programs as the compact text (ptir-formats.md, "Compact text"), and numbers its values.

A value that is spelled as a number has that one. The names of a function, or of a region, take the smallest
numbers that are not spelled there, in the order of their definitions; a region's parameters are the first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.types import TensorType, ValueType
from mind_mlir.languages.ptir.compact_clauses import spell_field
from mind_mlir.languages.ptir.compact_literals import spell_dense
from mind_mlir.languages.ptir.program import TupleElement
from mind_mlir.languages.ptir.regions import region_results
from mind_mlir.languages.ptir.schema import known_form, snake
from mind_mlir.languages.ptir.text import spelled_dims, spelled_name

if TYPE_CHECKING:
    from mind_mlir.languages.ptir.program import Function, Instruction, Operation, Program, Region, ValueRef


def compact_pieces(program: Program) -> Iterator[str]:
    """Yield the text of a program in pieces.

    Raises:
        ValueError: No record has one of its operations, or hints are no JSON.
    """
    yield f"spec_version {json.dumps(program.spec_version)}\n"
    if program.entry != default_entry([function.name for function in program.functions]):
        yield f"entry {spelled_name(program.entry)}\n"
    for function in program.functions:
        yield from _function(function)
    for region in program.regions:
        yield from _region(region)


def default_entry(names: Sequence[str]) -> str | None:
    """Return the function that is the entry where a text does not say: ``main``, or the first one."""
    return "main" if "main" in names else names[0] if names else None


def _function(function: Function) -> Iterator[str]:
    names = function_names(function, (*used_by(function.body), *function.result_ids))
    parameters = zip(function.parameter_ids, function.parameters, strict=True)
    yield f"func {spelled_name(function.name)}({_parameters(parameters, names)})"
    yield f" -> {_results(function.results)} {{\n"
    if function.hints is not None:
        yield f"  hints {json.dumps(function.hints, allow_nan=False)}\n"
    yield from _body(function.body, names)
    returned = ", ".join(_value(id_, names) for id_ in function.result_ids)
    yield f"  return{' ' if returned else ''}{returned}\n}}\n"


def _region(region: Region) -> Iterator[str]:
    names = region_names(region, used_by(region.body))
    yield f"region ^{region.id}({_parameters(enumerate(region.parameters), names)})"
    yield f" -> {_results(region.results)} {{\n"
    yield from _body(region.body, names)
    if given := region_results(region.body, region.results):
        yield f"  yield {', '.join(_operand(value, names) for value in given)}\n"
    yield "}\n"


def _body(body: Iterable[Instruction], names: Mapping[int, str]) -> Iterator[str]:
    for instruction in body:
        yield f"  {_value(instruction.id, names)} = "
        yield from _operation(instruction, names)
        yield f" -> {compact_type(instruction.output)}\n"


def _operation(instruction: Instruction, names: Mapping[int, str]) -> Iterator[str]:
    operation = instruction.operation
    form = known_form(operation)
    yield compact_name(operation)
    if form.literal is not None:
        yield " "
        yield from spell_dense(operation.fields[form.literal.name])
    for index, operand in enumerate(instruction.operands):
        yield ", " if index or form.literal is not None else " "
        if isinstance(operand, TensorLiteral):
            yield from spell_dense(operand)
        else:
            yield _operand(operand, names)
    for field in form.fields:
        value = operation.fields[field.name]
        if value is not None and field not in (form.literal, form.kind):
            yield f" {field.short or field.name}[{spell_field(field, value)}]"


def compact_name(operation: Operation) -> str:
    """Return what the compact text calls an operation: ``exp``, ``dot_general``, ``reduce_max``."""
    form = known_form(operation)
    base = snake(form.variant or form.name)
    return base if form.kind is None else f"{base}_{snake(operation.fields[form.kind.name])}"


def _parameters(parameters: Iterable[tuple[int, ValueType]], names: Mapping[int, str]) -> str:
    return ", ".join(f"{_value(id_, names)}: {compact_type(type_)}" for id_, type_ in parameters)


def _results(types: Sequence[ValueType]) -> str:
    listed = ", ".join(map(compact_type, types))
    return listed if len(types) == 1 else f"({listed})"


def _operand(operand: ValueRef | TupleElement, names: Mapping[int, str]) -> str:
    if isinstance(operand, TupleElement):
        return f"{_value(operand.tuple, names)}[{operand.index}]"
    return _value(operand.value, names)


def _value(id_: int, names: Mapping[int, str]) -> str:
    return f"%{names.get(id_, id_)}"


def compact_type(type_: ValueType) -> str:
    """Return ``tensor<f32, 4x8>`` or ``tuple<...>``."""
    if isinstance(type_, TensorType):
        shape = f", {spelled_dims(type_.shape)}" if type_.shape else ""
        return f"tensor<{type_.dtype.value}{shape}>"
    return f"tuple<{', '.join(map(compact_type, type_.elements))}>"


_NAME = re.compile(r"[A-Za-z_][\w.]*\Z", re.A)


def numbers_of(defined: Iterable[str], used: Iterable[str], fixed: Sequence[str] = ()) -> dict[str, int]:
    """Return the number of each value, which are texts without the ``%``.

    Args:
        defined: The values in the order of their definitions.
        used: All values in the order in which they stand.
        fixed: Those whose numbers are their positions.
    """
    numbers = {name: index for index, name in enumerate(fixed) if not name.isdigit()}
    mentioned = list(dict.fromkeys((*defined, *used)))
    spelled = {int(value) for value in mentioned if value.isdigit()} | set(range(len(fixed)))
    free = (number for number in count() if number not in spelled)
    for value in mentioned:
        if value.isdigit():
            numbers[value] = int(value)
        elif value not in numbers:
            numbers[value] = next(free)
    return numbers


def function_names(function: Function, used: Iterable[int]) -> Mapping[int, str]:
    """Return the names that the text of a function can have: none where it would not read back the same."""
    defined = [*function.parameter_ids, *(i.id for i in function.body)]
    return _kept(function.names, defined, used, 0)


def region_names(region: Region, used: Iterable[int]) -> Mapping[int, str]:
    """Return the names that the text of a region can have."""
    defined = [*range(len(region.parameters)), *(i.id for i in region.body)]
    return _kept(region.names, defined, used, len(region.parameters))


def used_by(body: Iterable[Instruction]) -> Iterator[int]:
    """Yield the values that instructions read."""
    for instruction in body:
        for operand in instruction.operands:
            number = getattr(operand, "value", getattr(operand, "tuple", None))
            if isinstance(number, int):
                yield number


def _kept(names: Mapping[int, str], defined: list[int], used: Iterable[int], fixed: int) -> Mapping[int, str]:
    known = set(defined)
    usable = {id_: name for id_, name in names.items() if id_ in known and _NAME.match(name)}
    if not usable or len(set(usable.values())) < len(usable):
        return {}
    texts = [usable.get(id_, str(id_)) for id_ in (*defined, *used)]
    numbers = numbers_of(texts, (), [usable.get(id_, str(id_)) for id_ in range(fixed)])
    return usable if all(numbers[name] == id_ for id_, name in usable.items()) else {}
