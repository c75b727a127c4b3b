"""Proves a module well-formed, or says everything that is wrong with it (core-ir.md, "Verification").

Before: any module that the in-memory IR can hold. After: a module that obeys every rule of its profile; no
later stage checks these rules again. All findings come in one run, in source order:

1. each value is defined once (E4002) and before its uses (E4001);
2. each operation is known (E1102) and allowed by the profile (E4102), and obeys its record: operands,
   attributes, dtypes, shapes (E1103, E20xx, E30xx, E40xx);
3. the declared result type is the one that follows from the operands (E2001);
4. inputs have names of their own (E4004) and the profile's dtypes; the outputs exist (E4003).

An operation in error is taken to have its declared type, so that one mistake is reported once. A module
without outputs breaks no rule of the documents: it gives a warning (E4101). Linear in the module's size.
What modules of functions obey besides stands in `mind_mlir.passes.verify_functions`.
"""

from __future__ import annotations

from dataclasses import field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from mind_mlir.builders.type_rules import usable
from mind_mlir.diagnostics import Diagnostic, Location, VerificationError
from mind_mlir.ir.module import MODULE, Module, Return
from mind_mlir.ir.profiles import PROFILES
from mind_mlir.ir.types import MAX_RANK, TensorType
from mind_mlir.passes.operation_check import OperationCheck
from mind_mlir.support import argument_checks
from mind_mlir.support.interrupts import deliver
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.diagnostics.findings import Findings
    from mind_mlir.ir.module import Block, CoreOperation, ValueId


#: The modules that obey all rules, by identity: modules never change, so that none is verified twice.
_VERIFIED: WeakValueDictionary[int, Module] = WeakValueDictionary()


def verify(module: Module) -> Module:
    """Return ``module`` when it obeys every rule of its profile.

    Raises:
        VerificationError: It does not; every error is in it, in source order.
        TypeError: ``module`` is no `Module`.
    """
    known = _VERIFIED.get(id(module))
    if known is not None and known is module:
        return module
    errors = [finding for finding in check(module) if finding.severity == "error"]
    if errors:
        raise VerificationError(errors)
    return trusted(module)


def trusted(module: Module) -> Module:
    """Return a module that was made of a verified one and keeps all rules: `verify` takes it as it is."""
    _VERIFIED[id(module)] = module
    return module


def check(module: Module) -> list[Diagnostic]:
    """Return everything there is to say about ``module``, warnings included, in source order."""
    argument_checks.expect(module, Module, "module", MODULE)
    profile = PROFILES.get(module.profile)
    if profile is None:
        return [
            Diagnostic(
                "E4105",
                f"unknown profile '{module.profile}'",
                help=f"the profiles are {', '.join(PROFILES)}",
                context=MappingProxyType({"profile": module.profile}),
            )
        ]
    if profile.allows_blocks:
        from mind_mlir.passes.verify_functions import check_functions  # noqa: PLC0415 -- flat modules do without

        return check_functions(module, profile)
    if not module.is_flat or not isinstance(module.body.terminator, Return):
        return [
            Diagnostic(
                "E4103",
                f"profile {profile.name} has no functions, blocks or block parameters",
                help="a module of this profile is one flat list of instructions",
                context=MappingProxyType({"profile": profile.name}),
            )
        ]
    return _FlatVerifier(OperationCheck(profile), module.body, module.body.terminator).run()


@dataclass
class _FlatVerifier:
    """One run over a flat instruction list."""

    checker: OperationCheck
    block: Block
    returned: Return
    #: The type of each value defined so far; None where a wrong declaration leaves it unknown.
    types: dict[ValueId, TensorType | None] = field(default_factory=dict)
    input_names: dict[str, CoreOperation] = field(default_factory=dict)

    def run(self) -> list[Diagnostic]:
        """Return the findings about the block."""
        for index, operation in enumerate(self.block.operations):
            deliver()
            self._operation(index, operation)
        self._outputs()
        return self.findings.in_source_order()

    @property
    def findings(self) -> Findings:
        """Return what takes the findings."""
        return self.checker.findings

    @cached_property
    def _first(self) -> Mapping[ValueId, CoreOperation]:
        """Return the operation that first defines each value, at any place; only mistakes need it."""
        return {
            value: operation
            for operation in reversed(self.block.operations)
            for value in operation.result_ids
        }

    def _operation(self, index: int, operation: CoreOperation) -> None:
        if operation.value_id in self.types:
            self._defined_twice(operation)
        if operation.regions:
            self.checker.report(
                operation,
                "E4103",
                f"{operation.opcode} has regions, but profile {self.checker.profile.name} has none",
                None,
                (),
                "a module of this profile is one flat list of instructions",
                profile=self.checker.profile.name,
            )
        record = self.checker.check(operation, self._operand_types(index, operation))
        if record is not None and record.opcode == "Input":
            self._input(operation)
        # A second definition does not change what later uses of the first one mean.
        type_ = operation.result_type
        if record is None or not isinstance(type_, TensorType) or len(type_.shape) > MAX_RANK:
            self.types.setdefault(operation.value_id, usable(type_))
        else:
            self.types.setdefault(operation.value_id, type_)
        for result in operation.others:
            self.types.setdefault(result.value_id, usable(result.type))

    def _operand_types(self, index: int, operation: CoreOperation) -> tuple[TensorType, ...] | None:
        """Return the operand types, or None where any is unknown."""
        found: list[TensorType] = []
        for position, value in enumerate(operation.operands):
            if value not in self.types:
                self._undefined(index, operation, position)
            elif (type_ := self.types[value]) is not None:
                found.append(type_)
        return tuple(found) if len(found) == len(operation.operands) else None

    def _input(self, operation: CoreOperation) -> None:
        name = operation.attributes["name"]
        assert isinstance(name, str), "the record has checked the attribute"
        first = self.input_names.setdefault(name, operation)
        if first is not operation:
            self.checker.report(
                operation,
                "E4004",
                f"two inputs are called '{name}'",
                operation.source.attributes.get("name") if operation.source else None,
                (f"the other one is {_place(first)}",),
                "give every input a name of its own",
                issue="name",
                name=name,
            )

    def _defined_twice(self, operation: CoreOperation) -> None:
        if self.findings.full:
            self.findings.count()
            return
        first = self._first[operation.value_id]
        self.checker.report(
            operation,
            "E4002",
            f"{operation.label} is defined twice",
            _head(operation.location, operation.label),
            (f"the first definition is {_place(first)}",),
            "give one of the two another id",
            id=operation.value_id,
            places=(str(first.location), str(operation.location)),
        )

    def _undefined(self, index: int, operation: CoreOperation, position: int) -> None:
        if self.findings.full:
            self.findings.count()
            return
        value = operation.operands[position]
        locations = operation.source.operands if operation.source else ()
        where = locations[position] if position < len(locations) else None
        later = self._first.get(value)
        name = later.label if later else operation.spell(value)
        if later is None:
            notes: tuple[str, ...] = ()
            message = f"{name} is not defined"
            hint = "define the value before this operation, or correct the id"
        else:
            message = f"{name} is used before its definition"
            notes = (f"the definition is {'this operation' if later is operation else _place(later)}",)
            hint = "move the definition before this use"
        self.checker.report(
            operation,
            "E4001",
            message,
            where,
            notes,
            hint,
            instruction=index,
            operand=value,
            definition=None if later is None else str(later.location),
        )

    def _outputs(self) -> None:
        terminator = self.returned
        if not terminator.operands:
            self.findings.add(
                Diagnostic(
                    "E4101",
                    "the module has no outputs, so it computes nothing",
                    help="end it with an outputs line: outputs: %0",
                    severity="warning",
                )
            )
        for index, value in enumerate(terminator.operands):
            if value in self.types:
                continue
            if self.findings.full:
                self.findings.count()
                continue
            where = terminator.location_of(index)
            self.findings.add(
                Diagnostic(
                    "E4003",
                    f"output {index} is {terminator.spell(value)}, which is not defined",
                    where,
                    (),
                    "name a value that an instruction defines",
                    context=MappingProxyType({"output": index, "id": value}),
                )
            )


def _head(location: Location | None, text: str) -> Location | None:
    """Return the part of a statement that its first word takes."""
    return Location(location.source, location.line, location.column, len(text)) if location else None


def _place(operation: CoreOperation) -> str:
    return f"at {operation.location}" if operation.location else operation.label
