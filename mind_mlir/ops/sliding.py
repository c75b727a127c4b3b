"""Windows that slide along the axes of a tensor: where they lie, and tensors of all of them.

An axis is spaced out by its base dilation, padded, and has windows whose elements lie the window dilation
apart, each a stride after the one before (ptir-v0.4.md, "Windowed ops").
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.allocation import allocation_failed
from mind_mlir.ir.attributes import Array, Padding, PaddingMode
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.windows import row_form
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value
    from mind_mlir.ops.contexts import TypeContext
    from mind_mlir.ops.vjp import VjpContext

#: (low, high) for height and for width.
Pairs = tuple[tuple[int, int], tuple[int, int]]
#: No window, stride, padding or dilation is larger.
_MOST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Sliding:
    """The windows along one axis.

    Attributes:
        extent: The elements of the axis.
        window: The elements of a window.
        stride: How far apart windows begin.
        low: What is padded before; below zero, what is cut off.
        high: What is padded behind, likewise.
        base: The base dilation: how far apart elements of the axis lie.
        spacing: The window dilation: how far apart elements of a window lie.
    """

    extent: int
    window: int = 1
    stride: int = 1
    low: int = 0
    high: int = 0
    base: int = 1
    spacing: int = 1

    @property
    def padded(self) -> int:
        """Return the extent with what is padded and in between."""
        return self.low + (max(self.extent - 1, 0) * self.base + min(self.extent, 1)) + self.high

    @property
    def span(self) -> int:
        """Return the extent that a window covers."""
        return (self.window - 1) * self.spacing + 1

    @property
    def count(self) -> int:
        """Return how many windows there are."""
        return (self.padded - self.span) // self.stride + 1

    @property
    def kept(self) -> range:
        """Return where the elements lie among what is padded."""
        end = self.low + max(self.extent - 1, 0) * self.base + min(self.extent, 1)
        return range(self.low, end, self.base) if self.extent > 1 else range(self.low, end)

    @property
    def is_trivial(self) -> bool:
        """Return whether each window is the element at its place."""
        return self == Sliding(self.extent)

    def elements(self, place: int) -> slice:
        """Return where element ``place`` of each window lies among what is padded."""
        start = place * self.spacing
        return slice(start, start + (self.count - 1) * self.stride + 1, self.stride)

    def terms(self, place: int) -> slice:
        """Return the windows whose element ``place`` is no gap of the base dilation, evenly spaced."""
        period = self.base // math.gcd(self.base, self.stride)
        at = (place * self.spacing - self.low + np.arange(min(period, self.count)) * self.stride) % self.base
        (first, *_) = (*np.flatnonzero(at == 0), self.count)
        return slice(int(first), self.count, period)

    def places(self) -> tuple[Array, Array]:
        """Return, for each element of each window, which element of the axis it is, and whether it is one.

        Raises:
            ExecutionError: E6004, there are 2^31 of them or more.
        """
        if self.count * self.window > _MOST:
            raise allocation_failed(f"the places of {self.count * self.window:,} elements of windows", ())
        starts = np.arange(self.count)[:, None] * self.stride
        at = starts + np.arange(self.window)[None, :] * self.spacing - self.low
        inside = (at >= 0) & (at % self.base == 0) & (at // self.base < self.extent)
        return np.where(inside, at // self.base, 0), inside


def check_windows(context: TypeContext, rank: int, names: Mapping[str, int]) -> None:
    """Report lists that have not ``rank`` numbers (E1103), and numbers out of range.

    They are to be the least that ``names`` gives or more (E3006, or E1103 where that is 0), and below 2^31
    (E1103).
    """
    for name, least in names.items():
        numbers: tuple[int, ...] = context.attributes[name]
        if len(numbers) != rank:
            context.report(
                "E1103",
                f"attribute '{name}' of {context.opcode} needs {rank} numbers, found {len(numbers)}",
                attribute=name,
                notes=(f"the operand has type {context.operands[0]}",),
                help="give one for each dimension that windows slide along",
            )
        for dimension, number in enumerate(numbers):
            if number < least:
                context.report(
                    "E3006" if least else "E1103",
                    f"'{name}' of {context.opcode} is {number} in dimension {dimension}",
                    attribute=name,
                    help=f"it must be {least} or more",
                    dimension=dimension,
                    extent=number,
                )
            elif number > _MOST:
                context.report(
                    "E1103",
                    f"'{name}' of {context.opcode} is {number:,} in dimension {dimension}",
                    attribute=name,
                    help=f"it must be {_MOST:,} or less",
                )
    context.stop_if_reported()


def check_fit(context: TypeContext, axes: Sequence[Sliding], first: int, attribute: str) -> None:
    """Report E4123 for each axis, the first of number ``first``, that is shorter than its windows."""
    for dimension, axis in enumerate(axes, start=first):
        if axis.span > axis.padded:
            context.report(
                "E4123",
                f"{context.opcode} has windows that cover {axis.span} elements in dimension {dimension}, "
                f"which has {axis.padded} with its padding",
                attribute=attribute,
                help="choose smaller windows, or pad the dimension",
                dimension=dimension,
                extents=(axis.span, axis.padded),
            )
    context.stop_if_reported()


def spatial_padding(
    padding: Padding, extents: Sequence[int], kernel: Sequence[int], strides: Sequence[int]
) -> Pairs:
    """Return the padding below and above each spatial axis.

    Args:
        padding: A well-formed padding attribute.
        extents: Height and width of the input.
        kernel: Height and width of the filter.
        strides: Strides along height and width.
    """
    match padding.mode:
        case PaddingMode.VALID:
            pairs = [(0, 0), (0, 0)]
        case PaddingMode.SAME:
            pairs = [_same_padding(*axis) for axis in zip(extents, kernel, strides, strict=True)]
        case PaddingMode.CUSTOM:
            pairs = [(low, high) for low, high in padding.pairs]
    height, width = pairs
    return height, width


def _same_padding(extent: int, kernel: int, stride: int) -> tuple[int, int]:
    windows = -(-extent // stride)
    total = max((windows - 1) * stride + kernel - extent, 0)
    return total // 2, total - total // 2


def of_pairs(fields: Mapping[str, Any], _operands: Sequence[TensorType]) -> dict[str, Any]:
    """Return the fields of a contract with the pairs of `padding` as two lists."""
    rest = {name: value for name, value in fields.items() if name != "padding"}
    low, high = (tuple(pair[side] for pair in fields["padding"]) for side in (0, 1))
    return {**rest, "padding_low": low, "padding_high": high}


def to_pairs(attributes: Mapping[str, Any], _operands: Sequence[TensorType]) -> dict[str, Any]:
    """Return the attributes with the two lists as pairs; the other way round."""
    rest = {name: value for name, value in attributes.items() if not name.startswith("padding")}
    pairs = zip(attributes["padding_low"], attributes["padding_high"], strict=True)
    return {**rest, "padding": tuple(pairs)}


class Windowed:
    """Appends tensors of all windows, of shape ``[count, window]`` for each axis in turn.

    Args:
        context: The operation whose derivative is wanted.
        axes: The windows along each axis of its operand.
    """

    def __init__(self, context: VjpContext, axes: Sequence[Sliding]) -> None:
        self._c, self._axes = context, axes

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of such a tensor."""
        return tuple(extent for axis in self._axes for extent in (axis.count, axis.window))

    def of(self, value: Value) -> Value:
        """Return the elements of all windows; what is padded is any element."""
        for axis in self._axes:
            rest = value.shape[1:]
            if axis.is_trivial:
                value = self._c.emit("Reshape", value, new_shape=(axis.extent, 1, *rest))
            else:
                value = self._c.emit("Take", value, self._indices(axis))
            value = self._rotated(value, 2)
        return value

    def added(self, value: Value) -> Value:
        """Return for each element of the operand the sum of what ``value`` has of it: transposed to `of`."""
        for axis in reversed(self._axes):
            value = self._rotated(value, len(value.shape) - 2)
            rest = value.shape[2:]
            if axis.is_trivial:
                value = self._c.emit("Reshape", value, new_shape=(axis.extent, *rest))
                continue
            zeros = self._c.zeros(value.type.with_shape((axis.extent, *rest)))
            form = row_form(len(rest) + 1, 2, from_end=False)
            value = self._c.emit("ScatterAdd", zeros, self._indices(axis), value, **form)
        return value

    def inside(self, value: Value) -> Value:
        """Return ``value``, of all windows, with zeros where it is not of elements."""
        is_inside = self.mask()
        if is_inside is None:
            return value
        return self._c.emit("Select", is_inside, value, self._c.zeros(value.type))

    def mask(self) -> Value | None:
        """Return whether what is in a window is an element of the operand; None where all is."""
        found: Value | None = None
        for place, axis in enumerate(self._axes):
            _, inside = axis.places()
            if inside.all():
                continue
            shape = [1] * (2 * len(self._axes))
            shape[2 * place : 2 * place + 2] = inside.shape
            mask = self._c.builder.constant(inside.reshape(shape), DType.I1)
            mask = self._c.emit("BroadcastTo", mask, result_shape=self.shape)
            found = mask if found is None else self._c.emit("And", found, mask)
        return found

    def spread(self, value: Value) -> Value:
        """Return what there is of each window for all its elements."""
        ones = tuple(extent for axis in self._axes for extent in (axis.count, 1))
        column = self._c.emit("Reshape", value, new_shape=ones)
        return self._c.emit("BroadcastTo", column, result_shape=self.shape)

    def _indices(self, axis: Sliding) -> Value:
        return self._c.builder.constant(axis.places()[0], DType.SI64)

    def _rotated(self, value: Value, count: int) -> Value:
        """Return ``value`` with its first ``count`` dimensions behind the others."""
        rank = len(value.shape)
        order: Any = (*range(count, rank), *range(count))
        return value if count in (0, rank) else self._c.emit("Transpose", value, permutation=order)
