"""Regions that a builder is filling: blocks whose values are visible in them alone."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import field
from types import TracebackType
from typing import TYPE_CHECKING

from mind_mlir.builders.given import listed
from mind_mlir.ir.module import Block, CoreOperation, Parameter, ValueId, Yield
from mind_mlir.ir.regions import live_operations
from mind_mlir.ops.contexts import RegionTypes
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.builders.builder import Builder
    from mind_mlir.ir.types import TensorType
    from mind_mlir.ir.value import Value


@dataclass(slots=True, eq=False)
class Region:
    """A region of an operation that is still to come; `Builder.region` makes one.

    What its builder appends while the ``with`` statement runs becomes its operations; it may be
    entered again.

    Attributes:
        builder: Whose operations it holds.
        parameters: The values that entering it defines.
        operations: Its operations.
        yields: What it yields; None before `yield_` says.
        types: The types of the parameters that it begins with.
        used: Whether an operation has it.
        entered: Whether it has been entered before.
    """

    builder: Builder = field(repr=False)
    parameters: list[Value] = field(default_factory=list)
    operations: list[CoreOperation] = field(default_factory=list)
    yields: tuple[Value, ...] | None = None
    types: tuple[TensorType, ...] = ()
    used: bool = False
    entered: bool = False
    _hidden: Hidden | None = field(default=None, repr=False)
    _first: ValueId = 0
    _outside: list[CoreOperation] = field(default_factory=list, repr=False)

    @property
    def signature(self) -> RegionTypes:
        """Return the types of its parameters and of what it yields."""
        yields = self.yields or ()
        return RegionTypes(tuple(v.type for v in self.parameters), tuple(v.type for v in yields))

    def __enter__(self) -> Region:
        builder = self.builder
        self._first, self._outside = builder.next_id, builder.operations
        builder.operations = self.operations
        if self.entered:  # once more: what it holds is visible again
            self._hidden, builder.hidden = builder.hidden, Hidden()
        self.entered = True
        self.parameters += [builder.fresh(type_) for type_ in self.types]
        self.types = ()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.operations = self.builder.operations
        self.builder.operations = self._outside
        if self._hidden is not None:
            self.builder.hidden, self._hidden = self._hidden, None
        self.builder.hidden.add(self._first, self.builder.next_id)

    def parameter(self, type_: TensorType) -> Value:
        """Add a parameter."""
        self.parameters.append(self.builder.fresh(type_))
        return self.parameters[-1]

    def prune(self) -> None:
        """Drop the operations whose results nothing needs."""
        roots = [value.id for value in self.yields or ()]
        self.operations = live_operations(self.operations, roots)

    def yield_(self, values: Iterable[Value] | Value) -> None:
        """End the region: ``values``, or one value, are what it yields.

        Raises:
            VerificationError: E4001, a value is none of this builder's, or not visible here.
            TypeError: ``values`` is no iterable.
        """
        self.yields = tuple(self.builder._own(listed(values, "values"), "yielded value {}"))

    def block(self, label: str) -> Block:
        """Return the finished region as a block called ``label``."""
        assert self.yields is not None, "a region is used when it yields"
        return Block(
            tuple(self.operations),
            Yield(tuple(value.id for value in self.yields)),
            tuple(Parameter(value.id, value.type) for value in self.parameters),
            label,
        )


@dataclass(slots=True)
class Hidden:
    """The values that are not visible any more, because their region has ended.

    A region's values have consecutive ids, since ids are given in the order of creation.
    """

    starts: list[ValueId] = field(default_factory=list)
    ends: list[ValueId] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.starts)

    def __contains__(self, value: ValueId) -> bool:
        place = bisect_right(self.starts, value) - 1
        return place >= 0 and value < self.ends[place]

    def add(self, start: ValueId, end: ValueId) -> None:
        """Hide the values from ``start`` to before ``end``, which are the newest ones."""
        while self.starts and self.starts[-1] >= start:  # regions inside of the one that ends
            self.starts.pop()
            self.ends.pop()
        self.starts.append(start)
        self.ends.append(end)
