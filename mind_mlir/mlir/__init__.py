"""MLIR in our terms: types, literals, passes, and what linalg rules build with."""
