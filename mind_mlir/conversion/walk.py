"""`walk_program`: every part of a program or module, in order (ptir-v0.4.md, Conversion infrastructure)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.module import MODULE, Block, CoreOperation, Module
from mind_mlir.ir.module import Function as CoreFunction
from mind_mlir.ir.types import TensorType, TupleType, ValueType
from mind_mlir.languages.programs.kinds import as_module
from mind_mlir.languages.ptir.fields import record_of, spelled
from mind_mlir.languages.ptir.program import Function, Instruction, Program, Region, ValueRef
from mind_mlir.languages.ptir.values import all_leaves
from mind_mlir.ops.registry import by_opcode
from mind_mlir.support import argument_checks
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.diagnostics import Location
    from mind_mlir.languages.programs.kinds import AnyProgram
    from mind_mlir.ops.opdef import OpDef

#: What is visited: of a module the first three, of a program the others.
Part: TypeAlias = CoreFunction | Block | CoreOperation | Function | Region | Instruction


class VisitKind(Enum):
    """The kinds of parts of a program that a walk visits."""

    FUNCTION = "function"
    BLOCK = "block"  # of a function of a module
    REGION = "region"
    OPERATION = "operation"


@dataclass(frozen=True, slots=True)
class Visit:
    """One part of a program.

    Attributes:
        kind: What it is.
        part: The part itself.
        path: Where it is from the top down, such as ``@main / %4 = While / ^body / %7 = Add``.
        depth: How many parts it stands in: 0 for a function.
        place: Its number among those of its kind that stand beside it, from 0 on.
        record: Of an operation; None where there is none of its name.
        operands: The types of the tensors that an operation reads, tuples taken apart; those that are known.
        results: The types of the tensors that an operation defines; those of the parameters of any other.
        location: Where it is written, as far as that is known.
    """

    kind: VisitKind
    part: Part
    path: str
    depth: int
    place: int
    record: OpDef | None = None
    operands: tuple[TensorType, ...] = ()
    results: tuple[TensorType, ...] = ()
    location: Location | None = field(default=None, compare=False)

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Return the attributes of an operation of a module, the fields of one of a program; else nothing."""
        if isinstance(self.part, CoreOperation):
            return self.part.attributes
        return self.part.operation.fields if isinstance(self.part, Instruction) else FrozenDict()

    @property
    def name(self) -> str:
        """Return what messages call it: the last part of its path."""
        return self.path.rpartition(" / ")[2]


@public
def walk_program(program: AnyProgram) -> Iterator[Visit]:
    """Yield every function, block, operation and region of ``program``, each before what stands in it.

    The order is that of the text. A region of a PTIR program, which several operations may run, is visited
    within the first that does, and those that none runs come last. The program need not be well-formed.

    Raises:
        TypeError: ``program`` is neither a `Module` nor a `Program`.
    """
    program, _, _ = as_module(program)
    if isinstance(program, Program):
        return _program(program)
    return _module(argument_checks.expect(program, Module, "program", f"{MODULE}, or a Program"))


# Modules


def _module(module: Module) -> Iterator[Visit]:
    for place, function in enumerate(module.functions):
        path = f"@{function.name}"
        types = all_leaves(each.type for block in function.blocks[:1] for each in block.parameters)
        yield Visit(VisitKind.FUNCTION, function, path, 0, place, None, (), types, function.location)
        yield from _blocks(function, path)


def _blocks(function: CoreFunction, path: str) -> Iterator[Visit]:
    """Yield the blocks of a function with all that is in them; a stack in the place of nested calls."""
    types: dict[int, ValueType] = {}
    for block in function.blocks:  # a block may read what one further down defines
        _note(types, block)
    flat = len(function.blocks) == 1
    stack = [_Inside(VisitKind.BLOCK, iter(enumerate(function.blocks)), path, 1)]
    while stack:
        level = stack[-1]
        found = next(level.parts, None)
        if found is None:
            stack.pop()
            continue
        place, part = found
        if isinstance(part, Block):
            below = level.path if flat and level.depth == 1 else f"{level.path} / ^{part.label}"
            if level.kind is VisitKind.REGION:
                _note(types, part)
            held = all_leaves(each.type for each in part.parameters)
            yield Visit(level.kind, part, below, level.depth, place, None, (), held, part.location)
            inside = iter(enumerate(part.operations))
            stack.append(_Inside(VisitKind.OPERATION, inside, below, level.depth + 1))
            continue
        below = f"{level.path} / {part.label} = {part.opcode}"
        yield Visit(
            VisitKind.OPERATION,
            part,
            below,
            level.depth,
            place,
            by_opcode().get(part.opcode),
            all_leaves(types[value] for value in part.operands if value in types),
            all_leaves(result.type for result in part.results),
            part.opcode_location,
        )
        if part.regions:
            stack.append(_Inside(VisitKind.REGION, iter(enumerate(part.regions)), below, level.depth + 1))


@dataclass(slots=True)
class _Inside:
    """The state of a walk within one part: the parts in it that are left to be visited."""

    kind: VisitKind
    parts: Iterator[tuple[int, Any]]
    path: str
    depth: int


def _note(types: dict[int, ValueType], block: Block) -> None:
    types.update((each.value_id, each.type) for each in block.parameters)
    for operation in block.operations:
        types.update((result.value_id, result.type) for result in operation.results)


# Programs


def _program(program: Program) -> Iterator[Visit]:
    regions: dict[int, Region] = {}
    for region in program.regions:
        regions.setdefault(region.id, region)
    left = dict(regions)
    for place, function in enumerate(program.functions):
        path, types = f"@{function.name}", all_leaves(function.parameters)
        yield Visit(VisitKind.FUNCTION, function, path, 0, place, None, (), types, function.location)
        known = dict(zip(function.parameter_ids, function.parameters, strict=False))
        yield from _body(function.body, path, known, function.names, left)
    for place, region in enumerate(program.regions):
        if region.id in left:
            del left[region.id]
            path, types = f"region {region.id}", all_leaves(region.parameters)
            yield Visit(VisitKind.REGION, region, path, 0, place, None, (), types, region.location)
            yield from _body(region.body, path, dict(enumerate(region.parameters)), region.names, left)


@dataclass(slots=True)
class _WalkState:
    """The state of a walk within a function or region: the instructions that are left to be visited."""

    instructions: Iterator[tuple[int, Instruction]]
    path: str
    types: dict[int, ValueType]
    names: Mapping[int, str]
    depth: int
    regions: list[Region] = field(default_factory=list)
    inside: str = ""
    visited: int = 0


def _body(
    body: Sequence[Instruction],
    path: str,
    types: dict[int, ValueType],
    names: Mapping[int, str],
    left: dict[int, Region],
) -> Iterator[Visit]:
    stack = [_WalkState(iter(enumerate(body)), path, types, names, 1)]
    while stack:
        level = stack[-1]
        if level.visited < len(level.regions):
            region = level.regions[level.visited]
            below, held = f"{level.inside} / region {region.id}", all_leaves(region.parameters)
            depth = level.depth + 1
            yield Visit(
                VisitKind.REGION, region, below, depth, level.visited, None, (), held, region.location
            )
            level.visited += 1
            inside = iter(enumerate(region.body))
            types = dict(enumerate(region.parameters))
            stack.append(_WalkState(inside, below, types, region.names, depth + 1))
            continue
        found = next(level.instructions, None)
        if found is None:
            stack.pop()
            continue
        place, instruction = found
        level.types.setdefault(instruction.id, instruction.output)
        operation = instruction.operation
        called = level.names.get(instruction.id, str(instruction.id))
        level.inside = f"{level.path} / %{called} = {spelled(operation)}"
        record = record_of(operation)
        operands = _read(instruction, level.types)
        results = all_leaves([instruction.output])
        location = instruction.location
        yield Visit(
            VisitKind.OPERATION,
            instruction,
            level.inside,
            level.depth,
            place,
            record,
            operands,
            results,
            location,
        )
        level.regions, level.visited = _taken(instruction, record, left), 0


def _read(instruction: Instruction, types: Mapping[int, ValueType]) -> tuple[TensorType, ...]:
    """Return the types of the tensors that an instruction reads, as far as they are known."""
    found: list[ValueType] = []
    for operand in instruction.operands:
        if isinstance(operand, TensorLiteral):
            found.append(operand.type)
            continue
        type_ = types.get(operand.value if isinstance(operand, ValueRef) else operand.tuple)
        if type_ is None or isinstance(operand, ValueRef):
            found += [] if type_ is None else [type_]
        elif isinstance(type_, TupleType) and 0 <= operand.index < len(type_.elements):
            found.append(type_.elements[operand.index])
    return all_leaves(found)


def _taken(instruction: Instruction, record: OpDef | None, left: dict[int, Region]) -> list[Region]:
    """Return the regions that an instruction runs and none before it; they are not left any more."""
    if record is None or record.contract is None or not record.regions:
        return []
    fields = instruction.operation.fields
    named = [fields.get(each.name) for each in record.contract.fields]
    return [left.pop(number) for number in named if type(number) is int and number in left]
