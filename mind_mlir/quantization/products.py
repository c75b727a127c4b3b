"""Which products of a function have weights that may become numbers of few bits."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.regions import reads, value_types
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import Block, CoreOperation, ValueId

#: The operations that multiply matrices.
PRODUCTS = ("MatMul", "Dot", "DotGeneral")
#: The dtypes of activations.
_REAL = (DType.F32, DType.BF16, DType.F16)


@dataclass(frozen=True, slots=True, eq=False)
class Weight:
    """A matrix that is known: a constant or a parameter.

    Attributes:
        value: Its value in the function.
        name: What the parameter, or the constant, is called.
        array: Its numbers.
        is_parameter: Whether callers give it.
    """

    value: ValueId
    name: str
    array: Array
    is_parameter: bool


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """A product of activations and a weight.

    Attributes:
        operation: The product.
        x: The activations.
        x_type: Their type.
        weight: The weight.
        by_rows: Whether the weight has a row for each result; else a column.
    """

    operation: CoreOperation
    x: ValueId
    x_type: TensorType
    weight: Weight
    by_rows: bool

    def rows(self) -> Array:
        """Return the numbers of the weight, a row for each result."""
        return self.weight.array if self.by_rows else np.ascontiguousarray(self.weight.array.T)


def walk(block: Block) -> Iterator[CoreOperation]:
    """Yield the operations of a block, each followed by those in its regions."""
    for operation in block.operations:
        yield operation
        for region in operation.regions:
            yield from walk(region)


def weights_of(block: Block, given: Mapping[str, Array]) -> dict[ValueId, Weight]:
    """Return the known matrices of a function's block: all constants, and the parameters that are given."""
    found = {}
    for parameter in block.parameters:
        if parameter.name in given:
            name = str(parameter.name)
            found[parameter.value_id] = Weight(parameter.value_id, name, given[name], is_parameter=True)
    for operation in walk(block):
        literal = operation.attributes.get("value")
        if operation.opcode == "ConstTensor" and isinstance(literal, TensorLiteral):
            name = operation.label
            found[operation.value_id] = Weight(operation.value_id, name, literal.array, is_parameter=False)
    return {value: weight for value, weight in found.items() if weight.array.ndim == 2}


class Finder:
    """Looks at the products of a block.

    Args:
        block: The only block of a function in structured form.
        weights: The matrices that are known.
    """

    def __init__(self, block: Block, weights: Mapping[ValueId, Weight]) -> None:
        self._weights = weights
        self._makers = {operation.value_id: operation for operation in walk(block)}
        self._types = value_types([block])

    def product(self, operation: CoreOperation) -> Product | None:
        """Return ``operation`` as a product of activations and a weight, or None if it is none."""
        if operation.opcode not in PRODUCTS:
            return None
        for place in (1, 0):
            found = self._weight(operation.operands[place])
            if found is None:
                continue
            weight, is_turned = found
            x = operation.operands[1 - place]
            axis = self._summed(operation, place)
            type_ = self._types[x]
            if axis is None or not isinstance(type_, TensorType) or not self._fits(operation, place, type_):
                continue
            return Product(operation, x, type_, weight, by_rows=(axis == 1) != is_turned)
        return None

    def _weight(self, value: ValueId) -> tuple[Weight, bool] | None:
        """Return the weight that ``value`` is, and whether it is its transpose."""
        if value in self._weights:
            return self._weights[value], False
        maker = self._makers.get(value)
        if maker is None or maker.opcode != "Transpose":
            return None
        (source,) = reads(maker)
        return (self._weights[source], True) if source in self._weights else None

    def _summed(self, operation: CoreOperation, place: int) -> int | None:
        """Return the axis of the matrix at ``place`` that is summed over, if it is one."""
        if operation.opcode != "DotGeneral":
            return 1 if place == 0 else 0
        attributes = operation.attributes
        sides = ("lhs", "rhs")
        if any(attributes[f"batch_{side}"] for side in sides):
            return None
        axes, of_x = (
            cast("tuple[int, ...]", attributes[f"contract_{sides[each]}"]) for each in (place, 1 - place)
        )
        x = self._types[operation.operands[1 - place]]
        if len(axes) != 1 or not isinstance(x, TensorType) or of_x[0] % x.rank != x.rank - 1:
            return None
        return axes[0] % 2

    def _fits(self, operation: CoreOperation, place: int, x: TensorType) -> bool:
        """Return whether the result is that of activations times rows of weights, in their dtype."""
        if x.dtype not in _REAL or x.rank < 1 or 0 in x.extents:
            return False
        if not isinstance(operation.result_type, TensorType) or operation.result_type.dtype is not x.dtype:
            return False
        return place == 1 or x.rank == 1
