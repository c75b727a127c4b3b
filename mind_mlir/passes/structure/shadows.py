"""Computes what is printed by itself, so that nothing else of a program changes with a print.

Before: a function in structured form. After: the same, where a print reads copies of the operations that make
its operands, and these read copies of what their block is given (`COPY`): so nobody merges them with the
operations that results are made of, whose nests are then what they would be without the print, to the bit.
What holds blocks, and calls, is not copied: its results are in memory anyway.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mind_mlir.ir.analysis.call_graph import CUSTOM_CALL
from mind_mlir.ir.analysis.effects import COPY, has_effect, is_effect
from mind_mlir.ir.module import CoreOperation, Functions, Module
from mind_mlir.ir.regions import value_types
from mind_mlir.ops.registry import by_opcode

if TYPE_CHECKING:
    from mind_mlir.ir.module import Block, Function, ValueId


def with_shadows(module: Module) -> Module:
    """Return a module in structured form whose prints read values of their own; itself without prints."""
    functions = tuple([_Shadows(each).function() if _prints(each) else each for each in module.functions])
    if all(new is old for new, old in zip(functions, module.functions, strict=True)):
        return module
    return replace(module, functions=Functions(functions))


def _prints(function: Function) -> bool:
    return any(map(has_effect, function.entry.operations))


class _Shadows:
    """Adds the copies to one function."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._types = value_types(function.blocks)
        self._next = max(self._types, default=-1) + 1

    def function(self) -> Function:
        return replace(self._function, blocks=tuple(map(self._block, self._function.blocks)))

    def _block(self, block: Block) -> Block:
        makers: dict[ValueId, CoreOperation] = {}
        shadows: dict[ValueId, ValueId] = {}
        written: list[CoreOperation] = []
        for operation in block.operations:
            left = operation
            if operation.regions:
                left = replace(operation, regions=tuple(map(self._block, operation.regions)))
            elif is_effect(operation):
                read = [self._shadow(each, makers, shadows, written) for each in operation.operands]
                left = replace(operation, operands=tuple(read))
            elif not by_opcode()[operation.opcode].runs_others:
                makers.update(dict.fromkeys(operation.result_ids, operation))
            written.append(left)
        return replace(block, operations=tuple(written))

    def _shadow(
        self,
        value: ValueId,
        makers: dict[ValueId, CoreOperation],
        shadows: dict[ValueId, ValueId],
        written: list[CoreOperation],
    ) -> ValueId:
        """Return a copy of ``value``, which is appended with all that it is made of; a root is it itself."""
        pending = [value] if value in makers else []
        while pending:
            maker = makers[pending[-1]]
            more = [each for each in maker.operands if each in makers and each not in shadows]
            if more:
                pending += more
                continue
            pending.pop()
            if maker.value_id in shadows:
                continue
            for root in maker.operands:
                if root not in shadows:
                    written.append(self._copy(root))
                    shadows[root] = written[-1].value_id
            results = [replace(each, value_id=self._fresh()) for each in maker.results]
            shadows.update(zip(maker.result_ids, [each.value_id for each in results], strict=True))
            operands = tuple([shadows[each] for each in maker.operands])
            written.append(
                replace(
                    maker,
                    value_id=results[0].value_id,
                    operands=operands,
                    others=tuple(results[1:]),
                    origin=maker.label,
                )
            )
        return shadows[value] if value in makers else value

    def _copy(self, value: ValueId) -> CoreOperation:
        attributes = {"target": COPY, "attrs": "{}"}
        return CoreOperation.create(self._fresh(), CUSTOM_CALL, (value,), attributes, self._types[value])

    def _fresh(self) -> ValueId:
        self._next += 1
        return self._next - 1
