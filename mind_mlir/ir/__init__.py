"""The in-memory IR: types, attributes, modules, the builder and the printer."""
