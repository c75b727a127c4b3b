"""Writes a program in f64: what differences of its results are taken of, to compare its gradients with.

Before: a verified module. After: the same, whose floats are f64 and whose complex numbers cf64. Operations
that are others in another dtype, as those that look at bits, keep theirs, between conversions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.module import CoreOperation, Functions
from mind_mlir.ir.regions import value_types
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.registry import by_opcode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mind_mlir.ir.module import Block, Function, Module, ValueId

_WIDE_CONSTANTS: Mapping[str, str] = {"ConstF32": "ConstF64"}


def in_f64(module: Module) -> Module:
    """Return a verified module, without custom calls, in f64."""
    return replace(module, functions=Functions([_Widening(each).function() for each in module.functions]))


def wide(dtype: DType) -> DType:
    """Return the dtype in the place of ``dtype``."""
    if dtype.is_complex:
        return DType.CF64
    return DType.F64 if dtype.is_float else dtype


class _Widening:
    """Writes one function in f64."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._types = value_types(function.blocks)
        self._next = max(self._types, default=-1) + 1

    def function(self) -> Function:
        blocks = tuple(map(self._block, self._function.blocks))
        results = self._function.result_types
        return replace(self._function, blocks=blocks, result_types=results and tuple(map(_value, results)))

    def _block(self, block: Block) -> Block:
        operations = [new for operation in block.operations for new in self._operation(operation)]
        parameters = tuple([replace(each, type=_value(each.type)) for each in block.parameters])
        return replace(block, operations=tuple(operations), parameters=parameters)

    def _operation(self, operation: CoreOperation) -> Iterator[CoreOperation]:
        if by_opcode()[operation.opcode].depends_on_width:
            yield from self._kept(operation)
            return
        yield replace(
            operation,
            opcode=_WIDE_CONSTANTS.get(operation.opcode, operation.opcode),
            attributes={name: _value(value) for name, value in operation.attributes.items()},
            result_type=_value(operation.result_type),
            others=tuple([replace(each, type=_value(each.type)) for each in operation.others]),
            regions=tuple(map(self._block, operation.regions)),
        )

    def _kept(self, operation: CoreOperation) -> Iterator[CoreOperation]:
        """Yield an operation as it is, on operands that are rounded, and its results converted."""
        operands = []
        for value in operation.operands:
            type_ = self._types[value]
            operands.append(value)
            if wide(type_.dtype) is not type_.dtype:
                operands[-1] = self._fresh()
                yield _cast(operands[-1], value, type_)
        results = [
            each.value_id if wide(type_.dtype) is type_.dtype else self._fresh()
            for each, type_ in zip(operation.results, operation.result_types, strict=True)
        ]
        others = tuple(
            [replace(o, value_id=new) for o, new in zip(operation.others, results[1:], strict=True)]
        )
        yield replace(operation, operands=tuple(operands), value_id=results[0], others=others)
        for value, new, type_ in zip(operation.result_ids, results, operation.result_types, strict=True):
            if new != value:
                yield _cast(value, new, type_.with_dtype(wide(type_.dtype)))

    def _fresh(self) -> ValueId:
        self._next += 1
        return self._next - 1


def _cast(value: ValueId, operand: ValueId, type_: TensorType) -> CoreOperation:
    return CoreOperation.create(value, "Cast", (operand,), {"dtype": type_.dtype}, type_)


def _value(value: Any) -> Any:
    """Return a type, dtype or literal with f64 in the place of other floats; all else as it is."""
    if isinstance(value, DType):
        return wide(value)
    if isinstance(value, TensorType):
        return value.with_dtype(wide(value.dtype))
    if isinstance(value, TensorLiteral):
        dtype = wide(value.type.dtype)
        return TensorLiteral.from_array(value.array.astype(dtype.numpy))
    return value
