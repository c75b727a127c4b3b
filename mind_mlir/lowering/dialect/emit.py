"""In-memory IR -> `mind` dialect: one `func.func` a function, one `mind` operation per operation.

Parameters become function arguments that carry their name (``mind.name``); what the module returns are the
function's results. Operations with regions and calls are emitted by a rule of their record, as operations of
MLIR's own dialects. Every operation is located at its value, as the program calls it,
``loc("%x"(file:line:column))``, and later stages keep that, so that what a stage dump shows can be traced
back to the source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mind_mlir.ir.module import Parameter
from mind_mlir.ir.types import TensorType
from mind_mlir.lowering.dialect.definition import NAMESPACE, OPVIEWS, PREFIX, encode_attributes
from mind_mlir.mlir.bindings import add_dialect_package, func, ir
from mind_mlir.mlir.emission import EmitContext, EmitRegion
from mind_mlir.mlir.types import tensor_type
from mind_mlir.ops.infer import complete_attributes
from mind_mlir.ops.registry import by_opcode
from mind_mlir.support.interrupts import deliver
from mind_mlir.target.abi import symbol_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mind_mlir.diagnostics import Location
    from mind_mlir.ir.module import Block, CoreOperation, Function, Module, ValueId
    from mind_mlir.mlir.bindings import Context, MLIRLocation, Type, Value
    from mind_mlir.mlir.bindings import Module as MLIRModule

NAME_ATTRIBUTE = f"{NAMESPACE}.name"
PROFILE_ATTRIBUTE = f"{NAMESPACE}.profile"


def emit(module: Module, context: Context) -> MLIRModule:
    """Return a verified module as `mind` dialect.

    Args:
        module: In structured form, or flat with `Input` operations.
        context: Where the operations are made; it has the dialect loaded or accepts unregistered ones.
    """
    add_dialect_package(OPVIEWS)
    with context, ir.Location.unknown():
        result = ir.Module.create()
        types: dict[TensorType, Type] = {}
        for function in module.functions:
            with ir.InsertionPoint(result.body):
                _Emitter(types).emit(function, module.profile)
        return result


class _Emitter:
    """Emits one function."""

    def __init__(self, types: dict[TensorType, Type]) -> None:
        self._types = types
        self._values: dict[ValueId, Value] = {}

    def emit(self, function: Function, profile: str) -> None:
        (block,) = function.blocks
        inputs = [op for op in block.operations if op.opcode == "Input"]
        parameters = [*block.parameters, *map(_as_parameter, inputs)]
        arguments = [self._type(parameter.type) for parameter in parameters]
        results = function.result_types
        if results is None:
            known = {result.value_id: result.type for op in block.operations for result in op.results}
            results = tuple(known[output] for output in block.terminator.operands)
        visibility = None if function.public else "private"
        types = (arguments, [self._type(type_) for type_ in results])
        emitted = func.FuncOp(
            symbol_of(function.name), types, visibility=visibility, loc=_source_location(function)
        )
        emitted.attributes[PROFILE_ATTRIBUTE] = ir.StringAttr.get(profile)
        body = ir.Block.create_at_start(emitted.body, arguments, [_location(each) for each in parameters])
        if any(parameter.name is not None for parameter in parameters) or not parameters:
            emitted.arg_attrs = [_argument_attributes(parameter) for parameter in parameters]
        self._values.update(zip((each.value_id for each in parameters), body.arguments, strict=True))
        with ir.InsertionPoint(body):
            func.ReturnOp(self._operations(block))

    def _operations(self, block: Block) -> list[Value]:
        """Emit the operations of ``block``; return the operands of its terminator."""
        for operation in block.operations:
            deliver()
            if operation.opcode != "Input":
                self._values.update(zip(operation.result_ids, self._operation(operation), strict=True))
        return [self._values[operand] for operand in block.terminator.operands]

    def _operation(self, operation: CoreOperation) -> Iterable[Value]:
        record = by_opcode()[operation.opcode]
        attributes = complete_attributes(record, operation.attributes)
        types = [self._type(type_) for type_ in operation.result_types]
        operands = [self._values[operand] for operand in operation.operands]
        location = _location(operation)
        if record.emit is not None:
            regions = tuple(self._region(region) for region in operation.regions)
            context = EmitContext(tuple(operands), tuple(types), attributes, regions)
            with location:
                return record.emit(context)
        created = ir.Operation.create(
            PREFIX + record.mnemonic,
            results=types,
            operands=operands,
            attributes=encode_attributes(record, attributes),
            loc=location,
        )
        return list(created.results)

    def _region(self, block: Block) -> EmitRegion:
        def body(parameters: Sequence[Value]) -> list[Value]:
            self._values.update(zip((each.value_id for each in block.parameters), parameters, strict=True))
            return self._operations(block)

        return EmitRegion(tuple(self._type(each.type) for each in block.parameters), body)

    def _type(self, type_: Any) -> Type:
        assert isinstance(type_, TensorType), "the profile has no tuples"
        if type_ not in self._types:
            self._types[type_] = tensor_type(type_, signed=True)
        return self._types[type_]


def _as_parameter(operation: CoreOperation) -> Parameter:
    """Return an `Input` operation as the parameter that it stands for."""
    name = str(operation.attributes["name"])
    origin = operation.label
    return Parameter(operation.value_id, operation.result_type, operation.location, name, origin=origin)


def _argument_attributes(parameter: Parameter) -> Any:
    named = {} if parameter.name is None else {NAME_ATTRIBUTE: ir.StringAttr.get(parameter.name)}
    return ir.DictAttr.get(named)


def _location(value: CoreOperation | Parameter) -> MLIRLocation:
    return ir.Location.name(value.label, _source_location(value))


def _source_location(thing: CoreOperation | Parameter | Function) -> MLIRLocation:
    location: Location | None = thing.location
    if location is None:
        return ir.Location.unknown()
    return ir.Location.file(location.source.name, location.line, location.column)
