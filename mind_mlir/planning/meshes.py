"""Programs for other meshes than those that they say: for more ranks, or fewer, than were tried."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mind_mlir.diagnostics import Diagnostic, VerificationError
from mind_mlir.ir.analysis.call_graph import operations_of
from mind_mlir.ir.analysis.meshes import MESH, mesh_text
from mind_mlir.ir.interface import interface_of
from mind_mlir.ir.mesh import Mesh, MeshError, mesh_of
from mind_mlir.ir.module import Functions
from mind_mlir.passes.forms import structured_form
from mind_mlir.passes.partition import local_form
from mind_mlir.passes.partition.propagation import SHARD
from mind_mlir.passes.verify import verify

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mind_mlir.ir.module import Block, CoreOperation, Module


def mesh_from(given: str, own: Mesh) -> Mesh:
    """Return a mesh with the axes of another one and the sizes of a text: ``data=64,model=8``, ``64x8``.

    Raises:
        ValueError: The text says none, or has other axes.
    """
    sizes = given.split("x")
    if all(size.isdecimal() for size in sizes):
        if len(sizes) != len(own.axes):
            raise MeshError(f"the mesh {own} of the program has {len(own.axes)} axes, not {len(sizes)}")
        return Mesh(dict(zip(own.axes, map(int, sizes), strict=True)))
    found = mesh_of(given)
    if list(found.axes) != list(own.axes):
        raise MeshError(f"the axes must be those of the program's mesh {own}, in their order, not {found}")
    return found


def with_mesh(module: Module, mesh: Mesh) -> Module:
    """Return a verified module with another mesh, of the same axes.

    Raises:
        VerificationError: E6206, the shapes of the program are those of its own mesh.
    """
    functions = [
        replace(function, blocks=tuple([_block(block, str(mesh)) for block in function.blocks]))
        for function in module.functions
    ]
    try:
        return verify(replace(module, functions=Functions(functions)))
    except VerificationError as error:
        first, own = error.diagnostics[0], mesh_text(module)
        raise VerificationError(
            [
                Diagnostic(
                    "E6206",
                    f"the program cannot be planned for the mesh {mesh}: its shapes are for {own}",
                    first.location,
                    (first.message, *first.notes),
                    "keep the sizes of the axes along which shapes change, or change the program",
                )
            ]
        ) from None


def is_annotated(module: Module) -> bool:
    """Return whether annotations say what each rank of a module computes, rather than collectives."""
    operations = [each for function in module.functions for each in operations_of(function.blocks)]
    return any(each.opcode == SHARD for each in operations)


def in_parts(module: Module) -> Module:
    """Return a verified module with annotations as each rank runs it on parts of its arguments."""
    structured = structured_form(module)
    (function,) = [each for each in structured.functions if each.public]
    outputs = [None] * len(interface_of(function).outputs)
    mesh = mesh_of(mesh_text(module))
    return local_form(structured, mesh, [None] * len(function.parameters), outputs).module


def layouts_of(own: Mesh, processes: int) -> Iterator[Mesh]:
    """Yield the meshes of the axes of another one that have so many ranks."""

    def sizes(axes: int, count: int) -> Iterator[tuple[int, ...]]:
        if axes == 1:
            yield (count,)
            return
        for first in range(count, 0, -1):
            if count % first == 0:
                for rest in sizes(axes - 1, count // first):
                    yield (first, *rest)

    for found in sizes(len(own.axes), processes):
        yield Mesh(dict(zip(own.axes, found, strict=True)))


def _block(block: Block, mesh: str) -> Block:
    return replace(block, operations=tuple([_operation(each, mesh) for each in block.operations]))


def _operation(operation: CoreOperation, mesh: str) -> CoreOperation:
    if operation.regions:
        return replace(operation, regions=tuple([_block(each, mesh) for each in operation.regions]))
    if MESH not in operation.attributes:
        return operation
    return replace(operation, attributes={**operation.attributes, MESH: mesh})
