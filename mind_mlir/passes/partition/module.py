"""`partitioned`: the pass."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.diagnostics import Diagnostic, UnsupportedError, VerificationError
from mind_mlir.ir.analysis.call_graph import operations_of
from mind_mlir.ir.analysis.meshes import MESH
from mind_mlir.ir.attributes import Attributes
from mind_mlir.ir.mesh import MeshError, mesh_of
from mind_mlir.ir.module import CoreOperation, Functions, Module, Return
from mind_mlir.ir.names import NO_NAMES
from mind_mlir.ir.profiles import EXTENDED_FUNCTIONS
from mind_mlir.ir.regions import value_types
from mind_mlir.ir.sharding import Sharding
from mind_mlir.passes.canonical.functions import canonical_functions
from mind_mlir.passes.partition.propagation import SHARD, Divisions
from mind_mlir.passes.partition.rewriting import Rewriting
from mind_mlir.passes.partition.rows import with_rows
from mind_mlir.passes.structure.inline import inline_calls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.mesh import Mesh
    from mind_mlir.ir.module import Function, ValueId
    from mind_mlir.ir.types import TensorType


class LocalForm(NamedTuple):
    """A program whose function takes and returns parts.

    Attributes:
        module: The program: one function.
        parameters: How its arguments are divided.
        results: How its results are.
        whole: The types of the whole results.
    """

    module: Module
    parameters: tuple[Sharding, ...]
    results: tuple[Sharding, ...]
    whole: tuple[TensorType, ...]


def partitioned(module: Module) -> Module:
    """Return a module in structured form as each rank of its mesh runs it.

    Before: annotations (`Shard`) say how some values are divided. After: there are none; each rank computes
    its part, and collectives move data. Functions take and return whole arrays. A module without annotations
    is itself.

    Raises:
        UnsupportedError: E7001, there are collectives beside annotations.
    """
    mesh = _mesh_of(module)
    if mesh is None:
        return module
    inlined = _inlined(module)
    functions = [
        Rewriting(function, Divisions(mesh, function), local=False).function()
        for function in inlined.functions
    ]
    return replace(inlined, functions=Functions(functions))


def local_form(
    module: Module, mesh: Mesh, given: Sequence[Sharding | None], returned: Sequence[Sharding | None]
) -> LocalForm:
    """Return a module of one exported function, in structured form, as each rank of a mesh runs it on parts.

    Args:
        module: The module.
        mesh: The ranks.
        given: How the arguments are divided; None where the program decides it.
        returned: The same of the results.

    Raises:
        UnsupportedError: E7001, there are collectives beside annotations.
        VerificationError: E4313, annotations are for another mesh.
        ValueError: An extent is no multiple of the number of its parts.
    """
    other = _mesh_of(module)
    if other is not None and other != mesh:
        message = f"the mesh is {mesh}, and that of an annotation in the program is {other}"
        raise VerificationError(
            Diagnostic("E4313", message, help="give all annotations of a program one mesh")
        )
    inlined = _inlined(module)
    (function,) = inlined.functions
    function = _annotated(function, mesh, given, returned)
    divisions = Divisions(mesh, function)
    made = Rewriting(function, divisions, local=True).function()
    (block,) = function.blocks
    parameters = [Sharding(divisions.of(each.value_id)) for each in block.parameters]
    results = [Sharding(divisions.of(value)) for value in block.terminator.operands]
    return LocalForm(
        Module(Functions((made,)), EXTENDED_FUNCTIONS.name),
        tuple([spec or found for spec, found in zip(given, parameters, strict=True)]),
        tuple([spec or found for spec, found in zip(returned, results, strict=True)]),
        tuple([divisions.types[value] for value in block.terminator.operands]),
    )


def _mesh_of(module: Module) -> Mesh | None:
    """Return the mesh of the annotations of a module; E7001 where there are collectives as well."""
    found = [
        op for function in module.functions for op in operations_of(function.blocks) if MESH in op.attributes
    ]
    if not any(op.opcode == SHARD for op in found):
        return None
    for operation in found:
        if operation.opcode != SHARD:
            message = f"{operation.opcode} stands in a program with annotations, which says itself what moves"
            hint = (
                "use shard_map and its collectives, or annotations (with_sharding), not both in one program"
            )
            raise UnsupportedError(Diagnostic("E7001", message, location=operation.location, help=hint))
    return mesh_of(str(found[0].attributes[MESH]))


def _inlined(module: Module) -> Module:
    """Return a module without calls, whose functions are divided where they are called, and with rows."""
    inlined = inline_calls(module, every=True)
    made = module if inlined is module else canonical_functions(inlined)
    return replace(made, functions=Functions(map(with_rows, made.functions)))


def _annotated(
    function: Function, mesh: Mesh, given: Sequence[Sharding | None], returned: Sequence[Sharding | None]
) -> Function:
    """Return a function with annotations of its parameters and results, where there is one."""
    (block,) = function.blocks
    types = value_types(function.blocks)
    fresh = count(1 + max(types, default=-1))
    operations: list[CoreOperation] = []
    parameters = list(block.parameters)
    ends = list(block.terminator.operands)
    for place, (parameter, sharding) in enumerate(zip(block.parameters, given, strict=True)):
        if sharding is not None:
            inside, value = parameter.value_id, next(fresh)
            parameters[place] = replace(parameter, value_id=value, names=NO_NAMES, origin=parameter.label)
            what = f"argument {parameter.name}"
            operations.append(_annotation(what, mesh, sharding, inside, value, types[inside]))
    operations += block.operations
    for place, (value, sharding) in enumerate(zip(block.terminator.operands, returned, strict=True)):
        if sharding is not None:
            ends[place] = next(fresh)
            operations.append(
                _annotation(f"result {place}", mesh, sharding, ends[place], value, types[value])
            )
    end = block.terminator
    assert isinstance(end, Return), "functions in structured form return"
    terminator = replace(end, operands=tuple(ends))
    made = replace(block, operations=tuple(operations), terminator=terminator, parameters=tuple(parameters))
    return replace(function, blocks=(made,))


def _annotation(
    what: str, mesh: Mesh, sharding: Sharding, result: ValueId, operand: ValueId, type_: TensorType
) -> CoreOperation:
    try:
        sharding.local(mesh, type_.extents)
    except MeshError as error:
        raise MeshError(f"{what}: {error}") from None
    attributes = Attributes.of({"mesh": str(mesh), "sharding": str(sharding)})
    return CoreOperation(result, SHARD, (operand,), attributes, type_)
