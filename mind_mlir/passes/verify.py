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
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mind_mlir import border
from mind_mlir.diagnostics import Diagnostic, Location, VerificationError
from mind_mlir.diagnostics.findings import Findings
from mind_mlir.interrupts import deliver
from mind_mlir.ir.module import MODULE, Module
from mind_mlir.ir.types import MAX_RANK, TensorType
from mind_mlir.ops import registry
from mind_mlir.ops.contexts import TypeContext
from mind_mlir.ops.infer import infer_type
from mind_mlir.ops.unknown import unknown_operation
from mind_mlir.profiles import PROFILES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.ir.module import Block, CoreOperation, Return, ValueId
    from mind_mlir.ir.types import ValueType
    from mind_mlir.ops.opdef import OpDef
    from mind_mlir.profiles import Profile


def verify(module: Module) -> Module:
    """Return ``module`` when it obeys every rule of its profile.

    Raises:
        VerificationError: It does not; every error is in it, in source order.
        TypeError: ``module`` is no `Module`.
    """
    errors = [finding for finding in check(module) if finding.severity == "error"]
    if errors:
        raise VerificationError(errors)
    return module


def check(module: Module) -> list[Diagnostic]:
    """Return everything there is to say about ``module``, warnings included, in source order."""
    border.expect(module, Module, "module", MODULE)
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
    if not profile.allows_blocks and not module.is_flat:
        return [
            Diagnostic(
                "E4103",
                f"profile {profile.name} has no functions, blocks or block parameters",
                help="a module of this profile is one flat list of instructions",
                context=MappingProxyType({"profile": profile.name}),
            )
        ]
    return _BlockVerifier(profile, module.body, module.returned).run()


@dataclass
class _BlockVerifier:
    """One run over a flat instruction list."""

    profile: Profile
    block: Block
    returned: Return
    findings: Findings = field(default_factory=Findings)
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

    @cached_property
    def _first(self) -> Mapping[ValueId, CoreOperation]:
        """Return the operation that first defines each value, at any place; only mistakes need it."""
        return {operation.value_id: operation for operation in reversed(self.block.operations)}

    def _operation(self, index: int, operation: CoreOperation) -> None:
        if operation.value_id in self.types:
            self._defined_twice(operation)
        operands = self._operand_types(index, operation)
        inferred = self._infer(operation, operands)
        # A second definition does not change what later uses of the first one mean.
        self.types.setdefault(operation.value_id, inferred or _usable(operation.result_type))

    def _operand_types(self, index: int, operation: CoreOperation) -> list[TensorType] | None:
        """Return the operand types, or None where any is unknown."""
        found: list[TensorType] = []
        for position, value in enumerate(operation.operands):
            if value not in self.types:
                self._undefined(index, operation, position)
            elif (type_ := self.types[value]) is not None:
                found.append(type_)
        return found if len(found) == len(operation.operands) else None

    def _infer(self, operation: CoreOperation, operands: list[TensorType] | None) -> TensorType | None:
        """Apply the record and return the result type, or None where what it reports leaves that unknown."""
        refusal = self.profile.refused.get(operation.opcode)
        if refusal is not None:
            message = f"{operation.opcode} is not allowed in profile {self.profile.name}"
            where = operation.opcode_location
            self._report(
                operation,
                "E4102",
                message,
                where,
                (refusal.reason,),
                refusal.instead,
                profile=self.profile.name,
            )
            return None
        record = registry.lookup(operation.opcode)
        if record is None:
            if self.findings.full:  # the search for what was meant takes a while
                self.findings.count()
            else:
                self._add(operation, unknown_operation(operation.opcode, operation.opcode_location))
            return None
        declared = operation.result_type
        if not isinstance(declared, TensorType):
            self._wrong_type(operation, None)
            return None
        if operands is None:
            return None
        context = TypeContext(
            operation.opcode,
            operation.value_id,
            tuple(operands),
            operation.attributes,
            declared,
            operation.source,
        )
        inferred = infer_type(record, context)
        for finding in context.diagnostics:
            self._add(operation, finding)
        if inferred is None:
            return None
        if inferred != declared:
            self._wrong_type(operation, inferred)
            return None
        self._check_limits(operation, record, inferred)
        # What follows from a type of thousands of dimensions has numbers of as many digits.
        return inferred if inferred.rank <= MAX_RANK else None

    def _check_limits(self, operation: CoreOperation, record: OpDef, type_: TensorType) -> None:
        if record.opcode == "Input":
            self._input(operation)
        # Operations with operands take only dtypes of their records, which all profiles share.
        if not record.operands and type_.dtype not in self.profile.dtypes:
            allowed = ", ".join(dtype.core_name for dtype in self.profile.dtypes)
            self._report(
                operation,
                "E4004" if record.opcode == "Input" else "E2005",
                f"{operation.opcode} has dtype {type_.dtype.core_name}, "
                f"which profile {self.profile.name} does not have",
                operation.source.result_type if operation.source else None,
                (),
                f"allowed: {allowed}",
                found=type_.dtype.core_name,
                allowed=allowed,
                issue="dtype",
            )
        self._size(operation, type_)

    def _size(self, operation: CoreOperation, type_: TensorType) -> None:
        if type_.rank > MAX_RANK:
            self._report(
                operation,
                "E4106",
                f"a value of rank {type_.rank} has more dimensions than numpy arrays have",
                operation.source.result_type if operation.source else None,
                (),
                f"the rank is at most {MAX_RANK}; merge dimensions with Reshape",
                rank=type_.rank,
            )
            return
        if not type_.is_addressable:
            size = f"it has {type_.element_count} elements of {type_.dtype.itemsize} bytes"
            self._report(
                operation,
                "E4104",
                f"a value of type {type_} does not fit any address space",
                operation.source.result_type if operation.source else None,
                (size if type_.element_count else f"{size}, but the other extents alone exceed 63 bits",),
                "reduce the extents",
                type=str(type_),
            )

    def _input(self, operation: CoreOperation) -> None:
        name = operation.attributes["name"]
        assert isinstance(name, str), "the record has checked the attribute"
        first = self.input_names.setdefault(name, operation)
        if first is not operation:
            self._report(
                operation,
                "E4004",
                f"two inputs are called '{name}'",
                operation.source.attributes.get("name") if operation.source else None,
                (f"the other one is {_place(first)}",),
                "give every input a name of its own",
                issue="name",
                name=name,
            )

    def _wrong_type(self, operation: CoreOperation, inferred: TensorType | None) -> None:
        declared = operation.result_type
        found = f"declared as {declared}"
        self._report(
            operation,
            "E2001",
            f"the result of {operation.opcode} is {inferred or 'a tensor'}, but it is {found}",
            operation.source.result_type if operation.source else None,
            (),
            f"write : {inferred}" if inferred else "declare a tensor type",
            expected=str(inferred or "tensor"),
            found=str(declared),
        )

    def _defined_twice(self, operation: CoreOperation) -> None:
        if self.findings.full:
            self.findings.count()
            return
        first = self._first[operation.value_id]
        self._report(
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
        self._report(
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

    def _report(
        self,
        operation: CoreOperation,
        code: str,
        message: str,
        where: Location | None,
        notes: tuple[str, ...],
        hint: str,
        **context: Any,
    ) -> None:
        facts = {"operation": operation.opcode, "value": operation.value_id, **context}
        where = where or operation.opcode_location
        self._add(operation, Diagnostic(code, message, where, notes, hint, context=MappingProxyType(facts)))

    def _add(self, operation: CoreOperation, finding: Diagnostic) -> None:
        """Record a finding; without a source, it says which operation it is about."""
        if finding.location is None:
            operands = ", ".join(map(operation.spell, operation.operands))
            note = f"in {operation.spell(operation.value_id)} = {operation.opcode} ({operands})"
            finding = replace(finding, notes=(*finding.notes, note))
        self.findings.add(finding)


def _usable(type_: ValueType) -> TensorType | None:
    """Return a declared type that the rules can work with, or None."""
    if not isinstance(type_, TensorType) or type_.rank > MAX_RANK:
        return None
    return type_ if all(isinstance(extent, int) and extent >= 0 for extent in type_.shape) else None


def _head(location: Location | None, text: str) -> Location | None:
    """Return the part of a statement that its first word takes."""
    return Location(location.source, location.line, location.column, len(text)) if location else None


def _place(operation: CoreOperation) -> str:
    return f"at {operation.location}" if operation.location else operation.label
