"""`structure`: the pass."""

from __future__ import annotations

from dataclasses import replace

from mind_mlir.ir.module import Block, Function, Functions, Module, Parameter, Return
from mind_mlir.passes.canonical.functions import canonical_function, canonical_functions, reachable
from mind_mlir.passes.structure.expansion import expand
from mind_mlir.passes.structure.graph import Edge, Graph
from mind_mlir.passes.structure.inline import inline_calls
from mind_mlir.passes.structure.level import Level
from mind_mlir.passes.structure.regions import RegionWriter
from mind_mlir.support.interrupts import deliver


def structure(module: Module) -> Module:
    """Return the structured form of a verified module, canonical or not.

    Every function is one block: parameters, operations and a return; branches and loops are in the regions of
    `Cond` and `While`, and what stands for other operations (`Scan`) has given way to them. Small functions
    and those called once are where they were called. The inputs of a flat module become parameters of their
    names, and all else stays as it is.

    Raises:
        UnsupportedError: E7004, branches and loops nest too deeply.
    """
    if module.is_flat:
        return _structured_flat(module)
    functions = Functions(
        canonical_function(expand(structure_function(function), module.profile))
        for function in module.functions
    )
    structured = reachable(replace(module, functions=functions))
    inlined = inline_calls(structured)
    return structured if inlined is structured else canonical_functions(inlined)


def structure_function(function: Function) -> Function:
    """Return a verified function in structured form: one block.

    Raises:
        UnsupportedError: E7004, branches and loops nest too deeply.
    """
    deliver()
    if len(function.blocks) == 1:
        return function
    graph = Graph.of(function)
    regions = RegionWriter(graph)
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
    types = {result.value_id: result.type for op in module.operations for result in op.results}
    results = tuple(types[value] for value in module.outputs)
    rest = tuple(op for op in module.operations if op.opcode != "Input")
    block = Block(rest, module.returned, parameters, "entry")
    function = replace(module.functions[0], blocks=(block,), result_types=results)
    return replace(module, functions=Functions((function,)))
