"""The argument of an import rule: an operation of StableHLO, and methods that emit the same in Core IR."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from mind_mlir.builders.compositions.composer import Composer
from mind_mlir.languages.stablehlo.rules.types import (
    Unsupported,
    flat_types,
    keyword_of,
    tensor_type,
)
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.types import TensorType
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.bindings import Block, Operation


class Imports(Protocol):
    """The importer as its rules see it: it reads regions, values and other functions for them."""

    @property
    def for_xla(self) -> bool:
        """Return whether the program is written for XLA, and means what XLA does where StableHLO differs."""

    @property
    def resources(self) -> Mapping[str, bytes]:
        """Return the data that the program holds beside its operations, by name."""

    def block(
        self, block: Block, arguments: Sequence[Value], lift: tuple[int, ...] | None = None
    ) -> tuple[Value, ...]:
        """Append what ``block`` does, and return what it ends with (see `importing`)."""

    def call(self, name: str, arguments: Sequence[Value]) -> tuple[Value, ...]:
        """Append a call of a function of the program."""

    def value(self, value: Any, lift: tuple[int, ...] | None) -> Value:
        """Return what a value of MLIR is here, in the shape that scalars have."""

    def note(self, value: Value, number: Any) -> None:
        """Remember the number that all elements of a value are."""

    def folded(self, value: Value) -> Array | None:
        """Return integers or truth values that are the same whatever the arguments are; else None."""

    def decomposed(self, operation: Operation, arguments: Sequence[Value]) -> tuple[Value, ...]:
        """Append what StableHLO's own passes make of an operation."""


@dataclass(slots=True, kw_only=True)
class Use(Composer):
    """One operation as its rule sees it.

    Attributes:
        imports: Reads its regions.
        operation: The operation of MLIR.
        operands: Its operands, in our terms.
        lift: The shape that scalars have here, where a region for scalars is applied to whole tensors.
    """

    imports: Imports
    operation: Operation
    operands: tuple[Value, ...]
    lift: tuple[int, ...] | None

    def result_type(self, index: int = 0) -> TensorType:
        """Return the type of a result."""
        found = tensor_type(self.operation.results[index].type)
        return found if self.lift is None else found.with_shape(self.lift)

    @property
    def has_results(self) -> bool:
        """Return whether it gives tensors."""
        return any(flat_types(result.type) for result in self.operation.results)

    def attribute(self, name: str) -> Any:
        """Return an attribute, which is there."""
        return self.operation.attributes[name]

    def has(self, name: str) -> bool:
        """Return whether it has an attribute."""
        return name in self.operation.attributes

    def integers(self, name: str, default: Sequence[int] = ()) -> tuple[int, ...]:
        """Return a list of integers; ``default`` where there is none."""
        if not self.has(name):
            return tuple(default)
        return tuple(int(each) for each in self.attribute(name))

    def integer(self, name: str, default: int = 0) -> int:
        """Return an integer; ``default`` where there is none."""
        return int(self.attribute(name).value) if self.has(name) else default

    def flag(self, name: str) -> bool:
        """Return whether an attribute is there and true."""
        return self.has(name) and bool(self.attribute(name).value)

    def pairs(self, name: str, count: int) -> list[tuple[int, int]]:
        """Return a list of pairs, of zeros where there is none."""
        if not self.has(name):
            return [(0, 0)] * count
        numbers = np.array(self.attribute(name)).reshape(-1, 2)
        return [(int(low), int(high)) for low, high in numbers]

    def keyword(self, name: str, default: str = "") -> str:
        """Return the keyword of an attribute such as ``#stablehlo<comparison_direction LT>``."""
        if not self.has(name):
            return default
        return keyword_of(self.operation, name)

    def body(self, index: int = 0) -> Block:
        """Return the block of a region."""
        return self.operation.regions[index].blocks[0]

    def refuse(self, why: str) -> Any:
        """End the import of this operation."""
        raise Unsupported(why)


#: Appends what an operation does, and returns its result, or all of them in order.
Emit: TypeAlias = "Callable[[Use], Value | Sequence[Value]]"


@dataclass(frozen=True, slots=True)
class Rule:
    """The import rule of one operation.

    Attributes:
        emit: Appends what it does.
        lifts: Whether it may be applied to tensors in the place of scalars, element by element.
    """

    emit: Emit
    lifts: bool = False
