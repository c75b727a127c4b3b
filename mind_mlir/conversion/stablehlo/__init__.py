"""Programs as StableHLO, by the rules of the records: `to_stablehlo`."""

from mind_mlir.conversion.stablehlo.text import to_portable_artifact, to_stablehlo

__all__ = ["to_portable_artifact", "to_stablehlo"]
