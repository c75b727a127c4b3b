"""Loops in many loops, as functions of their own.

The time of one-shot bufferization doubles with each loop around a tensor that loops carry. Nobody writes so
many, but a program may have them: a loop deep inside becomes a private function, and the count starts anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.mlir.bindings import func, ir

if TYPE_CHECKING:
    from mind_mlir.mlir.bindings import Operation, Value

#: A loop in so many loops becomes a function.
DEEP = 8


def as_function(loop: Operation, name: str, before: Operation) -> list[Value]:
    """Move ``loop`` to a private function; return the results of a call of it in its place.

    Args:
        loop: It may use any values from around it.
        name: The name of the function.
        before: The function to put it before.
    """
    captured, users = _captured(loop)
    types = [result.type for result in loop.results]
    with ir.InsertionPoint(before), loop.location:
        function = func.FuncOp(name, ([value.type for value in captured], types), visibility="private")
    body = function.add_entry_block()
    with ir.InsertionPoint(loop), loop.location:
        call = func.CallOp(types, ir.FlatSymbolRefAttr.get(name), captured)
    for old, new in zip(loop.results, call.results, strict=True):
        old.replace_all_uses_with(new)
    inside = dict(zip(captured, body.arguments, strict=True))
    loop.detach_from_parent()
    body.append(loop)
    for user, number, value in users:
        user.operands[number] = inside[value]
    with ir.InsertionPoint(body), loop.location:
        func.ReturnOp(list(loop.results))
    return list(call.results)


def _captured(loop: Operation) -> tuple[list[Value], list[tuple[Operation, int, Value]]]:
    """Return the values from around ``loop`` that are used by it or in it, and each such use."""
    defined: set[Value] = set()
    used: list[tuple[Operation, int, Value]] = []

    def visit(op: Operation) -> object:
        used.extend((op, number, value) for number, value in enumerate(op.operands))
        defined.update(op.results)
        for region in op.regions:
            for block in region.blocks:
                defined.update(block.arguments)
        return ir.WalkResult.ADVANCE

    loop.walk(visit, ir.WalkOrder.PRE_ORDER)
    users = [use for use in used if use[2] not in defined]
    return list(dict.fromkeys(value for _, _, value in users)), users
