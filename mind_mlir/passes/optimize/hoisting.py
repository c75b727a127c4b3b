"""Moves work out of loops and branches.

Before: a function in structured form. After: the same, where

- what a loop computes anew in each iteration, of values from around it, stands before the loop;
- what both branches of a `Cond` compute stands before it, once;
- a result of a `Cond` that is the same value in both branches is that value.

`hoist_rules` says what may go, and what is worth it. What is cheap and needed for that is done a second time
outside; the first time goes where nothing needs it any more (`drop_dead_code`). Inner loops come first, so
that work goes out of all that it does not depend on.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from mind_mlir.ir.regions import MAX_NESTING, value_types
from mind_mlir.ops.region_flow import repeats
from mind_mlir.passes.canonical.body import FunctionBlocks
from mind_mlir.passes.canonical.folding import Folder
from mind_mlir.passes.optimize.hoist_rules import bytes_of, is_arithmetic, is_worth, may_go
from mind_mlir.passes.optimize.rewriting import key_of, reading

if TYPE_CHECKING:
    from collections.abc import Container, Hashable, Iterable, Mapping

    from mind_mlir.ir.module import Block, CoreOperation, Function, ValueId


def hoist(function: Function) -> Function:
    """Return ``function``, in structured form, with work moved out of regions; itself where there is none."""
    (block,) = function.blocks
    if not any(operation.regions for operation in block.operations):
        return function
    # What has gone may make results of branches the same, which is known where they have been read already.
    for _ in range(MAX_NESTING):
        hoisted = _Hoisting(block).block(block)
        if hoisted is block:
            break
        block = hoisted
    return function if block is function.entry else replace(function, blocks=(block,))


class _Hoisting:
    """Moves work out of the regions of one function."""

    def __init__(self, block: Block) -> None:
        self._types = value_types((block,))
        self._fresh = count(max(self._types, default=-1) + 1)
        #: What results of branches have turned out to be.
        self._code = FunctionBlocks({})
        self._same = self._code.same
        self._constants = Folder(flags=True)

    def block(self, block: Block) -> Block:
        """Return ``block`` with work out of the regions of its operations; itself where nothing changes."""
        kept: list[CoreOperation] = []
        changed = False
        for operation in block.operations:
            if not operation.operands:
                self._constants.fold(operation)
            if operation.regions:
                inside = tuple([self.block(region) for region in operation.regions])
                left = reading(operation, self._same, inside)
                left = self._loop(left, kept) if repeats(left) else self._branches(left, kept)
            else:
                left = reading(operation, self._same)
            changed = changed or left is not operation
            kept.append(left)
        terminator = self._code.resolved(block.terminator)
        if not changed and terminator is block.terminator:
            return block
        return replace(block, operations=tuple(kept), terminator=terminator)

    def _loop(self, loop: CoreOperation, ahead: list[CoreOperation]) -> CoreOperation:
        """Return a `While` without what goes ``ahead`` of it, which is appended there."""
        condition, body = loop.regions
        sure = self._runs(loop)
        regions = (self._rest(condition, ahead, sure=True), self._rest(body, ahead, sure=sure))
        return reading(loop, {}, regions)

    def _runs(self, loop: CoreOperation) -> bool:
        """Return whether a loop is known to run at least once: its condition holds of constants."""
        condition = loop.regions[0]
        known = self._constants.constants
        first = Folder(flags=True)
        for parameter, value in zip(condition.parameters, loop.operands, strict=True):
            if value in known:
                first.constants[parameter.value_id] = known[value]
        for operation in condition.operations:
            first.constants.update((value, known[value]) for value in operation.operands if value in known)
            first.fold(operation)
        return first.flag(condition.terminator.operands[0]) is True

    def _branches(self, branch: CoreOperation, ahead: list[CoreOperation]) -> CoreOperation:
        """Return a `Cond` without what goes ``ahead`` of it, and note which of its results are the same."""
        then, otherwise = branch.regions
        numbers: dict[Hashable, int] = {}
        first, second = self._numbered(then, numbers), self._numbered(otherwise, numbers)
        common = set(first.values()) & set(second.values())
        if common:
            before = len(ahead)
            wanted = {value for value, number in first.items() if number in common}
            left = self._rest(then, ahead, sure=True, wanted=wanted)
            moved = {
                first[operation.value_id]: operation.value_id
                for operation in ahead[before:]
                if operation.value_id in first
            }
            same = {value: moved[number] for value, number in second.items() if number in moved}
            gone = replace(
                otherwise,
                operations=tuple([each for each in otherwise.operations if each.value_id not in same]),
            )
            if moved:
                branch = reading(branch, {}, (left, FunctionBlocks({}, same).read_anew(gone)))
        yielded = [region.terminator.operands for region in branch.regions]
        for result, one, other in zip(branch.result_ids, *yielded, strict=True):
            if one == other:  # so it is defined around both
                self._same[result] = one
        return branch

    def _numbered(self, block: Block, numbers: dict[Hashable, int]) -> Mapping[ValueId, int]:
        """Return a number below 0 for all that ``block`` computes of values around it, one for equal ones."""
        found: dict[ValueId, int] = {}
        inside: set[ValueId] = set()
        for operation in block.operations:
            if operation.others or not self._may_go(operation, inside):
                inside.update(operation.result_ids)
                continue
            key = key_of(operation, [found.get(value, value) for value in operation.operands])
            found[operation.value_id] = numbers.setdefault(key, -1 - len(numbers))
        return found

    def _may_go(self, operation: CoreOperation, inside: set[ValueId]) -> bool:
        return inside.isdisjoint(operation.operands) and may_go(operation, self._types)

    def _rest(
        self,
        block: Block,
        ahead: list[CoreOperation],
        *,
        sure: bool,
        wanted: Container[ValueId] | None = None,
    ) -> Block:
        """Return ``block`` without what goes ``ahead``: of the values ``wanted``, or of all."""
        inside = {parameter.value_id for parameter in block.parameters}
        cheap: dict[ValueId, CoreOperation] = {}
        moved: set[ValueId] = set()
        copies: dict[ValueId, ValueId] = {}
        kept: list[CoreOperation] = []
        for operation in block.operations:
            value = operation.value_id
            if not self._may_go(operation, inside):
                inside.update(operation.result_ids)
            elif (wanted is None or value in wanted) and self._goes(operation, cheap, moved, sure=sure):
                for needed in self._needed(operation, cheap, copies):
                    copies[needed.value_id] = copy = next(self._fresh)
                    self._types[copy] = needed.tensor_type
                    origin = needed.label
                    ahead.append(replace(reading(needed, copies), value_id=copy, origin=origin))
                ahead.append(reading(operation, copies))
                moved.add(value)
                continue
            elif operation.others:
                inside.update(operation.result_ids)
            else:
                cheap[value] = operation
            kept.append(operation)
        return replace(block, operations=tuple(kept)) if moved else block

    def _goes(
        self,
        operation: CoreOperation,
        cheap: Mapping[ValueId, CoreOperation],
        moved: Container[ValueId],
        *,
        sure: bool,
    ) -> bool:
        """Return whether an operation that may go is worth it, alone or with what has gone before."""
        types = self._types
        if is_arithmetic(operation):
            size = bytes_of(operation.result_type)
            return any(value in moved and bytes_of(types[value]) >= size for value in operation.operands)
        sources: set[ValueId] = set()
        pending = list(operation.operands)
        while pending:
            value = pending.pop()
            if value in cheap:
                pending += cheap[value].operands
            else:
                sources.add(value)
        return is_worth(operation, [types[value] for value in sources], types, sure=sure)

    def _needed(
        self, operation: CoreOperation, cheap: Mapping[ValueId, CoreOperation], done: Container[ValueId]
    ) -> Iterable[CoreOperation]:
        """Return the cheap operations that ``operation`` needs and that are not ``done``, in order."""
        found: dict[ValueId, CoreOperation] = {}
        pending = list(operation.operands)
        while pending:
            value = pending.pop()
            if value in cheap and value not in done and value not in found:
                found[value] = cheap[value]
                pending += cheap[value].operands
        return [each for value, each in cheap.items() if value in found]
