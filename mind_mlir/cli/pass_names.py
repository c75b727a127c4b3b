"""The passes that `mind-opt` adds to MLIR's own, in the order of the pipeline."""

from __future__ import annotations

PASSES = {
    "convert-mind-to-linalg": "Convert mind operations to linalg on tensors.",
    "mind-schedule": "Tile, pack and vectorise linalg operations for this machine.",
    "mind-bufferize": "Turn tensors into memory; outputs become arguments.",
    "mind-to-llvm": "Lower to the LLVM dialect.",
}
