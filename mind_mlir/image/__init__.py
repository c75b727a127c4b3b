"""Compiled code as a value: how it is linked, kept and loaded. Nothing here needs MLIR."""
