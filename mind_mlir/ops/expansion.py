"""The context of the rule that says for which other operations an operation stands.

Operations with such a rule are there for people, and for the numpy rules. In structured form, before
differentiation and lowering, others take their place (`mind_mlir.passes.structure.expansion`), so that
nothing else knows them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mind_mlir.ir.module import Block, Parameter
    from mind_mlir.ir.types import TensorType
    from mind_mlir.ops.vjp import Appends


@dataclass(frozen=True, slots=True)
class ExpandContext:
    """One verified operation whose place others are to take.

    The rule appends them to the builder, and has them define the results. The regions' operations may be
    appended as they are, once: they keep the ids of their values, and so may what defines their parameters.

    Attributes:
        builder: Takes the operations.
        operands: Its operands.
        results: The values of its results, for `emit_all(..., defines=...)`.
        attributes: Its attributes, complete.
        regions: Its regions, in which everything has been expanded.
    """

    builder: Appends
    operands: tuple[Value, ...]
    results: tuple[Value, ...]
    attributes: Mapping[str, Any]
    regions: tuple[Block, ...]

    def parameters(self, parameters: Iterable[Parameter]) -> list[Value]:
        """Return the parameters of a region as values of the builder."""
        return [Value(each.value_id, each.tensor_type, self.builder) for each in parameters]

    def yielded(self, region: Block, types: Sequence[TensorType]) -> list[Value]:
        """Return what a region yields, values of these types, as values of the builder."""
        yielded = zip(region.terminator.operands, types, strict=True)
        return [Value(value, type_, self.builder) for value, type_ in yielded]

    def emit(self, opcode: str, *operands: Value, **attributes: Any) -> Value:
        """Append an operation and return its value."""
        return self.builder.emit(opcode, *operands, **attributes)

    def define(self, opcode: str, *operands: Value, **attributes: Any) -> bool:
        """Append the operation whose results are those of the one that is expanded; return True."""
        self.builder.emit_all(opcode, *operands, defines=self.results, **attributes)
        return True

    def full(self, number: float, like: Value) -> Value:
        """Append a tensor of the type of ``like``, each element of it ``number``."""
        return self.stretched(self.builder.constant(number, like.type.dtype), like.type.extents)

    def stretched(self, value: Value, shape: tuple[int, ...]) -> Value:
        """Append ``value`` in a shape that it broadcasts to."""
        return value if value.type.extents == shape else self.emit("BroadcastTo", value, result_shape=shape)
