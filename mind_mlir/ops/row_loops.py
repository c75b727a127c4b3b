"""Loops whose iterations do not depend on one another, which schedules may share among threads."""

from __future__ import annotations

#: On an `scf.for` each of whose iterations writes elements of the tensors that it carries which no other one
#: reads or writes: how many nanoseconds all of them take, about.
ROWS_ATTRIBUTE = "mind.rows"
