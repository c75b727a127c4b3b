"""The tensors that a row program writes to while it runs over its rows."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.schedule.fusion.output import Output
    from mind_mlir.mlir.bindings import Value


@dataclasses.dataclass
class Block:
    """Tensors that are written while rows are computed, as they are by now.

    Attributes:
        outputs: The results.
        buffers: Memory of a few rows: for each value that is kept, and each that a pass gives to another.
    """

    outputs: dict[Value, Value]
    buffers: dict[Value, Value]

    @property
    def tensors(self) -> list[Value]:
        """All of them, in order."""
        return [*self.outputs.values(), *self.buffers.values()]

    def at(self, tensors: Sequence[Value]) -> Block:
        """Return the same with other ``tensors``, in order."""
        count = len(self.outputs)
        pairs = zip(self.outputs, tensors[:count], strict=True)
        return Block(dict(pairs), dict(zip(self.buffers, tensors[count:], strict=True)))

    def home(self, value: Value) -> dict[Value, Value]:
        """Return which of the two ``value``, which lies along the rows, is in."""
        return self.outputs if value in self.outputs else self.buffers

    def now(self, outputs: dict[Value, Output]) -> dict[Value, Value]:
        """Return what is to be read instead of values and of tensors that have been written over."""
        found = {outputs[value].destination: tensor for value, tensor in self.outputs.items()}
        return {**found, **self.outputs, **self.buffers}
