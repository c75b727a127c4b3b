"""What is left out of a module, part by part: outputs and operations, which are counted in program order."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from mind_mlir.ir.analysis.call_graph import operations_of
from mind_mlir.ir.module import CoreOperation, Functions, Parameter, Return, Yield
from mind_mlir.ir.regions import live_operations, reads

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from mind_mlir.ir.module import Block, Function, Module, Result, ValueId
    from mind_mlir.ir.types import ValueType


def output_count(module: Module) -> int:
    """Return how many outputs the exported functions of ``module`` have together."""
    return sum(len(each.blocks[0].terminator.operands) for each in module.functions if each.public)


def without_outputs(module: Module, places: Collection[int]) -> Module:
    """Return ``module`` without some of its outputs, which are counted through its exported functions."""
    return _with_outputs(module, places, lambda _: ())


def sooner(module: Module, places: Collection[int]) -> Module:
    """Return ``module`` with what some of its outputs are computed from in their place."""
    return _with_outputs(module, places, lambda maker: maker.operands if maker else ())


def _with_outputs(
    module: Module, places: Collection[int], instead: Callable[[CoreOperation | None], tuple[ValueId, ...]]
) -> Module:
    number = count()

    def changed(function: Function) -> Function:
        if not function.public:
            return function
        (block,) = function.blocks
        makers = {value: each for each in block.operations for value in each.result_ids}
        returned: dict[ValueId, None] = {}
        for value in block.terminator.operands:
            returned.update(dict.fromkeys(instead(makers.get(value)) if next(number) in places else (value,)))
        types = None if function.result_types is None else tuple([_types(block)[value] for value in returned])
        other = replace(function, result_types=types, result_locations=())
        return _finished(other, replace(block, terminator=Return(tuple(returned))))

    return _mapped(module, changed)


def _types(block: Block) -> dict[ValueId, ValueType]:
    """Return the types of all values of ``block`` and the blocks within it."""
    found = {each.value_id: each.type for each in block.parameters}
    found.update((each.value_id, each.type) for made in operations_of([block]) for each in made.results)
    return found


def operation_count(module: Module) -> int:
    """Return how many operations ``module`` has, in regions, too; inputs are none."""
    return sum(len(_operations(each)) for each in module.functions)


def body_count(module: Module) -> int:
    """Return how many operations of a module have regions."""
    return sum(bool(each.regions) for function in module.functions for each in _operations(function))


def _operations(function: Function) -> list[CoreOperation]:
    return [each for each in operations_of(function.blocks) if each.opcode != "Input"]


def without_operations(module: Module, places: Collection[int]) -> Module:
    """Return ``module`` where the results of some operations are inputs of their functions."""
    number = count()

    def changed(function: Function) -> Function:
        left_out = {each.value_id: each for each in _operations(function) if next(number) in places}
        made = [each for operation in left_out.values() for each in operation.results]
        return _finished(function, _without(function.blocks[0], left_out, {}), made)

    return _mapped(module, changed)


def around_operations(module: Module, places: Collection[int]) -> Module:
    """Return ``module`` where operands of the same type take the place of the results of operations."""
    number = count()

    def changed(function: Function) -> Function:
        types = _types(function.blocks[0])
        instead: dict[ValueId, ValueId] = {}
        for each in _operations(function):
            same = [value for value in each.operands if types.get(value) == each.result_type]
            if next(number) in places and same and not each.others:
                instead[each.value_id] = instead.get(same[0], same[0])
        return _finished(function, _without(function.blocks[0], instead, instead))

    return _mapped(module, changed)


def with_bodies(module: Module, places: Collection[int]) -> Module:
    """Return ``module`` where some of the operations with regions are what the last one does, once."""
    number = count()

    def changed(function: Function) -> Function:
        chosen = {each.value_id for each in _operations(function) if each.regions and next(number) in places}
        return _finished(function, _inlined(function.blocks[0], chosen, {}))

    return _mapped(module, changed)


def _inlined(block: Block, chosen: Collection[ValueId], instead: dict[ValueId, ValueId]) -> Block:
    """Return ``block`` with the last regions of the ``chosen`` operations in their place."""
    operations: list[CoreOperation] = []
    for each in block.operations:
        operands = _renamed(each.operands, instead)
        body = each.regions[-1] if each.value_id in chosen else None
        if body is None or not _fits(each, body):
            regions = tuple([_inlined(region, chosen, instead) for region in each.regions])
            operations.append(replace(each, operands=operands, regions=regions))
            continue
        parameters = [parameter.value_id for parameter in body.parameters]
        instead.update(zip(parameters, operands[len(operands) - len(parameters) :], strict=True))
        body = _inlined(body, chosen, instead)
        operations.extend(body.operations)
        instead.update(zip(each.result_ids, body.terminator.operands, strict=True))
    end = block.terminator
    leaves = Return if isinstance(end, Return) else Yield
    returned = leaves(_renamed(end.operands, instead))
    return replace(block, operations=tuple(operations), terminator=returned)


def _fits(operation: CoreOperation, body: Block) -> bool:
    """Return whether a region takes the last operands of an operation, and yields its results."""
    takes = len(body.parameters) <= len(operation.operands)
    return takes and len(body.terminator.operands) == len(operation.results)


def _renamed(values: Iterable[ValueId], instead: Mapping[ValueId, ValueId]) -> tuple[ValueId, ...]:
    return tuple([instead.get(value, value) for value in values])


def _mapped(module: Module, changed: Callable[[Function], Function]) -> Module:
    return replace(module, functions=Functions(changed(each) for each in module.functions))


def _without(block: Block, left_out: Collection[ValueId], instead: Mapping[ValueId, ValueId]) -> Block:
    """Return ``block`` without some operations, and reading other values instead of theirs."""
    operations = [
        replace(
            each,
            operands=_renamed(each.operands, instead),
            regions=tuple([_without(region, left_out, instead) for region in each.regions]),
        )
        for each in block.operations
        if each.value_id not in left_out
    ]
    end = block.terminator
    leaves = Return if isinstance(end, Return) else Yield
    terminator = leaves(_renamed(end.operands, instead))
    return replace(block, operations=tuple(operations), terminator=terminator)


def _finished(function: Function, block: Block, made: Iterable[Result] = ()) -> Function:
    """Return ``function`` with ``block``, of which what the outputs need stays.

    Those of ``made`` that are needed become inputs: instructions of a flat function, parameters of another.
    """
    operations = live_operations(block.operations, block.terminator.operands)
    read = {*block.terminator.operands, *(value for each in operations for value in reads(each))}
    needed = [each for each in made if each.value_id in read]
    if function.result_types is None:
        inputs = [
            CoreOperation(each.value_id, "Input", (), {"name": f"value{each.value_id}"}, each.type)
            for each in needed
        ]
        return replace(function, blocks=(replace(block, operations=(*inputs, *operations)),))
    parameters = [
        *(each for each in block.parameters if each.value_id in read or not function.public),
        *(
            Parameter(each.value_id, each.type, name=f"value{each.value_id}" if function.public else None)
            for each in needed
        ),
    ]
    changed = replace(block, parameters=tuple(parameters), operations=tuple(operations))
    return replace(function, blocks=(changed,))
