"""Functions of numbers as plain arithmetic, the same for scalars and for vectors."""
