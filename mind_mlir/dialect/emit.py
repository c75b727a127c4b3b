"""In-memory IR -> `mind` dialect: one `func.func`, one `mind` operation per operation.

Inputs become function arguments that carry their name (``mind.name``); outputs are the function's results.
Every operation is located at its value, as the program calls it, ``loc("%x"(file:line:column))``, and later
stages keep that, so that what a stage dump shows can be traced back to the source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mind_mlir.bindings import func, ir
from mind_mlir.dialect.definition import NAMESPACE, PREFIX, encode_attributes
from mind_mlir.interrupts import deliver
from mind_mlir.ir.types import TensorType
from mind_mlir.mlir.types import tensor_type
from mind_mlir.ops.infer import complete_attributes
from mind_mlir.ops.registry import by_opcode

if TYPE_CHECKING:
    from mind_mlir.bindings import Context, MLIRLocation, Type, Value
    from mind_mlir.bindings import Module as MLIRModule
    from mind_mlir.diagnostics import Location
    from mind_mlir.ir.module import CoreOperation, Module, ValueId

NAME_ATTRIBUTE = f"{NAMESPACE}.name"
PROFILE_ATTRIBUTE = f"{NAMESPACE}.profile"


def emit(module: Module, context: Context) -> MLIRModule:
    """Return a verified flat module as `mind` dialect, in a context that has the dialect loaded."""
    with context, ir.Location.unknown():
        return _Emitter().emit(module)


class _Emitter:
    def __init__(self) -> None:
        self._types: dict[TensorType, Type] = {}
        self._values: dict[ValueId, Value] = {}

    def emit(self, module: Module) -> MLIRModule:
        result = ir.Module.create()
        inputs = module.inputs
        types = {op.value_id: op.result_type for op in module.operations}
        with ir.InsertionPoint(result.body):
            function = func.FuncOp(
                module.name,
                (
                    [self._type(op.result_type) for op in inputs],
                    [self._type(types[output]) for output in module.outputs],
                ),
            )
        function.attributes[PROFILE_ATTRIBUTE] = ir.StringAttr.get(module.profile)
        block = ir.Block.create_at_start(
            function.body,
            [self._type(op.result_type) for op in inputs],
            [_location(op) for op in inputs],
        )
        function.arg_attrs = [
            ir.DictAttr.get({NAME_ATTRIBUTE: ir.StringAttr.get(op.attributes["name"])}) for op in inputs
        ]
        self._values.update(zip((op.value_id for op in inputs), block.arguments, strict=True))
        with ir.InsertionPoint(block):
            for operation in module.operations:
                deliver()
                if operation.opcode != "Input":
                    self._values[operation.value_id] = self._operation(operation)
            func.ReturnOp([self._values[output] for output in module.outputs])
        return result

    def _operation(self, operation: CoreOperation) -> Value:
        record = by_opcode()[operation.opcode]
        attributes = complete_attributes(record, operation.attributes)
        created = ir.Operation.create(
            PREFIX + record.mnemonic,
            results=[self._type(operation.result_type)],
            operands=[self._values[operand] for operand in operation.operands],
            attributes=encode_attributes(record, attributes),
            loc=_location(operation),
        )
        return created.result

    def _type(self, type_: Any) -> Type:
        assert isinstance(type_, TensorType), "the profile has no tuples"
        if type_ not in self._types:
            self._types[type_] = tensor_type(type_, signed=True)
        return self._types[type_]


def _location(operation: CoreOperation) -> MLIRLocation:
    return ir.Location.name(operation.label, _source_location(operation.location))


def _source_location(location: Location | None) -> MLIRLocation:
    if location is None:
        return ir.Location.unknown()
    return ir.Location.file(location.source.name, location.line, location.column)
