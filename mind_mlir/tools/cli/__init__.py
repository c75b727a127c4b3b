"""The command-line tools `mind-mlir` and `mind-opt`."""
