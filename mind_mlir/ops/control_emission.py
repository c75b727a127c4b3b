"""Control flow as operations of MLIR's own dialects: `scf.if`, `scf.while` and `func.call`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mind_mlir.target.abi import symbol_of

if TYPE_CHECKING:
    from mind_mlir.mlir.emission import EmitContext


def emit_cond(context: EmitContext) -> list[Any]:
    """Return the results of the `scf.if` of a `Cond`."""
    operation = context.create("scf.if", [context.scalar(context.operands[0])])
    for region, target in zip(context.regions, operation.regions, strict=True):
        region.emit_into(target, context.mlir.scf.YieldOp)
    return list(operation.results)


def emit_while(context: EmitContext) -> list[Any]:
    """Return the results of the `scf.while` of a `While`."""
    scf = context.mlir.scf
    operation = context.create("scf.while", context.operands)

    def test(yielded: list[Any]) -> None:
        more, *state = yielded
        scf.ConditionOp(context.scalar(more), state)

    condition, body = context.regions
    condition.emit_into(operation.regions[0], test)
    body.emit_into(operation.regions[1], scf.YieldOp)
    return list(operation.results)


def emit_call(context: EmitContext) -> list[Any]:
    """Return the results of the `func.call` of a `Call`."""
    callee = context.mlir.ir.FlatSymbolRefAttr.get(symbol_of(context.attributes["callee"]))
    return list(context.create("func.call", context.operands, callee=callee).results)
