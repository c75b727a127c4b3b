"""Checks that the type rules of control flow share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from mind_mlir.diagnostics import Location
    from mind_mlir.ir.types import TensorType
    from mind_mlir.ops.contexts import TypeContext


def require(
    context: TypeContext,
    where: str,
    what: str,
    expected: tuple[TensorType, ...],
    found: tuple[TensorType, ...],
    location: Callable[[int], Location | None] | None,
) -> None:
    """Report E2007 and end the rule where counts differ; report E2001 for each type that does.

    Args:
        context: The operation.
        where: What has the values, for the message.
        what: What they are to it: a parameter, a yield or an argument.
        expected: The types that follow from elsewhere.
        found: The types as they are.
        location: Where each of them is written; None for the operands.
    """
    if len(expected) != len(found):
        verb = {"parameter": "has", "yield": "yields", "argument": "takes"}[what]
        noun = "value" if what == "yield" else what
        context.fail(
            "E2007",
            f"{where} {verb} {len(expected)} {noun}{'s' if len(expected) != 1 else ''}, found {len(found)}",
            location=location(len(expected)) if location else None,
            help=f"the types are ({', '.join(map(str, expected))})",
            function=where,
            expected=len(expected),
            found=len(found),
        )
    for index, (wanted, given) in enumerate(zip(expected, found, strict=True)):
        if wanted != given:
            context.report(
                "E2001",
                f"{what} {index} of {where} is {given}, expected {wanted}",
                operand=None if location else index,
                location=location(index) if location else None,
                help=f"give a value of type {wanted}" if what != "parameter" else f"declare it as {wanted}",
                expected=str(wanted),
                found=str(given),
            )


def no_results(context: TypeContext, message: str, location: Location | None) -> NoReturn:
    """Report E4122 and end the rule."""
    context.fail(
        "E4122",
        message,
        location=location,
        help=f"a {context.opcode} has one result or more: without one it computes nothing",
    )
