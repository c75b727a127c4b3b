"""The module that the bindings import for the `mind` dialect. It defines no operation classes.

Whenever the bindings hand out an operation they look for its Python class, and they import the dialect's
module for that. Without this one the import fails, and is tried again for every single operation, which is
a third of the time that the conversion to linalg takes.
"""
