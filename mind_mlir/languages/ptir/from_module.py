"""Modules as programs: the other way round of `mind_mlir.languages.ptir.to_module`.

    function            its block, whose values are numbered anew
    call                what the function does: programs have no calls
    several results     an instruction of tuple type, whose elements are read
    region              one of the program, which sees only its parameters: what it reads of what is defined
                        around it is an argument of Cond, and carried by While and Scan
    implicit broadcast  BroadcastTo
    foreign operation   other ones that say the same, or a custom call of it (`mind_mlir.ops.custom_library`)
    constant            a Constant instruction
    seed of a function  left out: random operations of programs have none

What a region yields are its last instructions, and what a function returns are values: where a module has
others there, a Reshape to the same shape stands in for each.

Before: a verified module of any profile. After: a program that says the same, or a finding for each operation
that PTIR has no words for. A program that is made a module is the same program again but for that, and from
then on both ways lead to the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from mind_mlir.diagnostics import Diagnostic, UnsupportedError
from mind_mlir.diagnostics.findings import Findings
from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.entry import default_entry
from mind_mlir.ir.module import Block, CoreOperation, Functions, Module
from mind_mlir.ir.profiles import PTIR
from mind_mlir.ir.regions import captured_values
from mind_mlir.ir.types import TensorType, TupleType
from mind_mlir.languages.ptir.program import (
    Function,
    Instruction,
    Operand,
    Operation,
    Program,
    Region,
    TupleElement,
    ValueRef,
)
from mind_mlir.languages.ptir.regions import MAX_INSTRUCTIONS
from mind_mlir.languages.ptir.seeding import seed_of
from mind_mlir.ops.contexts import TypeContext
from mind_mlir.ops.contract import Contract, FieldKind
from mind_mlir.ops.custom_library import call_of
from mind_mlir.ops.infer import complete_attributes, infer_types
from mind_mlir.ops.registry import by_opcode
from mind_mlir.passes.structure import structure, structure_function
from mind_mlir.passes.structure.expansion import expand
from mind_mlir.passes.structure.inline import inline_calls, inlined_size
from mind_mlir.passes.verify import verify
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.interrupts import deliver
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.module import Function as CoreFunction
    from mind_mlir.ir.terminators import ValueId
    from mind_mlir.ops.opdef import OpDef

_WORD = re.compile(r"[^\W\d]\w*\Z")


def from_module(module: Module) -> Program:
    """Return a program that says what ``module`` does.

    Every module of Core IR can be said, but for one whose calls are too many to be written out. Of other
    profiles, random operations are none that draw otherwise than those of programs do.

    Raises:
        VerificationError: ``module`` breaks a rule of its profile.
        UnsupportedError: E7001, PTIR has no words for an operation; there is a finding for each. E7004,
            branches and loops nest too deeply.
        TypeError: ``module`` is no `Module`.
    """
    verify(module)
    functions = structure(module).functions if module.is_flat else _without_calls(module)
    writer = _ProgramMaker()
    said = (expand(each, PTIR.name, attrgetter("in_contract")) for each in functions if each.public)
    written = [writer.function(function) for function in said]
    if writer.findings.total:
        raise UnsupportedError(writer.findings.in_source_order())
    entry = default_entry(module)
    name = entry.name if entry is not None else written[0].name
    return Program(tuple(written), tuple(writer.regions), name)


def _without_calls(module: Module) -> Sequence[CoreFunction]:
    """Return the functions of a module in structured form, with what they call in the place of calls."""
    structured = replace(module, functions=Functions(map(structure_function, module.functions)))
    size = inlined_size(structured)
    if size > MAX_INSTRUCTIONS:
        message = f"PTIR has no calls, and without them the program would have {size:,} operations"
        raise UnsupportedError(
            Diagnostic("E7001", message, help=f"the limit is {MAX_INSTRUCTIONS:,}: call functions less often")
        )
    return inline_calls(structured, every=True).functions


@dataclass(slots=True)
class _ProgramMaker:
    """One program that is being made."""

    findings: Findings = field(default_factory=Findings)
    regions: list[Region] = field(default_factory=list)
    streams: int = 0
    seed: ValueId | None = None

    def function(self, function: CoreFunction) -> Function:
        """Return a function in structured form as one of the program."""
        self.streams, self.seed = 0, seed_of(function)
        kept = [p for p in function.parameters if p.value_id != self.seed]
        body = _ProgramBody(self)
        for parameter in kept:
            body.parameter(parameter.value_id, parameter.tensor_type)
        body.run(function.entry)
        result_ids = tuple([body.as_value(value) for value in function.entry.terminator.operands])
        names = {place: p.name for place, p in enumerate(kept) if p.name and _WORD.match(p.name)}
        return Function(
            function.name,
            tuple(p.tensor_type for p in kept),
            tuple(range(len(kept))),
            tuple(body.instructions),
            function.result_types or (),
            result_ids,
            names=FrozenDict(names),
        )

    def region(
        self, block: Block, parameters: Sequence[tuple[ValueId, TensorType]], yields: Sequence[ValueId]
    ) -> int:
        """Add a region that does what a block does, and return its id.

        Args:
            block: The block.
            parameters: The values that it is given, those from around it included.
            yields: What it yields.
        """
        number = len(self.regions)
        types = tuple(type_ for _, type_ in parameters)
        self.regions.append(Region(number, types, (), ()))
        body = _ProgramBody(self)
        for value, type_ in parameters:
            body.parameter(value, type_)
        body.run(block)
        results = body.end_with(yields)
        self.regions[number] = Region(number, types, tuple(body.instructions), results)
        return number

    def cannot_say(self, operation: CoreOperation, why: str) -> None:
        """Report an operation that PTIR has no words for."""
        message = f"PTIR cannot say {operation.opcode} {operation.label}"
        facts = FrozenDict({"operation": operation.opcode, "value": operation.value_id})
        self.findings.add(Diagnostic("E7001", message, operation.opcode_location, (), why, context=facts))


@dataclass(slots=True)
class _ProgramBody:
    """The instructions of one function or region."""

    writer: _ProgramMaker
    instructions: list[Instruction] = field(default_factory=list)
    values: dict[ValueId, Operand] = field(default_factory=dict)
    types: dict[ValueId, TensorType] = field(default_factory=dict)
    next_id: int = 0

    def parameter(self, value: ValueId, type_: TensorType) -> None:
        """Let a value of the module be the next parameter."""
        self.values[value], self.types[value] = ValueRef(self.next_id), type_
        self.next_id += 1

    def run(self, block: Block) -> None:
        """Append the operations of a block."""
        for operation in block.operations:
            deliver()
            self._operation(operation)

    def as_value(self, value: ValueId) -> int:
        """Return the id of a value, be it an element of a tuple in the module's sense."""
        operand = self.values[value]
        return operand.value if isinstance(operand, ValueRef) else self._same(value)

    def end_with(self, yields: Sequence[ValueId]) -> tuple[TensorType, ...]:
        """Let these values be what the last instructions give; return their types."""
        found = [self.values[value] for value in yields]
        last = self.instructions[-1] if self.instructions else None
        first = self.next_id - len(yields)
        are_last = len(self.instructions) >= len(yields) and found == [
            ValueRef(first + place) for place in range(len(yields))
        ]
        if last is not None and isinstance(last.output, TupleType):
            elements = [TupleElement(last.id, place) for place in range(len(last.output.elements))]
            are_last = are_last or found == elements
        if not are_last:
            for value in yields:
                self._same(value)
        return tuple(self.types[value] for value in yields)

    def _same(self, value: ValueId) -> int:
        type_ = self.types[value]
        operation = Operation("Reshape", None, FrozenDict({"new_shape": type_.shape}))
        return self._emit(operation, [self.values[value]], type_)

    def _emit(self, operation: Operation, operands: Sequence[Operand], output: Any) -> int:
        number = self.next_id
        self.next_id += 1
        self.instructions.append(Instruction(number, operation, tuple(operands), output))
        return number

    def _say(
        self,
        operation: CoreOperation,
        said: Operation,
        operands: Sequence[Operand],
        results: Sequence[TensorType],
        kept: Sequence[int] | None = None,
    ) -> None:
        """Append ``said`` for an operation; its results are those at the places ``kept``, by default all."""
        output = results[0] if len(results) == 1 else TupleType(tuple(results))
        self._define(operation, self._emit(said, operands, output), kept, is_tuple=len(results) > 1)

    def _define(
        self, operation: CoreOperation, number: int, kept: Sequence[int] | None = None, *, is_tuple: bool
    ) -> None:
        places = range(len(operation.result_ids)) if kept is None else kept
        for value, type_, place in zip(operation.result_ids, operation.result_types, places, strict=True):
            self.values[value] = TupleElement(number, place) if is_tuple else ValueRef(number)
            self.types[value] = type_

    # Operations

    def _operation(self, operation: CoreOperation) -> None:
        record = by_opcode()[operation.opcode]
        literal = operation.attributes.get("value")
        if not record.operands and isinstance(literal, TensorLiteral):
            constant = Operation("Constant", None, FrozenDict({"value": literal}))
            self._define(operation, self._emit(constant, (), literal.type), is_tuple=False)
            return
        if record.contract is None:
            self._as_call(operation, record)
        elif operation.regions:
            self._with_regions(operation, record, record.contract)
        else:
            self._plain(operation, record, record.contract)

    def _as_call(self, operation: CoreOperation, record: OpDef) -> None:
        """Say what the contract does not have with a custom call of the operation itself."""
        attributes = complete_attributes(record, operation.attributes)
        fields = call_of(record, attributes)
        if fields is None:
            self.writer.cannot_say(operation, "the contract has no such operation")
        shaped = None if fields is None else self._broadcast(operation, record, attributes)
        if fields is None or shaped is None:
            self._give_up(operation)
            return
        self._say(operation, Operation("CustomCall", None, fields), shaped[0], operation.result_types)

    def _give_up(self, operation: CoreOperation) -> None:
        """Let the results be anything, for what follows; there is no program."""
        self._define(operation, -1, is_tuple=False)

    def _plain(self, operation: CoreOperation, record: OpDef, contract: Contract) -> None:
        read = list(operation.operands)
        if contract.seeded and not self._draws(operation, read):
            self._give_up(operation)
            return
        attributes = complete_attributes(record, operation.attributes)
        types = [self.types[value] for value in operation.operands if value in self.types]
        operands = [self.values[value] for value in read]
        if not contract.seeded:
            shaped = self._broadcast(operation, record, attributes)
            if shaped is None:
                self._give_up(operation)
                return
            operands, types = shaped
        try:
            fields = fields_of(contract, attributes, types)
        except UnsupportedError as error:
            self.writer.cannot_say(operation, error.diagnostics[0].help or error.diagnostics[0].message)
            self._give_up(operation)
            return
        said = Operation(contract.name, contract.variant, fields)
        self._say(operation, said, operands, operation.result_types)

    def _draws(self, operation: CoreOperation, read: list[ValueId]) -> bool:
        """Return whether a random operation draws as one of a program would; leave the seed out."""
        writer, seed = self.writer, read.pop()
        as_written = seed == writer.seed and operation.attributes.get("stream") == writer.streams
        writer.streams += 1
        if not as_written:
            why = "operations of programs draw from the seed of their function, each from a stream of its own"
            writer.cannot_say(operation, why)
        return as_written

    def _broadcast(
        self, operation: CoreOperation, record: OpDef, attributes: Mapping[str, Any]
    ) -> tuple[list[Operand], list[TensorType]] | None:
        """Return the operands, stretched to the result's shape where only that makes them fit."""
        operands = [self.values[value] for value in operation.operands]
        types = [self.types[value] for value in operation.operands if value in self.types]
        wrong = _wrong(operation, record, attributes, types)
        if wrong is None:
            return operands, types
        shape = operation.tensor_type.shape
        stretched = [type_.with_shape(shape) for type_ in types]
        if wrong.code not in ("E3002", "E3003") or _wrong(operation, record, attributes, stretched):
            self.writer.cannot_say(operation, f"{wrong.message} [{wrong.code}]")
            return None
        for place, type_ in enumerate(types):
            if type_.shape != shape:
                stretch = Operation("BroadcastTo", None, FrozenDict({"result_shape": shape}))
                operands[place] = ValueRef(self._emit(stretch, [operands[place]], stretched[place]))
        return operands, stretched

    # Regions

    def _with_regions(self, operation: CoreOperation, record: OpDef, contract: Contract) -> None:
        around = [value for value in captured_values(operation) if value != self.writer.seed]
        captured = [(value, self.types[value]) for value in around]
        attributes: dict[str, Any] = dict(complete_attributes(record, operation.attributes))
        carries: int | None = attributes.get("carry_count")  # None where all values are
        split = len(operation.operands) if carries is None else carries
        is_loop = record.is_variadic
        given = operation.operands
        operands = (*given[:split], *around, *given[split:])
        if carries is not None:
            attributes["carry_count"] = carries + len(around)
        numbers: dict[str, int] = {}
        for definition, block in zip(record.regions, operation.regions, strict=True):
            own = [(p.value_id, p.tensor_type) for p in block.parameters]
            yielded = list(block.terminator.operands)
            if is_loop:  # behind what is carried, in front of slices and outputs
                at = len(own) if carries is None else carries
                own[at:at] = captured
                last = len(yielded) if carries is None else carries
                yielded[last:last] = around
            else:
                own += captured
            numbers[definition.name] = self.writer.region(block, own, yielded)
        results = list(operation.result_types)
        kept = list(range(len(results)))
        if is_loop:
            at = len(results) if carries is None else carries
            results[at:at] = [type_ for _, type_ in captured]
            kept = [place if place < at else place + len(captured) for place in kept]
        fields = {
            each.name: numbers[each.attribute or each.name]
            if each.kind is FieldKind.REGION
            else attributes[each.attribute or each.name]
            for each in contract.fields
        }
        said = Operation(contract.name, contract.variant, FrozenDict(fields))
        self._say(operation, said, [self.values[value] for value in operands], results, kept)


def fields_of(
    contract: Contract, attributes: Mapping[str, Any], operands: Sequence[TensorType]
) -> Mapping[str, Any]:
    """Return the fields of an operation without regions.

    Args:
        contract: How programs write it.
        attributes: The attributes of the record, complete.
        operands: The types of its operands.

    Raises:
        UnsupportedError: E7001, the contract has no words for these.
    """
    if contract.write is not None:
        return FrozenDict(contract.write(attributes, operands))
    return FrozenDict({each.name: attributes[each.attribute or each.name] for each in contract.fields})


def _wrong(
    operation: CoreOperation, record: OpDef, attributes: Mapping[str, Any], types: Sequence[TensorType]
) -> Diagnostic | None:
    """Return what the profile of programs has against an operation on operands of ``types``."""
    declared = operation.result_types
    context = TypeContext(
        operation.opcode,
        operation.value_id,
        tuple(types),
        attributes,
        declared[0],
        declared_results=declared if len(declared) > 1 else None,
        profile=PTIR,
    )
    infer_types(record, context)
    return context.diagnostics[0] if context.diagnostics else None
