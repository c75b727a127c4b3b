"""Programs as whole ones and in parts, run by the interpreter."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

import mind_mlir
from mind_mlir.ir.analysis.call_graph import operations_of
from mind_mlir.ir.module import Functions, Module
from mind_mlir.ir.profiles import EXTENDED_FUNCTIONS
from mind_mlir.passes.forms import FrontHalf

COLLECTIVES = {"AllReduce", "ReduceScatter", "AllGather", "AllToAll", "TakePart"}


def in_parts(module: Module) -> Module:
    """Return a module as each rank runs it, as a module that can be run."""
    made = FrontHalf().run(module, "partitioned")
    return Module(Functions(made.functions), EXTENDED_FUNCTIONS.name)


def collectives(module: Module, *, moving: bool = True) -> Counter[str]:
    """Return how often each collective stands in a module; those that move nothing only where asked for."""
    return Counter(
        operation.opcode
        for function in module.functions
        for operation in operations_of(function.blocks)
        if operation.opcode in COLLECTIVES and (operation.opcode != "TakePart" or not moving)
    )


def check_alike(module: Module, arguments: dict[str, Any], *, exact: bool | None = None) -> Module:
    """See that a module in parts computes what it does whole: bit for bit where no parts are joined."""
    parts = in_parts(module)
    wanted, found = mind_mlir.interpret(module, arguments), mind_mlir.interpret(parts, arguments)
    if exact is None:
        exact = not {"AllReduce", "ReduceScatter"} & collectives(parts).keys()
    for one, other in zip(wanted, found, strict=True):
        assert one.shape == other.shape
        assert one.dtype == other.dtype
        if exact or one.dtype.kind not in "fcV":
            np.testing.assert_array_equal(one, other)
        else:
            wide = np.float64 if one.dtype.kind != "c" else np.complex128
            size = max(1.0, np.abs(one.astype(wide)).max(initial=0))
            tolerance = size * (1e-5 if one.dtype.itemsize >= 4 else 0.05)
            np.testing.assert_allclose(one.astype(wide), other.astype(wide), atol=tolerance)
    return parts
