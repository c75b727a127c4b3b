"""Shape arithmetic that several rules share (shapes.md; core-ir.md, "Indexing and slicing")."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from mind_mlir.diagnostics import Diagnostic
from mind_mlir.ir.types import Dim, Shape, format_shape

if TYPE_CHECKING:
    from mind_mlir.ops.contexts import TypeContext


def broadcast(context: TypeContext, left: Shape, right: Shape) -> Shape:
    """Return the right-aligned broadcast of two shapes; reports E3001 where they do not fit.

    shapes.md, "Broadcasting". An extent 1 stretches to any extent, 0 included. In a profile where only
    `BroadcastTo` stretches, the shapes have to be equal (E3002, E3003).
    """
    if context.profile.explicit_broadcast:
        require_equal_shapes(context)
    pairs = aligned(left, right)
    axis = misfit(pairs)
    if axis is not None:
        wrong = misfit_at(axis, left, right)
        context.fail(wrong.code, wrong.message, notes=wrong.notes, help=wrong.help, **wrong.context)
    return stretched(pairs)


def aligned(left: Shape, right: Shape) -> list[tuple[Dim, Dim]]:
    """Return the extents of two shapes by dimension, aligned from the right; a missing one is 1."""
    rank = max(len(left), len(right))
    return list(zip((1,) * (rank - len(left)) + left, (1,) * (rank - len(right)) + right, strict=True))


def misfit(pairs: Sequence[tuple[Dim, Dim]]) -> int | None:
    """Return the first dimension of `aligned` shapes that does not broadcast, or None."""
    return next((axis for axis, (a, b) in enumerate(pairs) if a != b and a != 1 and b != 1), None)


def misfit_at(axis: int, left: Shape, right: Shape) -> Diagnostic:
    """Return the finding that two shapes do not broadcast in a dimension of `aligned` ones: E3001."""
    a, b = aligned(left, right)[axis]
    return Diagnostic(
        "E3001",
        f"Broadcasting failed at dimension {axis}: {a} against {b}",
        notes=(f"left shape {format_shape(left)}", f"right shape {format_shape(right)}"),
        help="extents must be equal, or one of them 1, aligned from the right; "
        "Reshape or ExpandDims can line the dimensions up",
        context={"left": left, "right": right, "dimension": axis, "extents": (a, b)},
    )


def stretched(pairs: Iterable[tuple[Dim, Dim]]) -> Shape:
    """Return the shape to which both of `aligned` shapes, which broadcast, do so."""
    return tuple([b if a == 1 else a for a, b in pairs])


def require_equal_shapes(context: TypeContext) -> None:
    """Report E3002 or E3003 for each operand whose shape is not the first operand's, and end the rule.

    The extension operations follow ptir-v0.4.md, "Broadcasting policy": only `BroadcastTo` stretches.
    """
    first = context.operands[0]
    for index, found in enumerate(context.operands[1:], start=1):
        facts: dict[str, Any] = {
            "operand": index,
            "notes": (f"operand 0 has type {first}", f"operand {index} has type {found}"),
            "help": f"{context.opcode} does not broadcast; emit BroadcastTo first",
        }
        if found.rank != first.rank:
            context.report(
                "E3002",
                f"{context.opcode} needs operands of one shape: {format_shape(first.shape)} "
                f"has rank {first.rank}, {format_shape(found.shape)} has rank {found.rank}",
                expected=first.rank,
                found=found.rank,
                **facts,
            )
            continue
        for axis, (left, right) in enumerate(zip(first.shape, found.shape, strict=True)):
            if left == right:
                continue
            context.report(
                "E3003",
                f"{context.opcode} needs operands of one shape: dimension {axis} is {left} and {right}",
                dimension=axis,
                extents=(left, right),
                **facts,
            )
    context.stop_if_reported()
