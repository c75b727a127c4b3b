"""`python -m mind_mlir` is `mind-mlir`."""

from __future__ import annotations

from mind_mlir.tools.start import mind_mlir

if __name__ == "__main__":
    mind_mlir()
