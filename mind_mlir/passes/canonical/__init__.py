"""The parts of the canonicaliser (`mind_mlir.passes.canonicalize`)."""
