"""The in-memory IR: types, attributes and modules."""
