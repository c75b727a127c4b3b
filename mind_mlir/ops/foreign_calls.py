"""Calls of functions outside of the program, as linalg rules append them.

What is called is declared here, and becomes a call of an address, or of a function of the runtime, when all
else is in the LLVM dialect (`mind_mlir.lowering.custom_calls`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mind_mlir.target.abi import CUSTOM_CALL_ATTRIBUTE

if TYPE_CHECKING:
    from mind_mlir.mlir.context import LoweringContext


def call_foreign(context: LoweringContext, target: str, attrs: str) -> Any:
    """Append a call with the operands, and return its result.

    Args:
        context: Of the operation.
        target: Which function it is.
        attrs: A text that the function is given.
    """
    ir, func = context.mlir.ir, context.mlir.func
    operands, result = list(context.operands), context.result_type
    results = [ir.RankedTensorType.get(list(result.extents), context.element(result.dtype))]
    facts = {"target": ir.StringAttr.get(target), "attrs": ir.StringAttr.get(attrs)}
    facts["inputs"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), len(operands))
    shapes = [type_.extents for type_ in (*context.operand_types, result)]
    facts["extents"] = ir.DenseI64ArrayAttr.get([extent for shape in shapes for extent in shape])
    type_ = ir.FunctionType.get([operand.type for operand in operands], results)
    symbol = _declared(context.mlir, ir.DictAttr.get(facts), type_)
    return func.CallOp(results, ir.FlatSymbolRefAttr.get(symbol), operands).results[0]


def _declared(mlir: Any, facts: Any, type_: Any) -> str:
    """Return the function of the module that stands for one outside with some attributes and types."""
    module = mlir.ir.InsertionPoint.current.block.owner
    while module.operation.name != "builtin.module":
        module = module.operation.parent
    (body,) = module.regions[0].blocks
    declared = [op for op in body.operations if CUSTOM_CALL_ATTRIBUTE in op.attributes]
    for op in declared:
        if op.attributes[CUSTOM_CALL_ATTRIBUTE] == facts and op.type == type_:
            return str(op.name.value)
    symbol = f"mind.custom_call.{len(declared)}"
    with mlir.ir.InsertionPoint.at_block_begin(body):
        made = mlir.func.FuncOp(symbol, type_, visibility="private")
    made.attributes[CUSTOM_CALL_ATTRIBUTE] = facts
    return symbol
