"""What this installation and machine are, and whether the compiler works on them: `mind-mlir doctor`."""
