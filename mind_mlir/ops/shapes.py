"""Shape arithmetic that several type rules share (shapes.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.ir.types import format_shape

if TYPE_CHECKING:
    from mind_mlir.ir.types import Dim, Shape
    from mind_mlir.ops.contexts import TypeContext


def broadcast(context: TypeContext, left: Shape, right: Shape) -> Shape:
    """Return the right-aligned broadcast of two shapes; reports E3001 where they do not fit.

    shapes.md, "Broadcasting". An extent 1 stretches to any extent, 0 included.
    """
    rank = max(len(left), len(right))
    padded_left = (1,) * (rank - len(left)) + left
    padded_right = (1,) * (rank - len(right)) + right
    result: list[Dim] = []
    for axis, (a, b) in enumerate(zip(padded_left, padded_right, strict=True)):
        if a != b and a != 1 and b != 1:
            context.fail(
                "E3001",
                f"Broadcasting failed at dimension {axis}: {a} against {b}",
                notes=(f"left shape {format_shape(left)}", f"right shape {format_shape(right)}"),
                help="extents must be equal, or one of them 1, aligned from the right; "
                "Reshape or ExpandDims can line the dimensions up",
                left=left,
                right=right,
                dimension=axis,
                extents=(a, b),
            )
        result.append(b if a == 1 else a)
    return tuple(result)
