"""Nests that a program repeats, emitted once and called."""
