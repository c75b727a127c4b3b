"""Scans along an axis: sums, products and extremes up to each element."""
