"""Prints a program as StableHLO: ``to_stablehlo.py FILE``."""

from __future__ import annotations

import sys

import mind_mlir

print(mind_mlir.to_stablehlo(mind_mlir.load(sys.argv[1])), end="")
