"""Graphs, their nodes and tensors as data, and nodes as rules see them."""
