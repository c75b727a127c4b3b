"""`mind` dialect -> linalg on tensors: each operation by the linalg rule of its record.

Before: a module of `func.func`s over `mind` operations, integers with signedness. After: a new module over
linalg, tensor, arith and math, integers signless, everything in destination-passing style. A function with
run-time checks returns one more result, its status (rank 1, i64): for each check the least and the
greatest number that it looks at, in the order of the returned `Outcome`s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mind_mlir.bindings import func, ir, tensor
from mind_mlir.diagnostics import Diagnostic, UnsupportedError
from mind_mlir.dialect import PREFIX, decode_attributes
from mind_mlir.interrupts import deliver
from mind_mlir.mlir.context import LoweringContext, Outcome
from mind_mlir.mlir.types import from_mlir_tensor, tensor_type
from mind_mlir.ops.registry import by_mnemonic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.bindings import Module, Operation, Value
    from mind_mlir.diagnostics.checks import Place
    from mind_mlir.ir.types import TensorType


@dataclass(frozen=True, slots=True)
class LinalgModule:
    """The lowered module, and the run-time checks of its functions by name."""

    module: Module
    checks_of: Mapping[str, tuple[Outcome, ...]]


def to_linalg(source: Module) -> LinalgModule:
    """Return the linalg form of a `mind` module; the source is left as it is.

    Raises:
        UnsupportedError: E7002, the module holds something other than functions over `mind` operations.
    """
    checks: dict[str, tuple[Outcome, ...]] = {}
    with source.context, ir.Location.unknown():
        result = ir.Module.create()
        with ir.InsertionPoint(result.body):
            for function in source.body.operations:
                if function.operation.name != "func.func" or len(function.regions[0].blocks) != 1:
                    raise _unsupported(function.operation)
                checks[function.name.value] = tuple(_Function(function).lower())
        return LinalgModule(result, checks)


class _Function:
    def __init__(self, source: Any) -> None:
        self._source = source
        self._values: dict[Value, Value] = {}
        self._types: dict[Any, TensorType] = {}
        self._checks: list[Outcome] = []

    def lower(self) -> list[Outcome]:
        block = self._source.body.blocks[0]
        arguments = [tensor_type(self._type(argument)) for argument in block.arguments]
        # The type is completed at the end, when it is known whether there is a status to return.
        function = func.FuncOp(self._source.name.value, (arguments, []))
        body = ir.Block.create_at_start(
            function.body, arguments, [argument.location for argument in block.arguments]
        )
        if "arg_attrs" in self._source.attributes:
            function.attributes["arg_attrs"] = self._source.attributes["arg_attrs"]
        self._values.update(zip(block.arguments, body.arguments, strict=True))
        with ir.InsertionPoint(body):
            for view in block.operations:
                deliver()
                operation = view.operation
                if operation.name == "func.return":
                    results = self._return(operation)
                else:
                    self._values[operation.results[0]] = self._operation(operation)
        function.attributes["function_type"] = ir.TypeAttr.get(
            ir.FunctionType.get(arguments, [value.type for value in results])
        )
        return self._checks

    def _operation(self, operation: Operation) -> Value:
        record = by_mnemonic().get(operation.name.removeprefix(PREFIX))
        if record is None or record.lower is None or not operation.name.startswith(PREFIX):
            raise _unsupported(operation)
        context = LoweringContext(
            opcode=record.opcode,
            label=_label(operation, len(self._values)),
            operands=tuple(self._values[operand] for operand in operation.operands),
            operand_types=tuple(self._type(operand) for operand in operation.operands),
            attributes=decode_attributes(record, operation),
            result_type=self._type(operation.results[0]),
            checks=self._checks,
            place=_place(operation),
        )
        with operation.location:
            return record.lower(context)

    def _return(self, operation: Operation) -> list[Value]:
        results = [self._values[operand] for operand in operation.operands]
        with operation.location:
            if self._checks:
                ends = [end for check in self._checks for end in (check.smallest, check.largest)]
                status = ir.RankedTensorType.get([len(ends)], ir.IntegerType.get_signless(64))
                results.append(tensor.FromElementsOp(status, ends).result)
            func.ReturnOp(results)
        return results

    def _type(self, value: Value) -> TensorType:
        type_ = value.type
        if type_ not in self._types:
            ours = from_mlir_tensor(type_)
            if ours is None:
                raise _unsupported(value.owner)
            self._types[type_] = ours
        return self._types[type_]


def _label(operation: Operation, number: int) -> str:
    """Return what the program calls the value, which `emit` left in the location; else its number."""
    location = operation.location
    return location.name_str if isinstance(location, ir.NameLoc) else f"%{number}"


def _place(operation: Operation) -> Place | None:
    """Return where the program has the operation, which `emit` left behind its name."""
    location = operation.location
    if not isinstance(location, ir.NameLoc):
        return None
    place = location.child_loc
    if not isinstance(place, ir.FileLineColLoc):
        return None
    return place.filename, place.start_line, place.start_col


def _unsupported(operation: Any) -> UnsupportedError:
    return UnsupportedError(
        Diagnostic(
            "E7002",
            f"cannot lower '{getattr(operation, 'name', operation)}' to linalg",
            help="the module must hold functions of one block over `mind` operations on static tensors",
        )
    )
