"""The errors of products with weights of few bits, summed as a program runs: in loops over all iterations."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.ir.attributes import Attributes, TensorLiteral
from mind_mlir.ir.module import CoreOperation, Parameter, Result, Yield
from mind_mlir.ir.regions import blocks_within
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.constants import constant_form

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.ir.attributes import AttributeValue
    from mind_mlir.ir.module import Block, ValueId

    #: Of each product, by its value: the sum of its squares, and that of squared differences.
    Sums = dict[ValueId, tuple[ValueId, ValueId]]

_SUM = TensorType(DType.F64, ())


class ErrorSums:
    """Adds to a block what sums the squares of products, and of their differences.

    Args:
        quantized: Returns a product with weights of few bits for one of the program, under a new value, or
            None for every other operation.
        first: The first value that is free.
    """

    def __init__(
        self, quantized: Callable[[CoreOperation, ValueId], CoreOperation | None], first: ValueId
    ) -> None:
        self._quantized, self._next = quantized, first

    def block(self, block: Block) -> tuple[list[CoreOperation], Sums]:
        """Return the operations of a block with what sums, and the sums of all products in it."""
        operations: list[CoreOperation] = []
        sums: Sums = {}
        for operation in block.operations:
            if self._has_products(operation):
                self._regions(operation, operations, sums)
                continue
            operations.append(operation)
            product = self._quantized(operation, self._next)
            if product is not None:
                self._next += 1
                operations.append(product)
                sums[operation.value_id] = self._squares(operation, product, operations)
        return operations, sums

    def _has_products(self, operation: CoreOperation) -> bool:
        inner = (each for block in blocks_within(operation) for each in block.operations)
        return any(self._quantized(each, self._next) is not None for each in inner)

    def _regions(self, operation: CoreOperation, operations: list[CoreOperation], sums: Sums) -> None:
        """Append a loop or a branch whose results are followed by the sums of products in its regions.

        Regions of a loop are given the sums so far; those of a branch begin with zeros.
        """
        found = [self.block(region) for region in operation.regions]
        keys = [key for _, inside in found for key in inside]
        zeros = [self._zero(operations) for _ in range(2 * len(keys))]
        is_loop = operation.opcode == "While"
        regions = []
        for region, (inner, inside) in zip(operation.regions, found, strict=True):
            before = [self._fresh() for _ in zeros] if is_loop else zeros
            after = list(before)
            for place, key in enumerate(keys):
                for part, value in enumerate(inside.get(key, ())):
                    at = 2 * place + part
                    after[at] = self._emit("Add", (before[at], value), _SUM, inner)
            carried = [Parameter(value, _SUM) for value in before] if is_loop else []
            parameters = (*region.parameters, *carried)
            ends = Yield((*region.terminator.operands, *after))
            regions.append(replace(region, parameters=parameters, operations=tuple(inner), terminator=ends))
        results = [self._fresh() for _ in zeros]
        operands = (*operation.operands, *(zeros if is_loop else ()))
        others = (*operation.others, *(Result(value, _SUM) for value in results))
        operations.append(replace(operation, operands=operands, others=others, regions=tuple(regions)))
        sums |= zip(keys, zip(results[::2], results[1::2], strict=True), strict=True)

    def _squares(
        self, exact: CoreOperation, product: CoreOperation, operations: list[CoreOperation]
    ) -> tuple[ValueId, ValueId]:
        type_ = exact.result_type
        assert isinstance(type_, TensorType), "products are tensors"
        wide = type_.with_dtype(DType.F64)
        one, two = (
            self._emit("Cast", (each.value_id,), wide, operations, dtype=DType.F64)
            for each in (exact, product)
        )
        found = []
        for value in (one, self._emit("Sub", (two, one), wide, operations)):
            square = self._emit("Mul", (value, value), wide, operations)
            axes = tuple(range(wide.rank))
            found.append(self._emit("Sum", (square,), _SUM, operations, axes=axes, keepdims=False))
        return found[0], found[1]

    def _zero(self, operations: list[CoreOperation]) -> ValueId:
        opcode, attributes = constant_form(TensorLiteral.from_array(np.zeros((), np.float64)))
        return self._emit(opcode, (), _SUM, operations, **attributes)

    def _emit(
        self,
        opcode: str,
        operands: tuple[ValueId, ...],
        type_: TensorType,
        operations: list[CoreOperation],
        **attributes: AttributeValue,
    ) -> ValueId:
        value = self._fresh()
        operations.append(CoreOperation(value, opcode, operands, Attributes.of(attributes), type_))
        return value

    def _fresh(self) -> ValueId:
        self._next += 1
        return self._next - 1
