"""Modules to machine code, by LLVM: what is compiled here is loaded and called without MLIR."""
