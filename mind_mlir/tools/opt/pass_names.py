"""The passes that `mind-opt` adds to MLIR's own, and what was meant by a name that nobody knows."""

from __future__ import annotations

from mind_mlir.tools.opt.mlir_names import MLIR_PASSES

#: Ours, in the order of the pipeline.
PASSES = {
    "convert-mind-to-linalg": "Convert mind operations to linalg on tensors.",
    "mind-schedule": "Tile, pack and vectorise linalg operations for this machine.",
    "mind-bufferize": "Turn tensors into memory; outputs become arguments.",
    "mind-to-llvm": "Lower to the LLVM dialect.",
}


def known_passes() -> tuple[str, ...]:
    """Return the names of all passes that are known by name."""
    return (*PASSES, *MLIR_PASSES)
