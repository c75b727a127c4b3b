"""Compiled code for tests that run none."""

from __future__ import annotations

import numpy as np

from mind_mlir import DType, TensorType
from mind_mlir.diagnostics.checks import IndexCheck
from mind_mlir.image.compiled import CompiledCode, Data
from mind_mlir.image.entry import Entry
from mind_mlir.image.image import Image, Import, Symbol
from mind_mlir.ir.interface import Output, Parameter

TYPE = TensorType(DType.F32, (2, 3))


def code(*, label: str | None = None) -> CompiledCode:
    """Return code of a function, with a check of a value of that name."""
    checks = () if label is None else (IndexCheck("Gather", label, 0, (3,), place=("a.ir", 1, 2)),)
    entry = Entry("f", "mind.entry.f", (Parameter("x", TYPE),), (Output("%1", TYPE),), checks, 64)
    places = np.array([8, 16], np.uint32)
    symbols = (Symbol("mind.entry.f", 0, 5),)
    image = Image("x86_64", b"\xc3" * 4100, 4096, 0, 8192, places, (Import("exp", places),), symbols)
    return CompiledCode(image, (entry,), (Data("weights", bytes(range(100)), True),), ("avx2",))
