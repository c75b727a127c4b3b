"""Folds: what takes terms one after the other, in parts that are joined, in any kind of nest."""
