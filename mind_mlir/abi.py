"""What the compiler and whoever calls compiled code agree on."""

from __future__ import annotations

#: Attribute with the size in bytes of the scratch arena of a public function, an i64: of the function, or of
#: the module where it has only one.
SCRATCH_ATTRIBUTE = "mind.scratch_bytes"

#: Attribute of an LLVM function that is given a table: the number of pointers in it, an i64.
TABLE_ATTRIBUTE = "mind.table_pointers"

#: Alignment in bytes of scratch memory and constants: a cache line, and the widest vector register.
ALIGNMENT = 64
