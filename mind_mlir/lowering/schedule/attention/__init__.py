"""Attention in tiles: scores, what is computed from rows of them, and products with values, as one nest."""
