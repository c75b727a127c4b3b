"""Nests of groups: their work, their schedule, and the loops that are emitted for them."""
