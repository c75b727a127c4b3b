"""The micro-kernels of products, as functions of the LLVM dialect, and calls of them."""
