"""Structured form -> StableHLO: one `func.func` a function, and what the rules of the records append."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mind_mlir.ir.module import Block, CoreOperation, Function, Module, Parameter, ValueId
from mind_mlir.mlir.bindings import Context, MLIRLocation, func, ir
from mind_mlir.mlir.stablehlo_builder import HloValue, StablehloBuilder
from mind_mlir.mlir.stablehlo_context import HloRegion, StablehloContext
from mind_mlir.ops.infer import normal_attributes
from mind_mlir.ops.opdef import NotInStablehlo
from mind_mlir.ops.registry import by_opcode
from mind_mlir.support.interrupts import deliver

if TYPE_CHECKING:
    from mind_mlir.diagnostics import Location
    from mind_mlir.mlir.bindings import Module as MLIRModule

_BUILDER = StablehloBuilder()


def emit(module: Module, context: Context, entry: str | None) -> MLIRModule:
    """Return a module in structured form as StableHLO.

    Args:
        module: All of its operations have a rule.
        context: It has the dialects.
        entry: The function that is called `main` there, if one is.
    """
    symbols = _symbols(module, entry)
    with context, ir.Location.unknown():
        result = ir.Module.create()
        for function in module.functions:
            with ir.InsertionPoint(result.body):
                _Emitter(symbols).emit(function)
        return result


def _symbols(module: Module, entry: str | None) -> Mapping[str, str]:
    """Return what each function is called: the entry `main`, for that is what StableHLO's tools run."""
    names = [function.name for function in module.functions]
    symbols = dict(zip(names, names, strict=True))
    if entry is not None and "main" not in symbols:
        symbols[entry] = "main"
    return symbols


class _Emitter:
    """Emits one function."""

    def __init__(self, symbols: Mapping[str, str]) -> None:
        self._symbols = symbols
        self._values: dict[ValueId, HloValue] = {}

    def emit(self, function: Function) -> None:
        (block,) = function.blocks
        parameters = [*block.parameters, *(_parameter(op) for op in block.operations if op.opcode == "Input")]
        types = {each.value_id: each.tensor_type for each in parameters}
        for operation in block.operations:
            types.update(zip(operation.result_ids, operation.result_types, strict=True))
        arguments = [_BUILDER.mlir_type(each.tensor_type) for each in parameters]
        results = [_BUILDER.mlir_type(types[output]) for output in block.terminator.operands]
        emitted = func.FuncOp(
            self._symbols[function.name],
            (arguments, results),
            visibility="public" if function.public else "private",
            loc=_place(function.location),
        )
        body = ir.Block.create_at_start(emitted.body, arguments, [_named(each) for each in parameters])
        for parameter, argument in zip(parameters, body.arguments, strict=True):
            self._values[parameter.value_id] = HloValue(argument, parameter.tensor_type)
        with ir.InsertionPoint(body):
            func.ReturnOp([each.value for each in self._operations(block)])

    def _operations(self, block: Block) -> list[HloValue]:
        """Emit the operations of ``block``; return the operands of its terminator."""
        for operation in block.operations:
            deliver()
            if operation.opcode != "Input":
                self._values.update(zip(operation.result_ids, self._operation(operation), strict=True))
        return [self._values[operand] for operand in block.terminator.operands]

    def _operation(self, operation: CoreOperation) -> Sequence[HloValue]:
        record = by_opcode()[operation.opcode]
        rule = record.stablehlo
        assert rule is not None
        assert not isinstance(rule, NotInStablehlo)
        operands = tuple(self._values[operand] for operand in operation.operands)
        context = StablehloContext(
            opcode=operation.opcode,
            operands=operands,
            attributes=normal_attributes(record, operation.attributes, operation.result_type),
            result_types=operation.result_types,
            regions=tuple(self._region(region) for region in operation.regions),
            symbols=self._symbols,
        )
        with _place(operation.location):
            found = rule(context)
        results = [found] if isinstance(found, HloValue) else list(found)
        for result, type_ in zip(results, operation.result_types, strict=True):
            assert result.type == type_, f"{operation.opcode}: {result.type} is not {type_}"
            if result.owner is not None and not any(result is operand for operand in operands):
                result.owner.location = _named(operation)
        return results

    def _region(self, block: Block) -> HloRegion:
        def body(parameters: Sequence[HloValue]) -> list[HloValue]:
            self._values.update(zip((each.value_id for each in block.parameters), parameters, strict=True))
            return self._operations(block)

        places = {parameter.value_id: place for place, parameter in enumerate(block.parameters)}
        passed = tuple(places.get(operand) for operand in block.terminator.operands)
        return HloRegion(tuple(each.tensor_type for each in block.parameters), body, passed)


def _parameter(operation: CoreOperation) -> Parameter:
    """Return an `Input` operation as the parameter that it stands for."""
    return Parameter(
        operation.value_id,
        operation.result_type,
        operation.location,
        origin=f"%{operation.attributes['name']}",
    )


def _named(value: CoreOperation | Parameter) -> MLIRLocation:
    place, name = _place(value.location), value.label.removeprefix("%")
    return place if name.isdigit() else ir.Location.name(name, place)


def _place(location: Location | None) -> MLIRLocation:
    if location is None:
        return ir.Location.unknown()
    return ir.Location.file(location.source.name, location.line, location.column)
