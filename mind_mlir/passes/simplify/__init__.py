"""Simplifying passes: algebra that respects IEEE 754, and chains of operations that move data."""

from mind_mlir.passes.simplify.algebra import simplify_algebra
from mind_mlir.passes.simplify.chains import shorten_chains

__all__ = ("shorten_chains", "simplify_algebra")
