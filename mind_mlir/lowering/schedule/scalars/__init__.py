"""Scalar computations as graphs: what is computed for each iteration of a nest, made from linalg once."""
