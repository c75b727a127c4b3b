"""Programs as StableHLO, by the rules of the records; `stablehlo_support` says what converts, as data."""

from mind_mlir.conversion.stablehlo.support import convertible_dtypes, reason_against, stablehlo_support
from mind_mlir.conversion.stablehlo.text import to_portable_artifact, to_stablehlo

__all__ = [
    "convertible_dtypes",
    "reason_against",
    "stablehlo_support",
    "to_portable_artifact",
    "to_stablehlo",
]
