"""What became of a program, stage by stage, in one page (`mind-mlir explore`)."""
