"""Programs as readable C99 without dependencies: `to_c`."""

from mind_mlir.conversion.c.module import to_c

__all__ = ["to_c"]
