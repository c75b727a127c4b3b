"""`mind-opt`: mlir-opt with the `mind` dialect and our lowering stages."""
