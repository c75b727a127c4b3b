"""Simplifying passes: algebra that respects IEEE 754, chains of operations that move data, and products."""

from mind_mlir.passes.simplify.algebra import simplify_algebra

__all__ = ("simplify_algebra",)
