"""Applies the record of one operation after another, in a flat list and in functions alike.

An operation in error is taken to have its declared types, so that one mistake is reported once.
"""

from __future__ import annotations

from dataclasses import field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mind_mlir.builders import type_rules
from mind_mlir.diagnostics import Diagnostic
from mind_mlir.diagnostics.findings import Findings
from mind_mlir.ir.analysis.meshes import MESH
from mind_mlir.ir.types import TensorType
from mind_mlir.ops import registry
from mind_mlir.ops.contexts import TypeContext
from mind_mlir.ops.infer import infer_types
from mind_mlir.ops.unknown import unknown_operation
from mind_mlir.support.argument_checks import counted
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.diagnostics import Location
    from mind_mlir.ir.module import CoreOperation
    from mind_mlir.ir.profiles import Profile
    from mind_mlir.ops.contexts import RegionTypes, Signature
    from mind_mlir.ops.opdef import OpDef


@dataclass(slots=True)
class OperationCheck:
    """Checks operations of one module.

    Attributes:
        profile: The rules that the module chose.
        findings: Takes what is wrong.
        functions: The signatures of the module's functions, by name.
        mesh: The mesh of its collectives, once there was one.
    """

    profile: Profile
    findings: Findings = field(default_factory=Findings)
    functions: Mapping[str, Signature | None] = field(default_factory=FrozenDict)
    mesh: str = ""

    def check(
        self,
        operation: CoreOperation,
        operands: tuple[TensorType, ...] | None,
        regions: tuple[RegionTypes, ...] | None = (),
    ) -> OpDef | None:
        """Report what is wrong with ``operation``, and return its record where nothing is.

        Args:
            operation: The operation.
            operands: The types of its operands; None where one is unknown.
            regions: What its regions take and yield; None where a type there is unknown.
        """
        refusal = type_rules.refused(operation.opcode, self.profile, None)
        if refusal is not None:
            self._add_facts(operation, refusal)
            return None
        record = registry.lookup(operation.opcode)
        if record is None:
            if self.findings.full:  # the search for what was meant takes a while
                self.findings.count()
            else:
                self.add(operation, unknown_operation(operation.opcode, operation.opcode_location))
            return None
        declared = _declared(operation)
        if declared is None:
            self._wrong_type(operation, None)
            return None
        if operands is None or regions is None:
            return None
        context = TypeContext(
            operation.opcode,
            operation.value_id,
            operands,
            operation.attributes,
            declared[0],
            operation.source,
            declared_results=declared if len(declared) > 1 else None,
            regions=regions,
            functions=self.functions,
            profile=self.profile,
        )
        inferred = infer_types(record, context)
        for finding in context.diagnostics:
            self.add(operation, finding)
        if inferred is None:
            return None
        if inferred != declared:
            self._wrong_type(operation, inferred)
            return None
        self._check_limits(operation, record, inferred)
        if MESH in operation.attributes:
            self._check_mesh(operation)
        return record

    def _check_mesh(self, operation: CoreOperation) -> None:
        mesh = str(operation.attributes[MESH])
        self.mesh = self.mesh or mesh
        if mesh != self.mesh:
            where = operation.source.attributes.get(MESH) if operation.source else None
            message = f"the mesh is {mesh}, and that of a collective before is {self.mesh}"
            hint = "give all collectives of a module one mesh"
            self.report(operation, "E4313", message, where, (), hint, mesh=mesh, other=self.mesh)

    def _check_limits(self, operation: CoreOperation, record: OpDef, types: tuple[TensorType, ...]) -> None:
        for index, type_ in enumerate(types):
            self._add_limit(operation, index, type_rules.size(type_, None))
            # Operations with operands take only dtypes of their records, which all profiles share.
            if not record.operands:
                code = "E4004" if record.opcode == "Input" else "E2005"
                foreign = type_rules.foreign_dtype(operation.opcode, type_, self.profile, None, code)
                self._add_limit(operation, index, foreign)

    def _add_limit(self, operation: CoreOperation, index: int, finding: Diagnostic | None) -> None:
        if finding is not None:
            self._add_facts(operation, replace(finding, location=_result_location(operation, index)))

    def _wrong_type(self, operation: CoreOperation, inferred: tuple[TensorType, ...] | None) -> None:
        types = [result.type for result in operation.results]
        index = 0
        if inferred is not None and len(inferred) == len(types):
            index = next(i for i, pair in enumerate(zip(inferred, types, strict=True)) if pair[0] != pair[1])
        if len(types) == 1 and (inferred is None or len(inferred) == 1):
            expected = str(inferred[0]) if inferred else "a tensor"
            found = str(types[0])
            message = f"the result of {operation.opcode} is {expected}, but it is declared as {found}"
        else:
            expected = _listing(inferred) if inferred else "tensors"
            found = _listing(types)
            message = f"the {counted(inferred or types, 'result')} of {operation.opcode} "
            message += f"are {expected}, but declared as {found}"
        self.report(
            operation,
            "E2001",
            message,
            _result_location(operation, index),
            (),
            f"write : {expected}" if inferred else "declare a tensor type",
            expected=expected if inferred else "tensor",
            found=found,
        )

    def report(
        self,
        operation: CoreOperation,
        code: str,
        message: str,
        where: Location | None,
        notes: tuple[str, ...],
        hint: str,
        **context: Any,
    ) -> None:
        """Record an error at ``where``, or at the opcode."""
        where = where or operation.opcode_location
        found = Diagnostic(code, message, where, notes, hint, context=MappingProxyType(context))
        self._add_facts(operation, found)

    def _add_facts(self, operation: CoreOperation, finding: Diagnostic) -> None:
        facts = {"operation": operation.opcode, "value": operation.value_id, **finding.context}
        location = finding.location or operation.opcode_location
        self.add(operation, replace(finding, location=location, context=MappingProxyType(facts)))

    def add(self, operation: CoreOperation, finding: Diagnostic) -> None:
        """Record a finding; without a source, it says which operation it is about."""
        if finding.location is None:
            operands = ", ".join(map(operation.spell, operation.operands))
            results = ", ".join(map(operation.spell, operation.result_ids))
            note = f"in {results} = {operation.opcode} ({operands})"
            finding = replace(finding, notes=(*finding.notes, note))
        self.findings.add(finding)


def _declared(operation: CoreOperation) -> tuple[TensorType, ...] | None:
    """Return the declared types, or None where one is no tensor's."""
    first = operation.result_type
    if not operation.others:
        return (first,) if isinstance(first, TensorType) else None
    types = [result.type for result in operation.results]
    tensors = tuple(type_ for type_ in types if isinstance(type_, TensorType))
    return tensors if len(tensors) == len(types) else None


def _result_location(operation: CoreOperation, index: int) -> Location | None:
    """Return where the type of result ``index`` stands."""
    places = operation.source.result_types if operation.source else ()
    return places[index] if index < len(places) else None


def _listing(types: object) -> str:
    assert isinstance(types, (tuple, list))
    return str(types[0]) if len(types) == 1 else f"({', '.join(map(str, types))})"
