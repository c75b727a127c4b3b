"""From any control-flow graph to nested branches and loops; see `structure`."""

from mind_mlir.passes.structure.module import structure_function, structured_flat

__all__ = ("structure_function", "structured_flat")
