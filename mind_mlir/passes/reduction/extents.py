"""Modules with other extents: each that is named becomes another wherever it stands, and types follow."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.module import Functions
from mind_mlir.ir.profiles import PROFILES
from mind_mlir.ir.regions import value_types
from mind_mlir.ir.types import TensorType
from mind_mlir.ops.contexts import TypeContext
from mind_mlir.ops.infer import infer_types
from mind_mlir.ops.registry import lookup
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.ir.module import Block, CoreOperation, Function, Module, ValueId
    from mind_mlir.ir.profiles import Profile
    from mind_mlir.ir.types import ValueType


def extents_of(module: Module) -> list[int]:
    """Return the extents of all values of a module, the greatest first."""
    return sorted({extent for type_ in _types(module) for extent in type_.extents}, reverse=True)


def element_count(module: Module) -> int:
    """Return how many elements all values of a module have together."""
    return sum(type_.element_count for type_ in _types(module))


def _types(module: Module) -> list[TensorType]:
    return [type_ for function in module.functions for type_ in value_types(function.blocks).values()]


def resized(module: Module, extents: Mapping[int, int]) -> Module:
    """Return ``module`` with other extents, which may break rules: not all programs can have them.

    Args:
        module: A verified module in structured form.
        extents: What becomes what, in types, in attributes that are lists, and in the data of constants.
    """
    change = _Change(extents, PROFILES[module.profile])
    return replace(module, functions=Functions(map(change.function, module.functions)))


@dataclass(frozen=True)
class _Change:
    extents: Mapping[int, int]
    profile: Profile

    def function(self, function: Function) -> Function:
        types: dict[ValueId, ValueType] = {}
        blocks = tuple([self._block(block, types) for block in function.blocks])
        returned = tuple([types[value] for value in blocks[0].terminator.operands])
        results = None if function.result_types is None else returned
        return replace(function, blocks=blocks, result_types=results, result_locations=())

    def _block(self, block: Block, types: dict[ValueId, ValueType]) -> Block:
        parameters = tuple([replace(each, type=self._type(each.type)) for each in block.parameters])
        types.update((each.value_id, each.type) for each in parameters)
        operations = []
        for operation in block.operations:
            operations.append(self._operation(operation, types))
            types.update((each.value_id, each.type) for each in operations[-1].results)
        return replace(block, parameters=parameters, operations=tuple(operations))

    def _operation(self, operation: CoreOperation, types: dict[ValueId, ValueType]) -> CoreOperation:
        changed = replace(
            operation,
            attributes={name: self._attribute(value) for name, value in operation.attributes.items()},
            result_type=self._type(operation.result_type),
            others=tuple([replace(each, type=self._type(each.type)) for each in operation.others]),
            regions=tuple([self._block(region, dict(types)) for region in operation.regions]),
        )
        record = lookup(operation.opcode)
        operands = tuple(
            [each for value in operation.operands if isinstance(each := types[value], TensorType)]
        )
        if record is None or operation.regions or operation.others or len(operands) < len(operation.operands):
            return changed
        declared = changed.result_type if isinstance(changed.result_type, TensorType) else None
        context = TypeContext(
            operation.opcode, operation.value_id, operands, changed.attributes, declared, profile=self.profile
        )
        inferred = infer_types(record, context)
        return replace(changed, result_type=inferred[0]) if inferred else changed

    def _type(self, type_: ValueType) -> ValueType:
        return type_.with_shape(self._extents(type_.extents)) if isinstance(type_, TensorType) else type_

    def _extents(self, extents: tuple[int, ...]) -> tuple[int, ...]:
        return tuple([self.extents.get(extent, extent) for extent in extents])

    def _attribute(self, value: Any) -> Any:
        if isinstance(value, TensorLiteral):
            shape = self._extents(value.type.extents)
            size = math.prod(shape)  # elements from the first on, and again where there are too few
            return TensorLiteral.from_array(np.resize(value.array, size).reshape(shape)) if size else value
        if isinstance(value, tuple) and all(type(each) is int for each in value):
            return self._extents(value)
        return value
