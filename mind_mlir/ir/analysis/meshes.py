"""The mesh whose ranks run a module: that of its collectives, or of its annotations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.ir.analysis.call_graph import operations_of

if TYPE_CHECKING:
    from mind_mlir.ir.module import Module

#: The attribute that collectives and annotations alone have.
MESH = "mesh"


def mesh_text(module: Module) -> str:
    """Return the mesh of the first collective or annotation of a module; empty where it has none."""
    for function in module.functions:
        for operation in operations_of(function.blocks):
            if MESH in operation.attributes:
                return str(operation.attributes[MESH])
    return ""
