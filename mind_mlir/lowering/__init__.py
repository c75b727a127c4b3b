"""From the `mind` dialect to the LLVM dialect, one module a stage."""
