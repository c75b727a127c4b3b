"""The canonical form of a module of functions: their blocks and regions are simplified in rounds.

A round folds constants along the blocks, in reverse postorder, so that all that follows from a value is known
in the same round unless it goes around a loop. Branches on constants become plain, parameters that always get
the same value become that value, and a block that only one plain branch reaches joins the block before it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mind_mlir.ir.analysis.call_graph import CallGraph
from mind_mlir.ir.module import Branch, CondBranch, Functions
from mind_mlir.ir.regions import defined_within
from mind_mlir.ops.region_flow import pairs_of
from mind_mlir.ops.registry import by_opcode
from mind_mlir.passes.canonical.body import FunctionBlocks, numbered
from mind_mlir.passes.canonical.folding import MAX_FOLDED_ELEMENTS, Folder
from mind_mlir.passes.canonical.liveness import prune
from mind_mlir.support.interrupts import deliver

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.module import Block, CoreOperation, Function, Module, Target, Terminator, ValueId
    from mind_mlir.passes.canonical.body import MutableBlock


def canonical_functions(module: Module, most: int = MAX_FOLDED_ELEMENTS) -> Module:
    """Return the canonical form of a verified module of functions."""
    functions = [canonical_function(function, most) for function in module.functions]
    return reachable(replace(module, functions=Functions(functions)))


def canonical_function(function: Function, most: int = MAX_FOLDED_ELEMENTS) -> Function:
    """Return the canonical form of a verified function.

    Rounds go on as long as they find something that may lead to more: a few, unless loops nest deeply.
    """
    code = FunctionBlocks.of(function)
    while True:
        code.changed = False
        _simplify(code, most)
        _resolve(code)
        prune(code)
        if not code.changed:
            return numbered(code, function)


def _resolve(code: FunctionBlocks) -> None:
    for body in code.bodies.values():
        body.terminator = code.resolved(body.terminator)
        body.operations = [code.renamed(operation) for operation in body.operations]


def reachable(module: Module) -> Module:
    """Return a module without the functions that no exported one calls, directly or not."""
    graph = CallGraph.of(module.functions)
    reached = graph.reached(function.name for function in module.functions if function.public)
    if len(reached) == len(module.functions):
        return module
    kept = Functions(function for function in module.functions if function.name in reached)
    return replace(module, functions=kept)


# Rounds


def _simplify(code: FunctionBlocks, most: int) -> None:
    """Do one round; `FunctionBlocks.changed` says whether another one may find more."""
    code.order()
    _fold(code, most)
    code.order()
    _same_arguments(code)
    _join_blocks(code)


def _fold(code: FunctionBlocks, most: int) -> None:
    folder = Folder(flags=True, most=most)
    incoming = code.incoming()
    waiting = {label: len(edges) for label, edges in incoming.items()}
    arrived: dict[str, list[Target]] = {label: [] for label in incoming}
    entry = code.entry
    for body in code.bodies.values():
        if body is not entry and not waiting[body.label]:
            _replace_parameters(code, body, arrived[body.label])
        body.operations = _operations(code, folder, body.operations)
        terminator = code.resolved(body.terminator)
        body.terminator = _terminator(code, folder, terminator)
        for target in terminator.targets:
            waiting[target.label] -= 1
        for target in body.terminator.targets:
            arrived[target.label].append(target)


def _replace_parameters(code: FunctionBlocks, body: MutableBlock, edges: Sequence[Target]) -> None:
    """Replace the parameters for which all ``edges`` pass the same value, or the parameter itself."""
    if not edges or not body.parameters:
        return
    for index, parameter in enumerate(body.parameters):
        value = parameter.value_id
        passed = {code.find(edge.arguments[index]) for edge in edges}
        passed.discard(code.find(value))
        if len(passed) == 1 and code.find(value) == value:
            code.replace_value(value, passed.pop())


def _terminator(code: FunctionBlocks, folder: Folder, terminator: Terminator) -> Terminator:
    if not isinstance(terminator, CondBranch):
        return terminator
    chosen = folder.flag(terminator.condition)
    if chosen is None and terminator.then != terminator.otherwise:
        return terminator
    code.changed = True
    return Branch(terminator.otherwise if chosen is False else terminator.then, terminator.location)


def _same_arguments(code: FunctionBlocks) -> None:
    """Replace parameters, around loops too, until no more are found; each sweep ends a level of loops."""
    incoming = code.incoming()
    entry = code.entry
    known = -1
    while known != len(code.same):
        known = len(code.same)
        for body in code.bodies.values():
            if body is not entry:
                _replace_parameters(code, body, incoming[body.label])


def _join_blocks(code: FunctionBlocks) -> None:
    """Join each block that only one plain branch reaches with the block before it."""
    incoming = code.incoming()
    entry = code.entry
    for label in list(code.bodies):
        body = code.bodies.get(label)
        if body is None:
            continue
        while isinstance(body.terminator, Branch):
            target = body.terminator.target
            following = code.bodies[target.label]
            if following is entry or following is body or len(incoming[target.label]) > 1:
                break
            for parameter, argument in zip(following.parameters, target.arguments, strict=True):
                if code.find(parameter.value_id) == parameter.value_id:
                    code.replace_value(parameter.value_id, argument)
            body.operations += following.operations
            body.terminator = following.terminator
            del code.bodies[target.label]
            code.changed = True


# Regions


def _operations(
    code: FunctionBlocks, folder: Folder, operations: Sequence[CoreOperation]
) -> list[CoreOperation]:
    """Return what is left of the operations of a block."""
    simplified: list[CoreOperation] = []
    for operation in operations:
        deliver()
        operation = code.reading(operation)  # noqa: PLW2901 -- the same one, renamed
        if not operation.regions:
            simplified.append(folder.fold(operation))
        elif operation.opcode == "Cond" and (chosen := folder.flag(operation.operands[0])) is not None:
            region = operation.regions[0 if chosen else 1]
            simplified += _operations(code, folder, region.operations)
            for result, value in zip(operation.result_ids, region.terminator.operands, strict=True):
                code.replace_value(result, code.find(value))
        else:
            simplified.append(_with_regions(code, folder, operation))
    return simplified


def _with_regions(code: FunctionBlocks, folder: Folder, operation: CoreOperation) -> CoreOperation:
    regions = tuple(_region(code, folder, region) for region in operation.regions)
    operation = replace(operation, regions=regions)
    if by_opcode()[operation.opcode].expand is None:
        _hand_on(code, operation)
    return operation


def _hand_on(code: FunctionBlocks, operation: CoreOperation) -> None:
    """Replace what is always one value from around the operation: results, and parameters of its regions.

    So is what a loop carries and never changes, and what both branches yield.
    """
    sources: dict[ValueId, list[ValueId]] = {}
    for value, target in pairs_of(operation):
        sources.setdefault(target, []).append(value)
    inside: set[ValueId] | None = None
    only = {target: values[0] for target, values in sources.items() if len(values) == 1}
    for target, values in sources.items():
        found = {code.find(only.get(value, value)) for value in values} - {target}
        if len(found) != 1 or code.find(target) != target:
            continue
        inside = defined_within(operation) if inside is None else inside
        if found.isdisjoint(inside):
            code.replace_value(target, *found)


def _region(code: FunctionBlocks, folder: Folder, region: Block) -> Block:
    operations = _operations(code, folder, region.operations)
    return replace(region, operations=tuple(operations), terminator=code.resolved(region.terminator))
