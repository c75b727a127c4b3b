"""Values of a module that is being built, as Python code handles them."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.module import ValueId
    from mind_mlir.ir.types import TensorType


@dataclass(frozen=True, slots=True)
class Value:
    """A value of the module that its builder builds; no other builder takes it."""

    id: ValueId
    type: TensorType
    builder: object = field(repr=False)

    def __str__(self) -> str:
        return f"%{self.id}"

    def __repr__(self) -> str:
        return f"<Value %{self.id} : {self.type}>"

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the static shape."""
        return self.type.extents
