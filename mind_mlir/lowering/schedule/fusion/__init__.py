"""Elementwise operations and reductions over the same loops, fused into one nest."""
