"""Axes whose extent is known only when a program is called, and the rules of operations on them.

A program is made for the greatest extents of a range, and called with less: what lies beyond the extent of a
call is *padding*, of any value. A rule appends what gives an operation's results, right in all elements that
are no padding. It does that by putting numbers that change nothing in the place of the padding of what the
operation sums up, compares or uses as an index; most operations need none of it.

An axis is a product of factors, as several dimensions that were reshaped to one. So the padding of an axis is
known whatever is made of it: the elements in which the index of an open factor is its extent or more.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias

import numpy as np

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.module import CoreOperation
    from mind_mlir.ir.value import Value
    from mind_mlir.ops.opdef import OpDef
    from mind_mlir.ops.vjp import Appends


class NotOpen(Exception):  # noqa: N818 -- it says what a program is not
    """An operation that has no rule for what a program asks of it; the message says why."""

    def __init__(self, reason: str, operation: CoreOperation | None = None) -> None:
        """Hold the reason, and the operation where one is the reason."""
        super().__init__(reason)
        self.operation = operation

    @property
    def full(self) -> str:
        """Return the reason with the operation."""
        operation = self.operation
        return str(self) if operation is None else f"{operation.opcode} of {operation.label}: {self}"


class Factor(NamedTuple):
    """A factor of an axis.

    Attributes:
        extent: Its extent in the program.
        symbol: Which extent of a call it is, by place; None where it is always the same.
        offset: How much is added to that.
    """

    extent: int
    symbol: int | None = None
    offset: int = 0

    def at(self, extents: Sequence[int]) -> int:
        """Return its extent where those of the symbols are ``extents``."""
        return self.extent if self.symbol is None else extents[self.symbol] + self.offset


Axis: TypeAlias = tuple[Factor, ...]


def is_open(axis: Axis) -> bool:
    """Return whether the extent of an axis is one of a call's."""
    return any(factor.symbol is not None for factor in axis)


def extent_of(axis: Axis, extents: Sequence[int] | None = None) -> int:
    """Return the extent of an axis where the symbols have ``extents``; without them, that in the program."""
    return math.prod(factor.extent if extents is None else factor.at(extents) for factor in axis)


def axis_of(factors: Iterable[Factor]) -> Axis:
    """Return the axis of some factors, in the one form that it has."""
    found: list[Factor] = []
    for factor in factors:
        if factor == Factor(1):
            continue
        if found and factor.symbol is None and found[-1].symbol is None:
            found[-1] = Factor(found[-1].extent * factor.extent)
        else:
            found.append(factor)
    return tuple(found)


def closed(extents: Sequence[int]) -> tuple[Axis, ...]:
    """Return axes of fixed extents."""
    return tuple([axis_of([Factor(extent)]) for extent in extents])


def regrouped(axes: Sequence[Axis], shape: Sequence[int]) -> tuple[Axis, ...] | None:
    """Return the axes of a tensor that is reshaped to ``shape``; None where an open factor is cut."""
    queue = [factor for axis in axes for factor in axis]
    found = []
    for extent in shape:
        taken, left = [], extent
        while left != 1:
            if not queue:
                return None
            factor = queue.pop(0)
            if factor.extent and left % factor.extent == 0:
                taken.append(factor)
                left //= factor.extent
            elif factor.symbol is None and left and factor.extent % left == 0:
                taken.append(Factor(left))
                queue.insert(0, Factor(factor.extent // left))
                left = 1
            else:
                return None
        found.append(axis_of(taken))
    return None if queue else tuple(found)


class Linear(NamedTuple):
    """A number of a program that follows the extents of a call: ``constant``, and an extent if there is one.

    Attributes:
        constant: What is added.
        symbol: The extent; None for a number that is always the same.
    """

    constant: int
    symbol: int | None = None

    def at(self, extents: Sequence[int]) -> int:
        """Return it where the extents are ``extents``."""
        return self.constant if self.symbol is None else self.constant + extents[self.symbol]


class Rows(NamedTuple):
    """What a value says of rows of another one.

    Attributes:
        of: The other one.
        opcode: What has been made of its elements: ``Max``, ``Sum``.
        axes: Along which of its axes.
    """

    of: Value
    opcode: str
    axes: frozenset[int]


@dataclass(slots=True, eq=False)
class OpenValue:
    """A value of the program that is made.

    Attributes:
        value: The value.
        axes: Its axes.
        padding: The number that padding holds, as numpy has it; None where that is not known.
        along: The axes along which that is so, of those that are open.
        uniform: Whether all of it is that number.
        rows: What it says of rows of another value, which its first axes are those of.
        opcode: What it has been made by.
    """

    value: Value
    axes: tuple[Axis, ...]
    padding: Any = None
    along: frozenset[int] = frozenset()
    uniform: bool = False
    rows: Rows | None = None
    opcode: str = ""

    @property
    def is_open(self) -> bool:
        """Return whether one of its axes is."""
        return any(map(is_open, self.axes))

    @property
    def open_axes(self) -> frozenset[int]:
        """Return the places of its axes that are."""
        return frozenset([place for place, axis in enumerate(self.axes) if is_open(axis)])

    def holds(self, number: Any, axes: Collection[int]) -> bool:
        """Return whether padding along some axes has the bits of a number."""
        return (
            self.padding is not None and self.padding.tobytes() == number.tobytes() and self.along >= {*axes}
        )


@dataclass(slots=True)
class Masks:
    """What tells elements from padding, each made once: in one region, and those around it.

    Attributes:
        made: For each axis, the truth values of its elements.
        around: Those of the region around it.
    """

    made: dict[Axis, Value] = field(default_factory=dict)
    around: Masks | None = None

    def find(self, axis: Axis) -> Value | None:
        """Return the mask of an axis, if there is one that is visible here."""
        here: Masks | None = self
        while here is not None:
            if axis in here.made:
                return here.made[axis]
            here = here.around
        return None


@dataclass(slots=True)
class OpenContext:
    """One operation as its rule for open axes sees it.

    Attributes:
        builder: Appends to the program that is made.
        record: The record of the operation.
        operation: The operation, in the program of the greatest extents.
        versions: The same operation in programs of other extents.
        operands: Its operands.
        extents: The extents of the symbols in each of these programs: all the greatest, then one after the
            other its least, and then any others.
        counts: The extents of a call, as scalars of i64.
        masks: What tells elements from padding.
        regions: The regions, for operations that have some.
    """

    builder: Appends
    record: OpDef
    operation: CoreOperation
    versions: Sequence[CoreOperation]
    operands: Sequence[OpenValue]
    extents: Sequence[tuple[int, ...]]
    counts: Sequence[Value]
    masks: Masks
    regions: Sequence[Any] = ()

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Return the attributes, those of the greatest extents."""
        return self.operation.attributes

    def refuse(self, reason: str) -> NoReturn:
        """Say that the operation has no rule for what is asked."""
        raise NotOpen(reason, self.operation)

    # What follows the extents.

    def follow(self, numbers: Sequence[int]) -> Linear:
        """Return a number of the program that is ``numbers`` for each of `extents`."""
        first, found = numbers[0], Linear(numbers[0])
        greatest = self.extents[0]
        for symbol, number in enumerate(numbers[1 : len(greatest) + 1]):
            if number == first:
                continue
            other = self.extents[symbol + 1][symbol]
            if found.symbol is not None or first - number != greatest[symbol] - other:
                self.refuse("it has a number that does not grow as one open dimension does")
            found = Linear(first - greatest[symbol], symbol)
        if any(found.at(each) != number for number, each in zip(numbers, self.extents, strict=True)):
            self.refuse("it has a number that does not grow as one open dimension does")
        return found

    def follows(self, name: str) -> list[Linear]:
        """Return the numbers of an attribute that is a list of numbers."""
        lists = self.all_of(name)
        if len({len(each) for each in lists}) != 1:
            self.refuse(f"its {name} are of another number for other extents")
        return [self.follow(numbers) for numbers in zip(*lists, strict=True)]

    def all_of(self, name: str) -> list[Any]:
        """Return an attribute in all programs."""
        return [each.attributes[name] for each in (self.operation, *self.versions)]

    def expect_same(self, *but: str) -> None:
        """Refuse attributes, other than those named, that depend on the extents."""
        for name, value in self.attributes.items():
            if name not in but and any(each.attributes[name] != value for each in self.versions):
                self.refuse(f"its {name} depends on an open dimension")

    def axis_at(self, place: int, index: int = 0) -> Axis:
        """Return an axis of a result, of one factor, as the types of the programs tell."""
        types = [each.result_types[index] for each in (self.operation, *self.versions)]
        numbers = [type_.extents[place] for type_ in types]
        linear = self.follow(numbers)
        offset = 0 if linear.symbol is None else linear.constant
        return axis_of([Factor(numbers[0], linear.symbol, offset)])

    def axes_of_type(self) -> tuple[Axis, ...]:
        """Return the axes of the result, each of one factor, as the types of the programs tell."""
        return tuple([self.axis_at(place) for place in range(self.operation.tensor_type.rank)])

    # What is appended.

    def emit(self, opcode: str, *operands: Value, **attributes: Any) -> Value:
        """Append an operation."""
        return self.builder.emit(opcode, *operands, **attributes)

    def repeat(self, *values: Value) -> tuple[Value, ...]:
        """Append the operation as it is, of its operands or of the values given."""
        operands = values or tuple([operand.value for operand in self.operands])
        return self.builder.copy_all(self.operation, operands)

    def spread(self, value: Value, shape: Sequence[int]) -> Value:
        """Append ``value``, whose shape broadcasts to ``shape``, in that shape."""
        if tuple(value.shape) == tuple(shape):
            return value
        return self.emit("BroadcastTo", value, result_shape=tuple(shape))

    def reshaped(self, value: Value, shape: Sequence[int]) -> Value:
        """Append ``value`` in another shape."""
        return value if value.shape == tuple(shape) else self.emit("Reshape", value, new_shape=tuple(shape))

    def count(self, linear: Linear) -> Value:
        """Append a number that follows the extents of the call, an i64."""
        if linear.symbol is None:
            return self.builder.constant(linear.constant, DType.SI64)
        value = self.counts[linear.symbol]
        return value if not linear.constant else self.emit("Add", value, self.count(Linear(linear.constant)))

    def number_of(self, axes: Iterable[Axis]) -> Value:
        """Append how many elements some axes have together, an i64."""
        found, fixed = None, 1
        for factor in (factor for axis in axes for factor in axis):
            if factor.symbol is None:
                fixed *= factor.extent
                continue
            extent = self.count(Linear(factor.offset, factor.symbol))
            found = extent if found is None else self.emit("Mul", found, extent)
        if found is None or fixed == 1:
            return self.count(Linear(fixed)) if found is None else found
        return self.emit("Mul", found, self.count(Linear(fixed)))

    def mask(self, axis: Axis) -> Value:
        """Append which places of an open axis are no padding: truth values of the axis's extent."""
        found = self.masks.find(axis)
        if found is not None:
            return found
        shape = tuple(factor.extent for factor in axis)
        total: Value | None = None
        for place, factor in enumerate(axis):
            if factor.symbol is None:
                continue
            index = self.emit("Iota", shape=(factor.extent,), dtype=DType.SI64, axis=0)
            limit = self.spread(self.count(Linear(factor.offset, factor.symbol)), (factor.extent,))
            part = self.emit("Compare", index, limit, op="Less")
            alone = tuple(extent if place == other else 1 for other, extent in enumerate(shape))
            part = self.spread(self.reshaped(part, alone), shape)
            total = part if total is None else self.emit("And", total, part)
        assert total is not None, "only open axes have masks"
        found = self.masks.made[axis] = self.reshaped(total, (math.prod(shape),))
        return found

    def filled(self, operand: OpenValue, number: Any, axes: Collection[int] | None = None) -> Value:
        """Append an operand with a number in the place of its padding along some axes, or all.

        What comes later reads it so, too, and need not fill in the same again.

        Args:
            operand: The operand.
            number: The number, as numpy has it.
            axes: The axes.
        """
        value, shape = operand.value, operand.value.shape
        chosen = [
            place
            for place, axis in enumerate(operand.axes)
            if is_open(axis) and (axes is None or place in axes)
        ]
        scalar = np.asarray(number, value.type.dtype.numpy)
        if not chosen or operand.holds(scalar, chosen):
            return value
        keep: Value | None = None
        for place in chosen:
            alone = [1] * len(shape)
            alone[place] = shape[place]
            part = self.spread(self.reshaped(self.mask(operand.axes[place]), alone), shape)
            keep = part if keep is None else self.emit("And", keep, part)
        assert keep is not None, "an axis is open"
        filled = self.emit("Select", keep, value, self.spread(self.constant(scalar, value.type), shape))
        if self.masks.around is None:  # it is visible to all that comes
            operand.value, operand.padding, operand.along = filled, scalar, frozenset(chosen)
        return filled

    def constant(self, number: Any, type_: TensorType) -> Value:
        """Append a scalar of the dtype of ``type_``."""
        return self.builder.constant(number, type_.dtype)
