"""The names of the conversion targets that ship, which are known without loading these."""

from __future__ import annotations

#: The entry-point group of packages that ship targets.
GROUP = "mind_mlir.conversion_targets"
#: The targets that ship, which stand in `mind_mlir.conversion.targets`.
SHIPPED = ("mind", "linalg", "llvm", "stablehlo", "c")
