"""The passes that `mind-opt` adds to MLIR's own, and what was meant by a name that nobody knows."""

from __future__ import annotations

from mind_mlir.cli.mlir_names import MLIR_PASSES
from mind_mlir.suggestions import nearest

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


def suggestion(name: str, among: tuple[str, ...] | list[str]) -> str:
    """Return ``; did you mean 'x'?`` with the name that ``name`` is most like, or nothing."""
    near = nearest(name, among)
    return f"; did you mean '{near}'?" if near else ""
