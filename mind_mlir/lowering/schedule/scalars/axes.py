"""The axes of a nest, and tensors that are read along them, through transposes and reshapes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.linalg_view.layout import reassociation
from mind_mlir.lowering.schedule.linalg_view.values import RESHAPES, inverse_permutation
from mind_mlir.lowering.schedule.linalg_view.view import Access, Linear
from mind_mlir.lowering.schedule.scalars.graph import OpaqueError
from mind_mlir.mlir.bindings import Operation, Type, Value, ir
from mind_mlir.mlir.values import definition
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_ZERO = Linear(())


class SplitError(Exception):
    """An axis has to be several: somebody sees it so."""

    def __init__(self, axis: int, extents: tuple[int, ...]) -> None:
        super().__init__()
        self.axis = axis
        self.extents = extents


@dataclass(frozen=True)
class Source:
    """A tensor in memory, and how it is indexed."""

    value: Value
    access: Access

    @property
    def element(self) -> Type:
        """The type of its elements."""
        return ir.ShapedType(self.value.type).element_type

    @property
    def is_plain(self) -> bool:
        """Return whether each index is an axis or a number."""
        return all(index.dim is not None or not index.terms for index in self.access)

    def uses(self, axis: int) -> bool:
        """Return whether the element depends on an axis."""
        return any(index.uses(axis) for index in self.access)

    def at(self, env: Mapping[int, Linear]) -> Source:
        """Return the same with the axes that ``env`` says."""
        return Source(self.value, substituted(self.access, env))


@dataclass
class Axes:
    """The axes of a nest.

    Attributes:
        extents: Their extents; those that are added follow.
        batches: How many of them, the first ones, may become several; none is of one.
    """

    extents: list[int]
    batches: int

    def add(self, extent: int) -> int:
        """Return a new axis."""
        self.extents.append(extent)
        return len(self.extents) - 1

    def source(self, value: Value, access: Access) -> Source:
        """Return what in memory ``value`` is read from, through transposes and reshapes.

        Raises:
            SplitError: It is known if an axis is several.
        """
        found = Source(value, access)
        while (op := definition(value)) is not None:
            try:
                moved = self.moved(op.operation, access)
            except OpaqueError:
                break
            if moved is None:
                break
            value, access = moved
            if not found.is_plain or Source(value, access).is_plain:
                found = Source(value, access)
        return found

    def batches_in(self, extents: Sequence[int]) -> list[Linear] | None:
        """Return all batches in order, as an index of each of the dimensions ``extents``.

        A dimension may be several batches, or none if it is of one; None if they do not fit.
        """
        left, found = list(range(self.batches)), []
        for extent in extents:
            terms: list[tuple[int, int]] = []
            rest = extent
            while rest > 1 and left and rest % self.extents[left[0]] == 0:
                rest //= self.extents[left[0]]
                terms.append((left.pop(0), rest))
            if rest != 1:
                return None
            found.append(Linear(tuple(terms)))
        return None if left else found

    def moved(self, op: Operation, access: Access) -> tuple[Value, Access] | None:
        """Return the operand of ``op`` and its element, if ``op`` moves elements only."""
        if op.name == "linalg.transpose":
            return op.operands[0], tuple(access[place] for place in inverse_permutation(op))
        if op.name not in RESHAPES:
            return None
        groups, source = reassociation(op), op.operands[0]
        if op.name == "tensor.expand_shape":
            shape = list(op.results[0].type.shape)
            return source, tuple(_joined([(access[each], shape[each]) for each in group]) for group in groups)
        shape = list(source.type.shape)
        if not groups:  # of one element
            return source, (_ZERO,) * len(shape)
        return source, self.split(access, groups, shape)

    def split(self, access: Access, groups: Sequence[Sequence[int]], shape: Sequence[int]) -> Access:
        """Return an index for each dimension of ``shape``, given one for each group of these."""
        parts = zip(access, groups, strict=True)
        digits = [self.digits(index, tuple(shape[each] for each in group)) for index, group in parts]
        return tuple(digit for each in digits for digit in each)

    def digits(self, index: Linear, extents: tuple[int, ...]) -> list[Linear]:
        """Return ``index``, a number below the product of ``extents``, as one digit for each of these.

        Raises:
            OpaqueError: The digits are no sums of axes.
            SplitError: They are if an axis is several.
        """
        digits: list[Linear] = []
        rest = index
        for place in reversed(range(len(extents))):
            extent = extents[place]
            if math.prod(extents[:place]) == 1:
                digits.append(rest)
                rest = _ZERO
                continue
            if extent == 1:
                digits.append(_ZERO)
                continue
            outer = tuple((axis, factor // extent) for axis, factor in rest.terms if factor % extent == 0)
            inner = tuple((axis, factor) for axis, factor in rest.terms if factor % extent)
            low = Linear(inner, rest.constant % extent)
            if low.constant + sum(factor * (self.extents[axis] - 1) for axis, factor in inner) >= extent:
                if index.dim is not None and index.dim < self.batches:
                    raise SplitError(index.dim, tuple(each for each in extents if each != 1))
                raise OpaqueError
            digits.append(low)
            rest = Linear(outer, rest.constant // extent)
        return digits[::-1]


def axes_of(access: Access) -> frozenset[int]:
    """Return the axes that an element depends on."""
    return frozenset(axis for index in access for axis, _ in index.terms)


def substituted(access: Access, env: Mapping[int, Linear]) -> Access:
    """Return ``access`` with the axes that ``env`` says; others stay as they are."""
    return tuple(
        _sum([(env.get(axis, Linear(((axis, 1),))), factor) for axis, factor in index.terms], index.constant)
        for index in access
    )


def _joined(digits: Sequence[tuple[Linear, int]]) -> Linear:
    """Return the number of ``digits``, each with its extent, the most significant first."""
    factors = [math.prod(extent for _, extent in digits[place + 1 :]) for place in range(len(digits))]
    parts = zip(digits, factors, strict=True)
    return _sum([(index, factor) for (index, extent), factor in parts if extent != 1])


def _sum(parts: Sequence[tuple[Linear, int]], constant: int = 0) -> Linear:
    """Return the sum of indices, each multiplied with a factor, and a number."""
    terms: dict[int, int] = {}
    for index, factor in parts:
        constant += factor * index.constant
        for axis, coefficient in index.terms:
            terms[axis] = terms.get(axis, 0) + factor * coefficient
    return Linear(tuple(sorted(terms.items())), constant)
