"""Simplifying passes: algebra that respects IEEE 754, chains of operations that move data, and products."""

from mind_mlir.passes.simplify.tables import shorten_chains, simplify_algebra, simplify_dots

__all__ = ("shorten_chains", "simplify_algebra", "simplify_dots")
