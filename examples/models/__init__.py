"""Models that are written with `mind_mlir.jit`, and run and trained by it."""
