"""Elementwise values that a later part of a program computes again; see `recompute`."""

from mind_mlir.passes.recompute.copies import recompute

__all__ = ("recompute",)
