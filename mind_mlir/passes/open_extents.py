"""Makes a program for a range of extents of the same program for several extents in this range.

Before: verified modules that export one function each, made for the greatest extents of some open dimensions,
for these with one extent after the other the least of its range, and for extents between. After: a module
whose function takes arguments of the greatest extents, and besides the extents that a call has. What lies
beyond these is padding, of arguments (where it is zero), of results and of all between.

Where the modules differ in more than what follows the extents, or an operation has no rule for open axes
(`mind_mlir.ops.open_axes`), there is no such program.
"""

from __future__ import annotations

from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mind_mlir.builders.builder import Builder
from mind_mlir.ir.module import Functions, Module
from mind_mlir.ir.profiles import EXTENDED_FUNCTIONS
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops import registry
from mind_mlir.ops.open_axes import (
    Axis,
    Factor,
    Masks,
    NotOpen,
    OpenContext,
    OpenValue,
    axis_of,
    closed,
    extent_of,
)
from mind_mlir.ops.open_rules import MOVEMENTS, elementwise
from mind_mlir.passes.canonicalize import canonical
from mind_mlir.passes.forms import without_custom_calls
from mind_mlir.passes.structure.inline import inline_calls
from mind_mlir.passes.structure.module import structure_function
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.module import Block, CoreOperation, Function, ValueId
    from mind_mlir.ir.value import Value
    from mind_mlir.ops.opdef import OpDef
    from mind_mlir.ops.rules import OpenRule


class OpenModule(NamedTuple):
    """A program for a range of extents.

    Attributes:
        module: It; the parameters behind those of the program are the extents of a call, i64 each.
        parameters: The axes of the program's parameters.
        results: The axes of its results.
    """

    module: Module
    parameters: tuple[tuple[Axis, ...], ...]
    results: tuple[tuple[Axis, ...], ...]


def for_open_extents(
    modules: Sequence[Module], extents: Sequence[tuple[int, ...]], names: Sequence[str]
) -> OpenModule:
    """Return a program for all extents between those of modules.

    Args:
        modules: The program for the greatest extents, for each symbol with the least extent of that, and for
            others on which what has been learnt is tried.
        extents: The extents of the symbols in each of them.
        names: The names of the parameters that take the extents.

    Raises:
        NotOpen: There is no such program.
    """
    functions = [_function(module) for module in modules]
    blocks = [function.blocks[0] for function in functions]
    builder = Builder(profile=EXTENDED_FUNCTIONS.name)
    inputs = [_inputs(block) for block in blocks]
    if len({len(each) for each in inputs}) > 1:
        raise NotOpen("the program takes other arguments for other extents")
    axes = [_parameter_axes(same, extents) for same in zip(*inputs, strict=True)]
    values = [
        _parameter(builder.parameter(each.type, each.name), own)
        for each, own in zip(inputs[0], axes, strict=True)
    ]
    counts = [builder.parameter(TensorType(DType.SI64, ()), name) for name in names]
    driver = _Driver(builder, extents, counts)
    driver.values.update({each.id: value for each, value in zip(inputs[0], values, strict=True)})
    results = driver.run(blocks)
    function = builder.function(functions[0].name, [each.value for each in results])
    module = Module(Functions([function]), EXTENDED_FUNCTIONS.name)
    return OpenModule(module, tuple(axes), tuple([each.axes for each in results]))


def _parameter(value: Value, axes: tuple[Axis, ...]) -> OpenValue:
    made = OpenValue(value, axes, np.zeros((), value.type.dtype.numpy))
    made.along = made.open_axes
    return made


class _Input(NamedTuple):
    id: ValueId
    type: TensorType
    name: str | None


def _function(module: Module) -> Function:
    """Return the one function of a module, as one block without calls."""
    made = canonical(without_custom_calls(module), most=1)  # what is folded is not to depend on extents
    functions = made.functions if made.is_flat else Functions(map(structure_function, made.functions))
    if not made.is_flat:
        functions = inline_calls(replace(made, functions=functions), every=True).functions
    (function,) = functions
    return function


def _inputs(block: Block) -> list[_Input]:
    found = [_Input(each.value_id, each.tensor_type, each.name) for each in block.parameters]
    return found + [
        _Input(each.value_id, each.tensor_type, str(each.attributes["name"]))
        for each in block.operations
        if each.opcode == "Input"
    ]


def _parameter_axes(same: Sequence[_Input], extents: Sequence[tuple[int, ...]]) -> tuple[Axis, ...]:
    """Return the axes of a parameter, as its types in all programs tell."""
    axes = []
    for numbers in zip(*(each.type.extents for each in same), strict=True):
        least = numbers[1 : len(extents[0]) + 1]
        moved = [place for place, number in enumerate(least) if number != numbers[0]]
        if not moved:
            axes.append(axis_of([Factor(numbers[0])]))
            continue
        (symbol,) = moved
        axes.append(axis_of([Factor(numbers[0], symbol, numbers[0] - extents[0][symbol])]))
    return tuple(axes)


@dataclass(slots=True)
class _Driver:
    """Gives each operation to its rule.

    Attributes:
        builder: Takes what the rules append.
        extents: The extents of the symbols in each program.
        counts: The extents of a call.
        values: What has been made so far, by the ids of the program of the greatest extents.
        masks: What tells elements from padding, in the region that is made.
    """

    builder: Builder
    extents: Sequence[tuple[int, ...]]
    counts: Sequence[Value]
    values: dict[ValueId, OpenValue] = field(default_factory=dict)
    masks: Masks = field(default_factory=Masks)

    def run(self, blocks: Sequence[Block]) -> list[OpenValue]:
        """Append what a block does, which all programs have, and return what it ends with."""
        first, *others = blocks
        if len({len(each.operations) for each in blocks}) > 1:
            raise NotOpen("the program has other operations for other extents")
        for operation, *versions in zip(*(each.operations for each in blocks), strict=True):
            if operation.opcode == "Input":
                continue
            if any(not _is_alike(operation, version) for version in versions):
                raise NotOpen("the program does something else for other extents", operation)
            for id_, value in zip(operation.result_ids, self._results(operation, versions), strict=True):
                self.values[id_] = value
        if any(each.terminator != first.terminator for each in others):
            raise NotOpen("the program returns other values for other extents")
        return [self.values[each] for each in first.terminator.operands]

    def _region(self, blocks: Sequence[Block], arguments: Sequence[OpenValue]) -> list[OpenValue]:
        """Append what a region does with ``arguments``, where the builder stands."""
        parameters = blocks[0].parameters
        self.values.update({each.value_id: value for each, value in zip(parameters, arguments, strict=True)})
        self.masks = Masks(around=self.masks)
        try:
            return self.run(blocks)
        finally:
            assert self.masks.around is not None, "it has been entered"
            self.masks = self.masks.around

    def _results(self, operation: CoreOperation, versions: Sequence[CoreOperation]) -> list[OpenValue]:
        record = registry.by_opcode()[operation.opcode]
        regions = [
            partial(self._region, [each.regions[index] for each in (operation, *versions)])
            for index in range(len(operation.regions))
        ]
        context = OpenContext(
            self.builder,
            record,
            operation,
            versions,
            tuple([self.values[each] for each in operation.operands]),
            self.extents,
            self.counts,
            self.masks,
            regions,
        )
        rule = _rule_of(record) or _closed
        found = rule(context)
        for place, value in enumerate(found):
            for each, extents in zip((operation, *versions), self.extents, strict=True):
                told = tuple([extent_of(axis, extents) for axis in value.axes])
                if told != each.result_types[place].extents:
                    context.refuse("its shape does not follow the open dimensions of its operands")
        return found


def _rule_of(record: OpDef) -> OpenRule | None:
    """Return the rule of an operation, or that of its class."""
    if record.open_axes is not None:
        return record.open_axes
    if record.movement is not None and record.movement in MOVEMENTS:
        return MOVEMENTS[record.movement]
    return elementwise if record.vector_operations else None


def _closed(context: OpenContext) -> list[OpenValue]:
    """Repeat an operation whose operands have fixed extents, and that has no rule for others."""
    if context.regions or any(each.is_open for each in context.operands):
        context.refuse("there is no rule for it with an open dimension")
    context.expect_same()
    types = context.operation.result_types
    return [
        OpenValue(value, closed(type_.extents)) for value, type_ in zip(context.repeat(), types, strict=True)
    ]


def _is_alike(operation: CoreOperation, other: CoreOperation) -> bool:
    """Return whether an operation of another program is the same but for extents and attributes."""
    return (
        (operation.opcode, operation.operands, operation.result_ids)
        == (other.opcode, other.operands, other.result_ids)
        and len(operation.regions) == len(other.regions)
        and set(operation.attributes) == set(other.attributes)
    )
