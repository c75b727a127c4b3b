"""Smaller programs that fail as a large one does: fewer functions, outputs, operations and elements."""
