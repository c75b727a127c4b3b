"""Bodies of linalg operations, read as scalars."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.scalars.graph import OpaqueError, Scalar, Scalars
from mind_mlir.mlir.bindings import Operation, Value, ir

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.mlir.bindings import Block


class BodyReader:
    """Reads values of a body, each of them once.

    Args:
        scalars: Makes the scalars.
        block: The body.
        argument: Returns the scalar that an argument is, by its number.
        axis: Returns the axis that a dimension of the operation is.
        marked: Returns what an operation stands for, if it is not to be repeated as it is.
    """

    def __init__(
        self,
        scalars: Scalars,
        block: Block,
        argument: Callable[[int], Scalar],
        axis: Callable[[int], int | None],
        marked: Callable[[Operation], Scalar | None] = lambda _: None,
    ) -> None:
        self._scalars = scalars
        self._block = block
        self._argument = argument
        self._axis = axis
        self._marked = marked
        self._done: dict[Value, Scalar] = {}

    def scalar(self, value: Value) -> Scalar:
        """Return the scalar of a value.

        Raises:
            OpaqueError: There is none.
        """
        if value not in self._done:
            self._done[value] = self._read(value)
        return self._done[value]

    def _read(self, value: Value) -> Scalar:
        if isinstance(value, ir.BlockArgument):
            if value.owner != self._block:
                raise OpaqueError
            return self._argument(value.arg_number)
        op = value.owner.operation
        if op.name == "arith.constant":
            return self._scalars.constant(op.attributes["value"])
        if op.name == "linalg.index":
            axis = self._axis(int(ir.IntegerAttr(op.attributes["dim"]).value))
            if axis is None:
                raise OpaqueError
            return self._scalars.index(axis, value.type)
        marked = self._marked(op)
        if marked is not None:
            return marked
        if len(op.results) != 1 or len(op.regions) or not op.name.startswith(("arith.", "math.")):
            raise OpaqueError
        return self._scalars.op(op, [self.scalar(operand) for operand in op.operands])
