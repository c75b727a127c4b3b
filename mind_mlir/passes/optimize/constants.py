"""Evaluates what is made of large literals alone, when a program is compiled.

Before: a module in structured form, in which parameters that are declared constant are literals. After: the
same, where the values that are made of such literals alone, and that anything else reads, are literals,
too.

What may be evaluated is what `hoist_rules.may_go` says: it cannot fail. What is larger than the literals
that it is made of stays to be computed. So do views of the factors of products: how a factor is seen
decides how its products are summed, and it is laid out once anyway (`contraction/constant_factors`).
Filters of several elements are not read through views. The evaluation is that of compiled code: bits are
those of a program that computes these values by themselves.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.attributes import Attributes, TensorLiteral
from mind_mlir.ir.module import Block, CoreOperation, Function, Functions, Module, Return
from mind_mlir.ir.profiles import CORE_FUNCTIONS, CORE_V1
from mind_mlir.ir.types import TensorType
from mind_mlir.ops.constants import constant_form
from mind_mlir.ops.convolution_form import CONVOLUTIONS
from mind_mlir.ops.registry import by_opcode
from mind_mlir.passes.canonical.folding import MAX_FOLDED_ELEMENTS
from mind_mlir.passes.optimize.hoist_rules import SMALL_BYTES, bytes_of, may_go
from mind_mlir.support.interrupts import deliver

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import ValueId
    from mind_mlir.ir.types import ValueType
    from mind_mlir.passes.record import Evaluate


def prepare(module: Module, evaluate: Evaluate) -> Module:
    """Return ``module``, in structured form, with expressions of large literals evaluated.

    Args:
        module: What to change.
        evaluate: Runs a module of one function without arguments, and returns its results.
    """
    # A flat module has functions in structured form, which its profile does not know.
    profile = CORE_FUNCTIONS.name if module.profile == CORE_V1.name else module.profile
    functions = [_prepared(function, profile, evaluate) for function in module.functions]
    if all(one is other for one, other in zip(functions, module.functions, strict=True)):
        return module
    return replace(module, functions=Functions(functions))


def _prepared(function: Function, profile: str, evaluate: Evaluate) -> Function:
    (block,) = function.blocks
    known = _Known()
    known.enter(block)
    wanted = [value for value in known.read_by_others() if known.made_by[value].operands]
    if not wanted:
        return function
    deliver()
    needed = known.needed(wanted)
    types = tuple([known.types[value] for value in wanted])
    body = Block(tuple(needed), Return(tuple(wanted)))
    found = evaluate(Module(Functions((Function("main", (body,), True, types),)), profile))
    literals = [_literal(known.made_by[value], array) for value, array in zip(wanted, found, strict=True)]
    rest = _without(block, set(wanted))
    return replace(function, blocks=(replace(rest, operations=(*literals, *rest.operations)),))


def _literal(operation: CoreOperation, array: Array) -> CoreOperation:
    opcode, attributes = constant_form(TensorLiteral.from_array(array))
    return replace(operation, opcode=opcode, operands=(), attributes=Attributes.of(attributes))


def _without(block: Block, gone: set[ValueId]) -> Block:
    """Return ``block``, with all that is in its regions, without the operations that make ``gone``."""
    operations: list[CoreOperation] = []
    for operation in block.operations:
        if operation.value_id in gone:
            continue
        if operation.regions:
            inside = tuple([_without(region, gone) for region in operation.regions])
            operations.append(replace(operation, regions=inside))
        else:
            operations.append(operation)
    return replace(block, operations=tuple(operations))


class _Known:
    """The values of a function that are known when it is compiled.

    Attributes:
        types: The types of all values.
        made_by: The operations that make what is known.
        sources: Of what large literals make, how many bytes these have.
        wanted: Of what large literals make, in order, what is read by something else.
        views: Of these, views that products read.
    """

    def __init__(self) -> None:
        self.types: dict[ValueId, ValueType] = {}
        self.made_by: dict[ValueId, CoreOperation] = {}
        self.sources: dict[ValueId, int] = {}
        self.wanted: dict[ValueId, None] = {}
        self.views: set[ValueId] = set()

    def enter(self, block: Block) -> None:
        """Look at a block and what is in its regions, in order."""
        self.types.update((parameter.value_id, parameter.type) for parameter in block.parameters)
        for operation in block.operations:
            self.types.update((result.value_id, result.type) for result in operation.results)
            for region in operation.regions:
                self.enter(region)
            if not self._enter(operation):
                self._want(operation.operands, self._multiplies_matrices(operation))
        self._want(block.terminator.operands)

    def read_by_others(self) -> list[ValueId]:
        """Return what is to be there, in order: `wanted`, or what it is a view of."""
        found: dict[ValueId, None] = {}
        for each in self.wanted:
            value = each
            while value in self.views:
                (value,) = self.made_by[value].operands
            found[value] = None
        return list(found)

    def needed(self, values: Iterable[ValueId]) -> Sequence[CoreOperation]:
        """Return what makes ``values``, in order."""
        found: set[ValueId] = set()
        pending = list(values)
        while pending:
            value = pending.pop()
            if value not in found:
                found.add(value)
                pending += self.made_by[value].operands
        return [operation for value, operation in self.made_by.items() if value in found]

    def _multiplies_matrices(self, operation: CoreOperation) -> bool:
        """Return whether an operation has factors, and reads through views of these."""
        if by_opcode()[operation.opcode].terms is None:
            return False
        if operation.opcode not in CONVOLUTIONS:
            return True
        filter_ = self.types[operation.operands[1]]
        assert isinstance(filter_, TensorType), "a convolution has been verified"
        strides: Any = operation.attributes["strides"]
        return {*filter_.extents[:-2], *strides} <= {1}

    def _want(self, values: Iterable[ValueId], as_factors: bool = False) -> None:
        for value in values:
            if value not in self.sources:
                continue
            self.wanted[value] = None
            seen = value
            while as_factors and by_opcode()[self.made_by[seen].opcode].keeps_all:
                self.views.add(seen)
                (seen,) = self.made_by[seen].operands

    def _enter(self, operation: CoreOperation) -> bool:
        """Enter an operation whose result is known; return whether it is."""
        value, type_ = operation.value_id, operation.result_type
        if operation.others or operation.regions or not isinstance(type_, TensorType):
            return False
        if not operation.operands:
            literal = operation.attributes.get("value")
            if isinstance(literal, TensorLiteral):
                self.made_by[value] = operation
                if type_.element_count > MAX_FOLDED_ELEMENTS:
                    self.sources[value] = bytes_of(type_)
                return True
            if not by_opcode()[operation.opcode].is_static:
                return False
            self.made_by[value] = operation
            return True
        if any(read not in self.made_by for read in operation.operands) or not may_go(operation, self.types):
            return False
        size = sum(self.sources.get(read, 0) for read in set(operation.operands))
        if bytes_of(type_) > max(SMALL_BYTES, size):
            return False
        self.made_by[value] = operation
        if size:
            self.sources[value] = size
        return True
