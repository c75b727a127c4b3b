"""Puts the operations that custom calls are made of in their place (ptir-v0.4.md, "Custom calls").

Before: a verified module. After: the same, without custom calls but of C functions. All later stages see
operations alone: so gradients go through expansions, and the scheduler fuses them with what is around them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mind_mlir.builders.builder import Builder
from mind_mlir.diagnostics import Diagnostic, VerificationError
from mind_mlir.ir.analysis.call_graph import CUSTOM_CALL, operations_of
from mind_mlir.ir.module import Functions
from mind_mlir.ir.regions import value_types
from mind_mlir.ir.value import Value
from mind_mlir.ops.custom_call import known
from mind_mlir.passes.canonical.body import FunctionBlocks
from mind_mlir.support.interrupts import deliver

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mind_mlir.ir.module import Block, CoreOperation, Function, Module

#: How deep expansions that hold custom calls themselves may go.
_DEPTH = 16


def expanded(module: Module) -> Module:
    """Return a verified module with its custom calls expanded; itself where there are none.

    Raises:
        VerificationError: E4311, an expansion does not give what the type rule of its target says, or leads
            to itself; or what it appends breaks a rule.
    """
    functions = tuple(
        _Expansion(module.profile, function).function() if _has_calls(function) else function
        for function in module.functions
    )
    if all(new is old for new, old in zip(functions, module.functions, strict=True)):
        return module
    return replace(module, functions=Functions(functions))


def _has_calls(function: Function) -> bool:
    return any(operation.opcode == CUSTOM_CALL for operation in operations_of(function.blocks))


class _Expansion:
    """Expands the calls of one function."""

    def __init__(self, profile: str, function: Function) -> None:
        self._profile = profile
        self._function = function
        self._types = value_types(function.blocks)
        self._next = max(self._types, default=-1) + 1
        #: What the results of calls are now.
        self._now = FunctionBlocks({})

    def function(self) -> Function:
        """Return the function without the calls."""
        made = [self._expanded(block) for block in self._function.blocks]
        blocks = tuple(self._now.read_anew(block) for block in made)  # for blocks come in any order
        return replace(self._function, blocks=blocks)

    def _expanded(self, block: Block) -> Block:
        operations = [new for operation in block.operations for new in self._operation(operation, 0)]
        return replace(block, operations=tuple(operations))

    def _operation(self, operation: CoreOperation, depth: int) -> Iterator[CoreOperation]:
        deliver()
        if operation.regions:
            yield replace(operation, regions=tuple(self._expanded(each) for each in operation.regions))
        elif operation.opcode == CUSTOM_CALL:
            yield from self._call(operation, depth)
        else:
            yield operation

    def _call(self, operation: CoreOperation, depth: int) -> Iterator[CoreOperation]:
        target, attributes = known(operation.attributes)
        if target.expand is None:
            yield operation
            return
        if depth == _DEPTH:
            raise _wrong(operation, f"expansions nest deeper than {_DEPTH}: one leads to itself", target.name)
        builder = Builder(profile=self._profile, next_id=self._next)
        values = tuple(Value(operand, self._types[operand], builder) for operand in operation.operands)
        found = target.expand(builder, values, attributes)
        results = (found,) if isinstance(found, Value) else tuple(found)
        self._check(operation, results, builder, target.name)
        self._next = builder.next_id
        self._now.same.update(zip(operation.result_ids, (value.id for value in results), strict=True))
        for each in builder.operations:
            self._types.update(zip(each.result_ids, each.result_types, strict=True))
            placed = replace(each, source=operation.source, origin=f"in the expansion of {operation.label}")
            yield from self._operation(placed, depth + 1)

    def _check(
        self, operation: CoreOperation, results: Sequence[object], builder: Builder, name: str
    ) -> None:
        types = [each.type for each in results if isinstance(each, Value) and each.builder is builder]
        if tuple(types) != operation.result_types or len(types) != len(results):
            wanted = ", ".join(map(str, operation.result_types))
            found = ", ".join(map(str, types)) or "nothing"
            raise _wrong(operation, f"its expansion gives {found}, its type rule says {wanted}", name)


def _wrong(operation: CoreOperation, what: str, target: str) -> VerificationError:
    return VerificationError(
        Diagnostic(
            "E4311",
            f"{target} in {operation.label} cannot be expanded: {what}",
            operation.location,
            help="this is for who registered the target to mend",
            context={"target": target, "operation": operation.opcode, "value": operation.value_id},
        )
    )
