"""Runs functions of blocks as they stand: the oracle of the structured form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.module import Branch, CondBranch
from mind_mlir.ops.contexts import EvalContext
from mind_mlir.ops.infer import complete_attributes
from mind_mlir.ops.registry import by_opcode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import Block, CoreOperation, Function, Module

Values = dict[int, Any]


def run_blocks(module: Module, arguments: Mapping[str, Array], name: str = "main") -> tuple[Array, ...]:
    """Return the results of a public function of any verified module in function form."""
    function = module.functions[name]
    return _Run(module).function(function, [arguments[str(p.name)] for p in function.parameters])


@dataclass
class _Run:
    module: Module
    steps: int = 0

    def function(self, function: Function, arguments: Sequence[Array]) -> tuple[Array, ...]:
        blocks = {block.label: block for block in function.blocks}
        block = function.entry
        values: Values = {}
        while True:
            self.block(block, arguments, values)
            match block.terminator:
                case Branch(target):
                    pass
                case CondBranch() as branch:
                    target = branch.then if values[branch.condition] else branch.otherwise
                case returned:
                    return tuple(values[value] for value in returned.operands)
            arguments = [values[value] for value in target.arguments]
            block = blocks[target.label]

    def block(self, block: Block, arguments: Sequence[Array], values: Values) -> list[Array]:
        self.steps += 1
        assert self.steps < 200_000, "the program does not end"
        for parameter, array in zip(block.parameters, arguments, strict=True):
            type_ = parameter.tensor_type
            assert (array.dtype, array.shape) == (type_.dtype.numpy, type_.extents)
            values[parameter.value_id] = array
        for operation in block.operations:
            results = self.operation(operation, values)
            values.update(zip(operation.result_ids, results, strict=True))
        return [values[value] for value in block.terminator.operands]

    def operation(self, operation: CoreOperation, values: Values) -> Sequence[Array]:
        operands = [values[value] for value in operation.operands]
        if operation.opcode == "Call":
            return self.function(self.module.functions[str(operation.attributes["callee"])], operands)
        if operation.opcode == "Cond":
            return self.block(operation.regions[0 if operands[0] else 1], (), dict(values))
        if operation.opcode == "While":
            condition, body = operation.regions
            while True:
                more, *carried = self.block(condition, operands, dict(values))
                if not more:
                    return carried
                operands = self.block(body, carried, dict(values))
        if operation.opcode == "Not":
            return (np.logical_not(operands[0]),)
        record = by_opcode()[operation.opcode]
        attributes = complete_attributes(record, operation.attributes)
        context = EvalContext(
            operation.opcode, operation.label, tuple(operands), attributes, operation.tensor_type
        )
        with np.errstate(all="ignore"):
            return (np.asarray(record.evaluate(context)),)
