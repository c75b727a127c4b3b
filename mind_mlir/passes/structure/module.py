"""`structure`: the pass."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mind_mlir.diagnostics import Diagnostic, UnsupportedError
from mind_mlir.interrupts import deliver
from mind_mlir.ir.module import Block, Function, Functions, Module, Parameter, Return
from mind_mlir.passes.canonical.functions import canonical_function, canonical_functions, reachable
from mind_mlir.passes.structure.graph import Edge, Graph
from mind_mlir.passes.structure.inline import inline_calls
from mind_mlir.passes.structure.level import Level
from mind_mlir.passes.structure.regions import Regions

if TYPE_CHECKING:
    from mind_mlir.diagnostics import Location


def structure(module: Module) -> Module:
    """Return the structured form of a verified module, canonical or not.

    Every function is one block: parameters, operations and a return; branches and loops are in the regions of
    `Cond` and `While`. Small functions and those called once are where they were called. The inputs of a flat
    module become parameters of their names, and all else stays as it is.

    Raises:
        UnsupportedError: E7004, branches and loops nest too deeply; E7005, a loop has no exit.
    """
    if module.is_flat:
        return _structured_flat(module)
    functions = Functions(canonical_function(structure_function(f)) for f in module.functions)
    structured = reachable(replace(module, functions=functions))
    inlined = inline_calls(structured)
    return structured if inlined is structured else canonical_functions(inlined)


def structure_function(function: Function) -> Function:
    """Return a verified function in structured form: one block.

    Raises:
        UnsupportedError: E7004, branches and loops nest too deeply; E7005, a loop has no exit.
    """
    deliver()
    if len(function.blocks) == 1:
        return function
    require_exits(function)
    graph = Graph.of(function)
    regions = Regions(graph)
    out = regions.out
    entry = graph.nodes[0]
    parameters = [replace(out.parameter(parameter), name=parameter.name) for parameter in function.parameters]
    edge = Edge(entry, [parameter.value_id for parameter in function.parameters])
    level = Level.of(graph, graph.nodes, edge)
    arguments = [out.now[value] if type(value) is int else value for value in edge.arguments]
    returned = regions.walk(level, edge.target, arguments, graph.end)
    values = [
        out.value(argument, parameter.tensor_type)
        for argument, parameter in zip(returned, graph.end.parameters, strict=True)
    ]
    block = Block(tuple(out.operations), Return(tuple(values)), tuple(parameters), "entry")
    return replace(function, blocks=(block,))


def _structured_flat(module: Module) -> Module:
    inputs = [op for op in module.operations if op.opcode == "Input"]
    parameters = tuple(
        Parameter(op.value_id, op.result_type, op.location, str(op.attributes["name"]), op.names, op.origin)
        for op in inputs
    )
    types = {op.value_id: op.result_type for op in module.operations}
    results = tuple(types[value] for value in module.outputs)
    rest = tuple(op for op in module.operations if op.opcode != "Input")
    block = Block(rest, module.returned, parameters, "entry")
    function = replace(module.functions[0], blocks=(block,), result_types=results)
    return replace(module, functions=Functions((function,)))


def require_exits(function: Function) -> None:
    """Raise E7005 for each block from which no return can be reached."""
    predecessors: dict[str, list[str]] = {block.label: [] for block in function.blocks}
    for block in function.blocks:
        for target in block.terminator.targets:
            predecessors[target.label].append(block.label)
    pending = [block.label for block in function.blocks if isinstance(block.terminator, Return)]
    ends = set(pending)
    while pending:
        for label in predecessors[pending.pop()]:
            if label not in ends:
                ends.add(label)
                pending.append(label)
    endless = next((block for block in function.blocks if block.label not in ends), None)
    if endless is not None:
        raise UnsupportedError(_no_exit(function, endless.label, endless.location))


def _no_exit(function: Function, label: str, location: Location | None) -> Diagnostic:
    return Diagnostic(
        "E7005",
        f"a loop has no exit: from ^{label} of @{function.name} no return can be reached",
        location,
        help="let a cond_br lead out of the loop",
        context={"function": function.name, "block": label},
    )
