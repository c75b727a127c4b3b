"""A run of a program as a program without control flow: every operation that ran, in its order."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy.typing as npt

from mind_mlir.interpreter import evaluate
from mind_mlir.ir.module import (
    Block,
    Branch,
    CondBranch,
    CoreOperation,
    Function,
    Functions,
    Module,
    Return,
    Target,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Array: TypeAlias = npt.NDArray[Any]


def unroll(module: Module, arguments: Mapping[str, Array], function: str = "main") -> Module:
    """Return a function of one block that does what ``function`` does for ``arguments``, step by step.

    Args:
        module: A verified module in function form, without region operations.
        arguments: By name; they decide the way through branches and loops.
        function: The function to run.
    """
    run = _Run(module)
    entry = module.functions[function]
    parameters = [replace(p, value_id=run.fresh(arguments[str(p.name)])) for p in entry.parameters]
    results = run.call(entry, [p.value_id for p in parameters])
    block = Block(tuple(run.operations), Return(tuple(results)), tuple(parameters))
    unrolled = Function(function, (block,), result_types=entry.result_types)
    return Module(Functions([unrolled]), module.profile)


@dataclass
class _Run:
    module: Module
    operations: list[CoreOperation] = field(default_factory=list)
    #: The value of each id of the unrolled program.
    values: list[Array] = field(default_factory=list)

    def fresh(self, array: Array) -> int:
        self.values.append(array)
        return len(self.values) - 1

    def call(self, function: Function, arguments: Sequence[int]) -> list[int]:
        """Run ``function`` on values of the unrolled program, and return its results as such."""
        blocks = {block.label: block for block in function.blocks}
        block, given = function.entry, list(arguments)
        #: From values of the program to those of the unrolled one.
        names: dict[int, int] = {}
        while True:
            names.update(zip((p.value_id for p in block.parameters), given, strict=True))
            for operation in block.operations:
                operands = [names[value] for value in operation.operands]
                if operation.opcode == "Call":
                    results = self.call(self.module.functions[str(operation.attributes["callee"])], operands)
                    names.update(zip(operation.result_ids, results, strict=True))
                else:
                    names[operation.value_id] = self.step(operation, operands)
            target: Target
            match block.terminator:
                case Return(operands=returned):
                    return [names[value] for value in returned]
                case Branch(target=target):
                    pass
                case CondBranch(condition=condition, then=then, otherwise=otherwise):
                    target = then if self.values[names[condition]] else otherwise
            given = [names[value] for value in target.arguments]
            block = blocks[target.label]

    def step(self, operation: CoreOperation, operands: Sequence[int]) -> int:
        result = self.fresh(evaluate(operation, [self.values[value] for value in operands]))
        self.operations.append(
            CoreOperation.create(
                result, operation.opcode, operands, operation.attributes, operation.result_type
            )
        )
        return result
