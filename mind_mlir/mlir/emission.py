"""The context that the emit rule of an operation with regions, or of a call, is given.

Such operations have no counterpart in the `mind` dialect: their rule builds operations of MLIR's own
dialects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mind_mlir.mlir import bindings
from mind_mlir.mlir.bindings import ir
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mind_mlir.mlir.bindings import Block, Operation, Type, Value


@dataclass(frozen=True, slots=True)
class EmitRegion:
    """A region to be emitted.

    Attributes:
        types: The types of its parameters.
        body: Emits what the region computes at the insertion point, given its parameters; returns what it
            yields.
    """

    types: tuple[Type, ...]
    body: Callable[[Sequence[Value]], list[Value]]

    def emit_into(self, region: Any, finish: Callable[[list[Value]], object]) -> Block:
        """Make this the one block of ``region``, ended by ``finish`` of what it yields; return the block."""
        block = ir.Block.create_at_start(region, list(self.types), [ir.Location.current] * len(self.types))
        with ir.InsertionPoint(block):
            finish(self.body(list(block.arguments)))
        return block


@dataclass(frozen=True, slots=True)
class EmitContext:
    """One operation as its emit rule sees it: tensors of the `mind` dialect in and out, integers signed.

    Insertion point and location are the caller's; the rule appends, and returns the results.

    Attributes:
        operands: The emitted operands.
        result_types: The types of the results.
        attributes: Complete attributes, as Python values.
        regions: The regions of the operation, in order.
    """

    operands: tuple[Value, ...]
    result_types: tuple[Type, ...]
    attributes: Mapping[str, Any]
    regions: tuple[EmitRegion, ...] = ()

    @property
    def mlir(self) -> Any:
        """Return the bindings, so that rules reach MLIR without importing it."""
        return bindings

    def create(self, name: str, operands: Sequence[Value], **attributes: Any) -> Operation:
        """Append the operation ``name`` with the results and as many regions as this one."""
        return ir.Operation.create(
            name,
            results=list(self.result_types),
            operands=list(operands),
            attributes=attributes,
            regions=len(self.regions),
        )

    def scalar(self, value: Value) -> Value:
        """Append the `tensor.extract` of the element of a tensor of rank 0."""
        return bindings.tensor.ExtractOp(value, []).result
