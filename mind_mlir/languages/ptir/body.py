"""The body of one function or region of a program as operations (see `to_module`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from mind_mlir.builders import flow_rules
from mind_mlir.builders.type_rules import finding
from mind_mlir.diagnostics import Location, VerificationError
from mind_mlir.ir.attributes import AttributeValue, TensorLiteral
from mind_mlir.ir.module import Block, CoreOperation, Parameter, Result, Yield
from mind_mlir.ir.source_info import SourceInfo
from mind_mlir.ir.types import TensorType, TupleType, ValueType
from mind_mlir.languages.ptir.fields import (
    FieldError,
    attributes_of,
    record_of,
    regions_of,
    spelled,
    suggestion,
)
from mind_mlir.languages.ptir.program import Function, Instruction, Operand, Region, TupleElement, ValueRef
from mind_mlir.languages.ptir.regions import PtirRegions, region_results
from mind_mlir.languages.ptir.values import LoweredValue, Numbering, all_leaves, leaf_paths, leaves, too_deep
from mind_mlir.support.interrupts import deliver
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.diagnostics.findings import Findings
    from mind_mlir.ir.terminators import ValueId
    from mind_mlir.ops.opdef import OpDef


class _Unusable(Exception):  # noqa: N818 -- ends one instruction after a finding; never reaches a user
    """The instruction cannot be converted, and that has been reported."""


@dataclass(slots=True)
class BodyConversion:
    """Converts one body.

    Attributes:
        where: What messages call it: ``@main`` or ``region 3``.
        numbering: Of its function.
        regions: Of the program.
        findings: Takes what is wrong.
        called: What the program's text calls values.
        parameters: The parameters of the block.
        operations: Its operations so far.
        values: What each value of the program is.
        names: What messages call values of the module.
        seed: The value of the program that is the seed of the function; None in regions.
    """

    where: str
    numbering: Numbering
    regions: PtirRegions
    findings: Findings
    called: Mapping[int, str]
    parameters: list[Parameter] = field(default_factory=list)
    operations: list[CoreOperation] = field(default_factory=list)
    values: dict[int, LoweredValue] = field(default_factory=dict)
    names: dict[ValueId, str] = field(default_factory=dict)
    seed: int | None = None

    def run(self, body: Sequence[Instruction]) -> list[CoreOperation]:
        """Convert instructions, in order, and return all operations."""
        for instruction in body:
            deliver()
            self._instruction(instruction)
            if instruction.id == self.seed:
                self.numbering.seed = self.values[instruction.id].ids[0]
        return self.operations

    def parameter(
        self, value: int, type_: ValueType, labels: Sequence[str], location: Location | None
    ) -> None:
        """Add a parameter of the program: ``labels`` are what callers name its tensors, empty in regions."""
        held = self._define(value, type_, location)
        for place, (number, leaf) in enumerate(zip(held.ids, leaves(type_), strict=True)):
            name = labels[place] if labels else None
            if value == self.seed:
                self.numbering.seed = number
            self.parameters.append(Parameter(number, leaf, location, name, self.names))

    def returned(self, function: Function) -> tuple[ValueId, ...]:
        """Return the tensors that a function returns."""
        found = [self.values.get(value) for value in function.result_ids]
        for index, (value, held) in enumerate(zip(function.result_ids, found, strict=True)):
            if held is None:
                message = f"result {index} of {self.where} is {self._spell(value)}, which is not defined"
                hint = "name a parameter, or the value of an instruction"
                facts: dict[str, Any] = {"output": index, "id": value}
                self.findings.add(finding("E4003", message, function.location, (), hint, **facts))
        if None in found:
            return self._stand_ins(function.results)
        given = [held.type for held in found if held is not None]
        if len(given) == len(function.results) and not any(
            isinstance(type_, TupleType) for type_ in (*given, *function.results)
        ):
            return tuple(held.ids[0] for held in found if held is not None)  # the verifier compares the types
        spell = [self._spell(value) for value in function.result_ids].__getitem__
        where = function.location
        if wrong := list(flow_rules.returned(function.name, function.results, given, spell, lambda _: where)):
            self.findings.extend(wrong)
            return self._stand_ins(function.results)
        return tuple(number for held in found if held is not None for number in held.ids)

    def _stand_ins(self, types: Sequence[ValueType]) -> tuple[ValueId, ...]:
        return tuple([self.numbering.stand_in(leaf) for leaf in all_leaves(types)])

    # Values

    def _spell(self, value: int) -> str:
        return f"%{self.called.get(value, value)}"

    def _define(self, value: int, type_: ValueType, location: Location | None) -> LoweredValue:
        """Return the tensors of a new value of the program, which nothing else may define."""
        if value in self.values:
            message = f"{self._spell(value)} is defined twice in {self.where}"
            facts = {"id": value, "places": ()}
            help_ = "give one of the two another id"
            self.findings.add(finding("E4002", message, location, (), help_, **facts))
        if isinstance(type_, TensorType):
            held = LoweredValue(type_, (self.numbering.fresh(),))
        else:
            held = LoweredValue(type_, tuple([self.numbering.fresh() for _ in leaves(type_)]))
        self.values.setdefault(value, held)  # a second definition does not change what later uses mean
        called = self.called.get(value, str(value))
        for number, path in zip(held.ids, leaf_paths(type_), strict=True):
            if (name := f"{called}{path}") != str(number):
                self.names[number] = name
        return held

    # Instructions

    def _instruction(self, instruction: Instruction) -> None:
        try:
            record, operands = self._parts(instruction)
            operation = self._operation(instruction, record, operands)
        except _Unusable:
            held = LoweredValue(instruction.output, self._stand_ins((instruction.output,)))
            self.values.setdefault(instruction.id, held)
            return
        self.operations.append(operation)

    def _report(
        self, instruction: Instruction, code: str, message: str, help_: str | None = None, /, **facts: Any
    ) -> None:
        """Record a finding about an instruction."""
        notes = []
        if instruction.location is None:
            called = f"{self._spell(instruction.id)} = {spelled(instruction.operation)}"
            notes = [f"at {instruction.path}"] if instruction.path else []
            notes.append(f"in {called} in {self.where}")
        facts = {"operation": instruction.operation.name, "value": instruction.id, **facts}
        self.findings.add(finding(code, message, instruction.location, tuple(notes), help_, **facts))

    def _fail(
        self, instruction: Instruction, code: str, message: str, help_: str, /, **facts: Any
    ) -> _Unusable:
        self._report(instruction, code, message, help_, **facts)
        return _Unusable()

    def _parts(self, instruction: Instruction) -> tuple[OpDef, list[LoweredValue]]:
        """Return the record of an instruction and its operands."""
        operation = instruction.operation
        record = record_of(operation)
        if record is None:
            guess = suggestion(operation)
            message = f"unknown operation '{spelled(operation)[:60]}'{guess}"
            hint = "the operation reference lists all operations, with their names in the contract"
            raise self._fail(instruction, "E1102", message, hint, suggestion=guess)
        if too_deep(instruction.output):
            message = f"tuples nest too deep in the type of {self._spell(instruction.id)}"
            hint = "write the tuple with fewer levels"
            raise self._fail(instruction, "E4301", message, hint, issue="depth")
        if not leaves(instruction.output):
            message = f"{self._spell(instruction.id)} has no results: its type is {instruction.output}"
            raise self._fail(instruction, "E4122", message, "without a result it computes nothing")
        operands = [self._operand(instruction, place) for place in range(len(instruction.operands))]
        found = [operand for operand in operands if operand is not None]
        if len(found) < len(operands):
            raise _Unusable
        return record, found

    def _operand(self, instruction: Instruction, place: int) -> LoweredValue | None:
        """Return an operand, or None after saying why there is none."""
        operand = instruction.operands[place]
        if isinstance(operand, TensorLiteral):
            return self._literal(instruction, place, operand)
        value = operand.value if isinstance(operand, ValueRef) else operand.tuple
        held = self.values.get(value)
        if held is None:
            self._undefined(instruction, value)
            return None
        if isinstance(operand, ValueRef):
            return held
        return self._element(instruction, operand, held)

    def _literal(self, instruction: Instruction, place: int, literal: TensorLiteral) -> LoweredValue:
        number = self.numbering.fresh()
        self.names[number] = f"{self._spell(instruction.id)[1:]} operand {place}"
        type_, source = literal.type, _source(instruction)
        attributes: dict[str, AttributeValue]
        attributes = {"value": literal, "dtype": type_.dtype, "shape": type_.extents}
        constant = CoreOperation(number, "ConstTensor", (), attributes, type_, source, self.names)
        self.operations.append(constant)
        return LoweredValue(type_, (number,))

    def _element(
        self, instruction: Instruction, operand: TupleElement, held: LoweredValue
    ) -> LoweredValue | None:
        called = self._spell(operand.tuple)
        if not isinstance(held.type, TupleType):
            message = f"{called}[{operand.index}] is an element of {called}, which is a {held.type}"
            self._report(instruction, "E4301", message, f"write {called}: it is no tuple", issue="element")
            return None
        count = len(held.type.elements)
        if not 0 <= operand.index < count:
            message = f"{called}[{operand.index}] is out of range: {called} has {count} elements"
            hint = f"elements are counted from 0 to {count - 1}" if count else "the tuple is empty"
            self._report(instruction, "E4301", message, hint, issue="range")
            return None
        return held.element(operand.index)

    def _undefined(self, instruction: Instruction, value: int) -> None:
        message = f"{self._spell(value)} is not defined before {self._spell(instruction.id)} in {self.where}"
        hint = "define the value before it is used; a region sees only its parameters and its own values"
        facts = {"instruction": instruction.id, "operand": value, "definition": None}
        self._report(instruction, "E4001", message, hint, **facts)

    def _operation(
        self, instruction: Instruction, record: OpDef, operands: list[LoweredValue]
    ) -> CoreOperation:
        contract = record.contract
        assert contract is not None, "records of programs have a contract"
        has_regions = bool(record.regions)
        for place, operand in enumerate(operands):
            if isinstance(operand.type, TupleType) and not has_regions:
                called = self._spell_operand(instruction.operands[place])
                message = f"operand {place} of {spelled(instruction.operation)} is {called}, a {operand.type}"
                hint = f"name one of its elements: {called}[0]"
                raise self._fail(instruction, "E4301", message, hint, issue="tuple")
        types = all_leaves([operand.type for operand in operands])
        numbers = tuple([number for operand in operands for number in operand.ids])
        self._check_count(instruction, record, len(types))
        try:
            attributes = attributes_of(contract, instruction.operation, types)
            if contract.seeded:
                assert self.numbering.seed is not None, "functions that draw have a seed"
                numbers = (*numbers, self.numbering.seed)
                attributes = {**attributes, "stream": self.numbering.stream()}
            named = regions_of(contract, instruction.operation) if has_regions else {}
        except FieldError as error:
            raise self._fail(instruction, "E1103", error.message, error.help) from None
        except VerificationError as error:
            for each in error.diagnostics:
                self._report(instruction, each.code, each.message, each.help, **each.context)
            raise _Unusable from None
        # What an operation with regions has beyond the operands of its record are arguments of the regions.
        count = len(record.operands) if has_regions and not record.is_variadic else len(numbers)
        blocks = []
        for definition in record.regions:
            region = self._region(instruction, named[definition.name])
            arguments = (types[count:], numbers[count:]) if not record.is_variadic else None
            blocks.append(self._block(instruction, region, definition.name, arguments))
        held = self._define(instruction.id, instruction.output, instruction.location)
        results = list(leaves(instruction.output))
        return CoreOperation(
            held.ids[0],
            record.opcode,
            numbers[:count],
            attributes,
            results[0],
            _source(instruction),
            self.names,
            others=tuple(map(Result, held.ids[1:], results[1:])),
            regions=tuple(blocks),
        )

    def _check_count(self, instruction: Instruction, record: OpDef, found: int) -> None:
        """See that there are operands enough, or as many as there may be, to look at them."""
        seeded = record.contract is not None and record.contract.seeded
        least = len(record.operands) - record.is_variadic - seeded
        if found == least or (found > least and (record.is_variadic or record.regions)):
            return
        at_least = "at least " if record.is_variadic or record.regions else ""
        called = spelled(instruction.operation)
        message = f"{called} takes {at_least}{least} operand{'s' if least != 1 else ''}, found {found}"
        names = ", ".join(operand.name for operand in record.operands) or "none"
        facts = {"function": called, "expected": least, "found": found}
        raise self._fail(instruction, "E2007", message, f"its operands are: {names}", **facts)

    def _spell_operand(self, operand: Operand) -> str:
        if isinstance(operand, TupleElement):
            return f"{self._spell(operand.tuple)}[{operand.index}]"
        return self._spell(operand.value) if isinstance(operand, ValueRef) else "a literal"

    # Regions

    def _region(self, instruction: Instruction, number: int) -> Region:
        region = self.regions.get(number)
        if region is not None:
            return region
        if number in self.regions.unusable:
            raise _Unusable
        known = ", ".join(map(str, list(self.regions.by_id)[:8])) or "none"
        message = f"{spelled(instruction.operation)} runs region {number}, which the program does not have"
        raise self._fail(instruction, "E4302", message, f"its regions are: {known}", region=number)

    def _block(
        self,
        instruction: Instruction,
        region: Region,
        label: str,
        arguments: tuple[Sequence[TensorType], Sequence[ValueId]] | None,
    ) -> Block:
        """Return a region as a block.

        Args:
            instruction: The instruction that runs it.
            region: The region.
            label: What the operation's record calls it.
            arguments: The tensors that take the place of its parameters; None where it keeps them.
        """
        where = f"region {region.id}"
        body = BodyConversion(where, self.numbering, self.regions, self.findings, region.names)
        body.names = self.names
        if arguments is None:
            for value, type_ in enumerate(region.parameters):
                body.parameter(value, type_, (), region.location)
        else:
            self._substitute(instruction, region, body, *arguments)
        operations = body.run(region.body)
        end = Yield(body.yielded(instruction, region), names=self.names)
        return Block(tuple(operations), end, tuple(body.parameters), label, region.location)

    def _substitute(
        self,
        instruction: Instruction,
        region: Region,
        body: BodyConversion,
        types: Sequence[TensorType],
        numbers: Sequence[ValueId],
    ) -> None:
        """Let arguments be what the parameters of a region mean."""
        expected = all_leaves(region.parameters)
        if len(expected) != len(types):
            message = (
                f"region {region.id} takes {len(expected)} values, but "
                f"{spelled(instruction.operation)} gives it {len(types)}"
            )
            hint = f"the types of its parameters are ({', '.join(map(str, region.parameters))})"
            facts = {"function": body.where, "expected": len(expected), "found": len(types)}
            raise self._fail(instruction, "E2007", message, hint, **facts)
        for index, (wanted, given) in enumerate(zip(expected, types, strict=True)):
            if wanted != given:
                message = f"argument {index} of region {region.id} is a {given}, its parameter a {wanted}"
                hint = f"declare the parameter as {given}, or give a value of type {wanted}"
                facts = {"expected": str(wanted), "found": str(given)}
                raise self._fail(instruction, "E2001", message, hint, **facts)
        rest = iter(numbers)
        for value, type_ in enumerate(region.parameters):
            body.values[value] = LoweredValue(type_, tuple([next(rest) for _ in leaves(type_)]))

    def yielded(self, instruction: Instruction, region: Region) -> tuple[ValueId, ...]:
        """Return the tensors that a region yields: of its last instructions, or of a tuple that is last."""
        wanted, body = region.results, region.body
        named = region_results(body, wanted)
        if named is None:
            message = f"region {region.id} has {len(wanted)} results, but {len(body)} instructions"
            hint = "its results are its last instructions, or the elements of a last one of tuple type"
            facts = {"function": f"region {region.id}", "expected": len(wanted), "found": len(body)}
            raise self._fail(instruction, "E2007", message, hint, **facts)
        found = [
            self.values[each.value]
            if isinstance(each, ValueRef)
            else self.values[each.tuple].element(each.index)
            for each in named
        ]
        for index, (type_, held) in enumerate(zip(wanted, found, strict=True)):
            if held.type != type_:
                message = f"result {index} of region {region.id} is a {held.type}, declared as a {type_}"
                hint = f"declare the result as {held.type}"
                facts = {"expected": str(held.type), "found": str(type_)}
                raise self._fail(instruction, "E2001", message, hint, **facts)
        return tuple([number for held in found for number in held.ids])


def _source(instruction: Instruction) -> SourceInfo | None:
    return SourceInfo.at(instruction.location) if instruction.location is not None else None
