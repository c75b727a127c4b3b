"""Whole programs as what each rank of a mesh runs on its parts."""

from mind_mlir.passes.partition.module import LocalForm, local_form, partitioned

__all__ = ("LocalForm", "local_form", "partitioned")
