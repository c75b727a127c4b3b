"""Programs as StableHLO, by the rules of the records; what converts, as data, is known without MLIR."""
