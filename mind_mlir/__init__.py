"""MIND Core IR to fast native CPU code, through MLIR."""
