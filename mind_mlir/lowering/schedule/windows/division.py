"""Loops divided into several: what reads a reshaped tensor reads the tensor instead."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.contraction.marked import generic_like
from mind_mlir.lowering.schedule.linalg_view.view import Access, Linear, View
from mind_mlir.mlir.bindings import Operation, Value, ir, tensor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclasses.dataclass(frozen=True)
class Division:
    """A tensor whose dimensions each stand for several loops, as those of reshaped windows do.

    Attributes:
        source: What its elements are those of.
        access: How these are found, from the loops.
        shape: The extents of the loops.
        groups: Which of them each dimension of the tensor stands for.
    """

    source: Value
    access: Access
    shape: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]


class DividedLoops:
    """The loops of an operation, some of which are divided into several.

    Args:
        view: The operation.
        divided: The loops of the source that each divided loop becomes.
    """

    def __init__(self, view: View, divided: Mapping[int, tuple[int, ...]]) -> None:
        self._view, self._divided = view, divided
        #: The new loops that each old loop becomes, and that each loop of the source is.
        self._new: dict[int, range] = {}
        self._inner: dict[int, int] = {}
        count = 0
        for dim in range(len(view.extents)):
            group = divided.get(dim, (-1,))
            self._new[dim] = range(count, count + len(group))
            self._inner |= dict(zip(group, self._new[dim], strict=True))
            count += len(group)
        self._count = count

    def divides(self, access: Access) -> bool:
        """Return whether an operand's dimensions can be divided as the loops are."""
        return all(
            index.dim is not None or not any(index.uses(dim) for dim in self._divided) for index in access
        )

    def shape(self, access: Access, inner: Sequence[int]) -> tuple[list[int], list[list[int]]]:
        """Return the new shape of an operand, and which dimensions each one becomes."""
        shape: list[int] = []
        groups = []
        operand = self._view.shapes[self._view.accesses.index(access)]
        for index, extent in zip(access, operand, strict=True):
            group = () if index.dim is None else self._divided.get(index.dim, ())
            extents = [inner[place] for place in group] or [extent]
            groups.append(list(range(len(shape), len(shape) + len(extents))))
            shape += extents
        return shape, groups

    def _access(self, access: Access) -> Access:
        found: list[Linear] = []
        for index in access:
            if index.dim is not None:
                found += (Linear(((new, 1),)) for new in self._new[index.dim])
            else:
                terms = tuple((self._new[dim][0], factor) for dim, factor in index.terms)
                found.append(Linear(tuple(sorted(terms)), index.constant))
        return tuple(found)

    def emit(self, number: int, source: Division) -> Operation:
        """Append the operation over the new loops, with ``source`` as operand ``number``."""
        operands, accesses = [], []
        for place, (value, access) in enumerate(zip(self._view.operands, self._view.accesses, strict=True)):
            if place == number:
                operands.append(source.source)
                accesses.append(
                    tuple(
                        Linear(
                            tuple(sorted((self._inner[dim], factor) for dim, factor in index.terms)),
                            index.constant,
                        )
                        for index in source.access
                    )
                )
                continue
            shape, groups = self.shape(access, source.shape)
            operands.append(_divided(value, shape, groups))
            accesses.append(self._access(access))
        reductions = {new for dim in self._view.reductions for new in self._new[dim]}
        return generic_like(self._view.op, operands, accesses, self._count, reductions)


def _divided(value: Value, shape: list[int], groups: list[list[int]]) -> Value:
    """Return ``value`` in ``shape``, of whose dimensions ``groups`` says which its own become."""
    type_ = value.type
    if len(shape) == type_.rank:
        return value
    new = ir.RankedTensorType.get(shape, type_.element_type)
    return tensor.ExpandShapeOp(new, value, groups, [], shape).result
