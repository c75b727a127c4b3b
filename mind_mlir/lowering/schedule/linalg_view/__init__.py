"""Linalg as plain data: operands, accesses and bodies of operations, and questions about tensor values."""
