"""Checks the blocks of one function: their graph, their operations and regions, and what is visible where."""

from __future__ import annotations

from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING

from mind_mlir.builders import flow_rules, type_rules
from mind_mlir.builders.type_rules import finding, usable
from mind_mlir.diagnostics import Location
from mind_mlir.ir.analysis.dominance import predecessors, successors
from mind_mlir.ir.module import Branch, CondBranch, Return, Yield
from mind_mlir.ir.regions import MAX_NESTING
from mind_mlir.ops.contexts import RegionTypes
from mind_mlir.support.interrupts import deliver
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.diagnostics import Diagnostic
    from mind_mlir.diagnostics.findings import Findings
    from mind_mlir.ir.module import Block, CoreOperation, Function, Target, Terminator, ValueId
    from mind_mlir.ir.types import TensorType
    from mind_mlir.passes.operation_check import OperationCheck
    from mind_mlir.passes.scopes import FunctionScopes, ValueDefinition

#: Blocks that a message names.
_NAMED = 8


@dataclass(slots=True)
class BlocksVerifier:
    """One run over the blocks of a function, of which there is one at least."""

    function: Function
    checker: OperationCheck
    scopes: FunctionScopes
    _by_label: dict[str, int] = field(default_factory=dict)

    def run(self) -> None:
        """Report what is wrong with the blocks."""
        self._repeated()
        if self._graph():
            self._unreachable()
            self._endless()
        for scope in range(len(self.function.blocks)):
            self._block(scope)

    @property
    def findings(self) -> Findings:
        """Return what takes the findings."""
        return self.checker.findings

    # The graph of the blocks

    def _graph(self) -> bool:
        """Check labels, terminators and targets; return whether the graph is as it was meant."""
        blocks = self.function.blocks
        before = self.findings.total
        first = self._by_label
        for place, block in enumerate(blocks):
            if first.setdefault(block.label, place) != place:
                other = blocks[first[block.label]].location
                place_of_other = f"at {other}" if other else "the one before"
                self.findings.add(flow_rules.label_taken(block.label, block.location, place_of_other))
        for block in blocks:
            if isinstance(block.terminator, Yield):
                self._wrong_terminator(block, "return, br or cond_br", "a yield, which ends only regions")
            for target in block.terminator.targets:
                if target.label not in first:
                    self._unknown_target(target, first)
                elif first[target.label] == 0:
                    self.findings.add(flow_rules.entry_is_target(target.label, target.location))
        return self.findings.total == before

    def _unknown_target(self, target: Target, labels: dict[str, int]) -> None:
        if self.findings.full:
            self.findings.count()
            return
        known = ", ".join(f"^{label}" for label in list(labels)[:_NAMED])
        more = ", ..." if len(labels) > _NAMED else ""
        self.findings.add(
            finding(
                "E4110",
                f"there is no block ^{target.label} in @{self.function.name}",
                target.location,
                (),
                f"the blocks are {known}{more}",
                block=target.label,
                function=self.function.name,
            )
        )

    def _unreachable(self) -> None:
        for place, block in enumerate(self.function.blocks):
            if not self.scopes.tree.is_reachable(place):
                self.findings.add(
                    finding(
                        "E4117",
                        f"no branch leads to ^{block.label}, so it never runs",
                        block.location,
                        (f"it is a block of @{self.function.name}",),
                        "remove the block, or branch to it",
                        block=block.label,
                        function=self.function.name,
                    )
                )

    def _endless(self) -> None:
        """Report a loop that no way leads out of, the first one that can be reached."""
        blocks = self.function.blocks
        following = successors(blocks)
        before = predecessors(following)
        pending = [place for place, block in enumerate(blocks) if isinstance(block.terminator, Return)]
        ending = set(pending)
        while pending:
            found = [place for place in before[pending.pop()] if place not in ending]
            ending.update(found)
            pending += found
        lost = [place for place in range(len(blocks)) if place not in ending]
        start = next(filter(self.scopes.tree.is_reachable, lost), None)
        if start is None:
            return
        passed: set[int] = set()
        while start not in passed:  # to the loop that the way from there ends in
            passed.add(start)
            start = following[start][0]
        block = blocks[start]
        self.findings.add(
            finding(
                "E4127",
                f"a loop has no exit: from ^{block.label} no return can be reached",
                block.location,
                (f"it is a block of @{self.function.name}",),
                "let a cond_br lead out of the loop",
                block=block.label,
                function=self.function.name,
            )
        )

    def _wrong_terminator(self, block: Block, wanted: str, found: str) -> None:
        where = block.terminator.location or block.location
        self.findings.add(flow_rules.missing_terminator(block.label, where, wanted, found))

    # What blocks hold

    def _block(self, scope: int) -> None:
        """Check the operations of a block of the function or of a region, and its terminator."""
        block = self.scopes.blocks[scope]
        if scope:  # those of the entry are the function's
            for parameter in block.parameters:
                what = f"parameter {parameter.label} of ^{block.label}"
                wrong = type_rules.declared_type(
                    what, parameter.type, self.checker.profile, parameter.location
                )
                take(self.findings, wrong)
        for position, operation in enumerate(block.operations):
            deliver()
            regions = self._regions(scope, position, operation)
            locate = partial(_operand_location, operation)
            operands = self._read(scope, position, operation.operands, operation.spell, locate)
            self.checker.check(operation, known(operands), regions)
        deliver()
        self._terminator(scope, block.terminator)

    def _regions(self, scope: int, position: int, operation: CoreOperation) -> tuple[RegionTypes, ...] | None:
        """Check the regions of an operation; return what they take and yield, or None if that is unknown."""
        if not operation.regions:
            return ()
        found: list[RegionTypes] = []
        inner = list(self.scopes.regions(scope, position))
        for region in inner:
            self._block(region)
            types = self._region_types(region)
            if types is not None:
                found.append(types)
        return tuple(found) if len(found) == len(operation.regions) else None

    def _region_types(self, region: int) -> RegionTypes | None:
        block = self.scopes.blocks[region]
        terminator = block.terminator
        if not isinstance(terminator, Yield):
            return None
        taken = known([usable(parameter.type) for parameter in block.parameters])
        yielded = known([self._type(value) for value in terminator.operands])
        if taken is None or yielded is None:
            return None
        return RegionTypes(
            taken,
            yielded,
            block.label,
            tuple(parameter.location for parameter in block.parameters),
            tuple(terminator.location_of(index) for index in range(len(yielded))),
            block.location,
        )

    def _terminator(self, scope: int, terminator: Terminator) -> None:
        block = self.scopes.blocks[scope]
        position = len(block.operations)
        match terminator:
            case Return() | Yield():
                found = self._read(
                    scope, position, terminator.operands, terminator.spell, terminator.location_of
                )
                if self.scopes.is_region(scope):
                    if isinstance(terminator, Return):
                        self._wrong_terminator(block, "yield", "a return, which ends only functions")
                elif isinstance(terminator, Return):
                    self._returned(terminator, found)
            case Branch() | CondBranch():
                if isinstance(terminator, CondBranch):
                    self._condition(scope, position, terminator)
                for target in terminator.targets:
                    self._target(scope, position, target)
                if self.scopes.is_region(scope):
                    self._wrong_terminator(block, "yield", "a branch, but a region is one block")

    def _returned(self, terminator: Return, found: Sequence[TensorType | None]) -> None:
        declared = [usable(type_) for type_ in self.function.result_types or ()]
        self.findings.extend(
            flow_rules.returned(
                self.function.name,
                declared,
                found,
                lambda index: terminator.spell(terminator.operands[index]),
                lambda index: terminator.location_of(index) or terminator.location,
            )
        )

    def _condition(self, scope: int, position: int, terminator: CondBranch) -> None:
        where = terminator.condition_location or terminator.location
        spell = terminator.then.spell
        (type_,) = self._read(scope, position, (terminator.condition,), spell, lambda _: where)
        take(self.findings, flow_rules.condition(type_, spell(terminator.condition), where))

    def _target(self, scope: int, position: int, target: Target) -> None:
        found = self._read(scope, position, target.arguments, target.spell, target.location_of)
        place = self._by_label.get(target.label)
        if not place or self.scopes.is_region(scope):  # no block, or the entry
            return
        block = self.scopes.blocks[place]
        if self.findings.full:  # each would name all parameters
            self.findings.count([usable(parameter.type) for parameter in block.parameters] != found)
            return
        self.findings.extend(
            flow_rules.branch_arguments(
                target.label,
                [usable(parameter.type) for parameter in block.parameters],
                found,
                lambda index: target.spell(target.arguments[index]),
                target.location_of,
            )
        )

    # Values

    def _type(self, value: ValueId) -> TensorType | None:
        """Return the type that a value is declared to have, or None."""
        definition = self.scopes.definitions.get(value)
        return definition.type if definition else None

    def _read(
        self,
        scope: int,
        position: int,
        values: Sequence[ValueId],
        spell: Callable[[ValueId], str],
        locate: Callable[[int], Location | None],
    ) -> list[TensorType | None]:
        """Return the types of what is read at ``position`` of ``scope``; report what is not visible there."""
        found: list[TensorType | None] = []
        for index, value in enumerate(values):
            definition = self.scopes.definitions.get(value)
            if definition is not None and self.scopes.is_visible(definition, scope, position):
                found.append(definition.type)
                continue
            found.append(None)
            if self.findings.full:
                self.findings.count()
                continue
            where = locate(index) or self.scopes.blocks[scope].location
            report = self._invisible(definition, scope, value, spell(value))
            notes = (*report.notes, self._around(scope)) if where is None else report.notes
            self.findings.add(replace(report, location=where, notes=notes))
        return found

    def _invisible(
        self, definition: ValueDefinition | None, scope: int, value: ValueId, spelled: str
    ) -> Diagnostic:
        """Return what is wrong with the use of a value that is not visible in ``scope``."""
        if definition is None:
            message, hint = f"{spelled} is not defined", "define the value before this use, or correct the id"
            return finding("E4001", message, None, (), hint, operand=value, definition=None)
        label, place = definition.label, definition.location
        facts = {"operand": value, "definition": str(place) if place else None}
        there = self._around(definition.scope)
        note = f"the definition is at {place}, {there}" if place else f"the definition is {there}"
        if self.scopes.holds(definition.scope, scope):
            message, hint = f"{label} is used before its definition", "move the definition before this use"
            return finding("E4001", message, None, (note,), hint, **facts)
        here = self.scopes.blocks[scope].label
        if self.scopes.is_region(definition.scope):
            message = f"{label} is visible only in its region, ^{self.scopes.blocks[definition.scope].label}"
            hint = "yield the value: it becomes a result of the region's operation"
        else:
            message = f"{label} is not defined on every way to ^{here}"
            hint = f"pass the value as an argument: br ^{here}({label}), with a parameter for it"
        return finding("E4116", message, None, (note,), hint, **facts, block=here)

    def _around(self, scope: int) -> str:
        """Return where ``scope`` is: ``in ^then in ^body of @f``."""
        labels = " in ".join(f"^{label}" for label in reversed(self.scopes.path(scope)))
        return f"in {labels} of @{self.function.name}"

    def _repeated(self) -> None:
        for definition in self.scopes.repeated:
            if self.findings.full:
                self.findings.count()
                continue
            first = self.scopes.definitions[definition.value]
            place, label = definition.location, definition.label
            head = Location(place.source, place.line, place.column, len(label)) if place else None
            known_place = f"at {first.location}" if first.location else self._around(first.scope)
            self.findings.add(
                finding(
                    "E4002",
                    f"{label} is defined twice",
                    head,
                    (f"the first definition is {known_place}",),
                    "give one of the two another id; ids are unique in their function",
                    id=definition.value,
                    places=(str(first.location), str(place)),
                )
            )
        for operation in self.scopes.too_deep:
            self.findings.add(
                finding(
                    "E4125",
                    f"regions nest more than {MAX_NESTING} deep",
                    operation.opcode_location,
                    (f"it is an operation of @{self.function.name}",),
                    "move the inner ones to a function, and call it",
                    limit=MAX_NESTING,
                )
            )


def known(types: Sequence[TensorType | None]) -> tuple[TensorType, ...] | None:
    """Return the types where all of them are known, else None."""
    found = tuple(type_ for type_ in types if type_ is not None)
    return found if len(found) == len(types) else None


def _operand_location(operation: CoreOperation, index: int) -> Location | None:
    locations = operation.source.operands if operation.source else ()
    return locations[index] if index < len(locations) else operation.opcode_location


def take(findings: Findings, found: Diagnostic | None) -> None:
    """Add what is wrong to ``findings``, if anything is."""
    if found is not None:
        findings.add(found)
