"""Bodies of linalg operations, read as scalars."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.scalars.graph import OpaqueError, Scalar, Scalars
from mind_mlir.mlir.bindings import Operation, Value, ir

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.mlir.bindings import Block


def body_reader(
    scalars: Scalars,
    block: Block,
    argument: Callable[[int], Scalar],
    axis: Callable[[int], int | None],
    marked: Callable[[Operation], Scalar | None] = lambda _: None,
) -> Callable[[Value], Scalar]:
    """Return what reads values of a body, each once; it raises `OpaqueError` where there is no scalar.

    Args:
        scalars: Makes the scalars.
        block: The body.
        argument: Returns the scalar that an argument is, by its number.
        axis: Returns the axis that a dimension of the operation is.
        marked: Returns what an operation stands for, if it is not to be repeated as it is.
    """

    @functools.cache
    def read(value: Value) -> Scalar:
        if isinstance(value, ir.BlockArgument):
            if value.owner != block:
                raise OpaqueError
            return argument(value.arg_number)
        op = value.owner.operation
        if op.name == "arith.constant":
            return scalars.constant(op.attributes["value"])
        if op.name == "linalg.index":
            place = axis(int(ir.IntegerAttr(op.attributes["dim"]).value))
            if place is None:
                raise OpaqueError
            return scalars.index(place, value.type)
        found = marked(op)
        if found is not None:
            return found
        if len(op.results) != 1 or len(op.regions) or not op.name.startswith(("arith.", "math.")):
            raise OpaqueError
        return scalars.op(op, [read(operand) for operand in op.operands])

    return read
