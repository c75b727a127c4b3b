"""From any control-flow graph to nested branches and loops; see `structure`."""

from mind_mlir.passes.structure.module import structure, structure_function

__all__ = ("structure", "structure_function")
