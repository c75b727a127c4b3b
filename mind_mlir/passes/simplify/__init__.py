"""Simplifying passes: algebra that respects IEEE 754, chains of operations that move data, and products."""

from mind_mlir.passes.simplify.algebra import simplify_algebra
from mind_mlir.passes.simplify.chains import shorten_chains
from mind_mlir.passes.simplify.dots import simplify_dots

__all__ = ("shorten_chains", "simplify_algebra", "simplify_dots")
