"""Computes with the parts of what is joined, such as coordinates of a state, where nothing reads it whole.

Before: a function in structured form. After: the same, where elementwise operations on concatenations compute
their parts, which are then joined: so parts pass from operation to operation in registers, and slices that
take them apart again read them.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

from mind_mlir.ir.regions import blocks_within, uses_in
from mind_mlir.ir.types import TensorType
from mind_mlir.passes.simplify.sinking import ELEMENTWISE
from mind_mlir.passes.simplify.sweep import rewritten

if TYPE_CHECKING:
    from mind_mlir.ir.module import Block, CoreOperation, Function, ValueId
    from mind_mlir.passes.simplify.rewrite import Rewrite

#: The most parts of a concatenation that is taken apart, the fewest elements of a part that lie together, and
#: the most operations that elementwise ones may become.
_MOST, _FEWEST, _OPERATIONS = 8, 64, 400


class _Parts(NamedTuple):
    """How a tensor is divided: along which axis, and where each part ends."""

    axis: int
    ends: tuple[int, ...]

    @property
    def bounds(self) -> list[tuple[int, int]]:
        """Where each part begins and ends."""
        return list(itertools.pairwise((0, *self.ends)))


def compute_parts(function: Function) -> Function:
    """Return ``function``, in structured form, with parts; itself where nothing is computed in parts.

    What is computed in parts may be a part of something else.
    """
    while (found := _with_parts(function)) is not function:
        function = found
    return function


def _with_parts(function: Function) -> Function:
    found: dict[ValueId, _Parts] = {}
    for block in function.blocks:
        for each in (block, *(inner for op in block.operations for inner in blocks_within(op))):
            found |= _Division(each).computed
    if not found:
        return function

    def in_parts(at: Rewrite) -> ValueId | None:
        parts = found.get(at.operation.value_id)
        return None if parts is None else _joined(at, parts)

    return rewritten(function, dict.fromkeys(ELEMENTWISE, (in_parts,)))


class _Division:
    """What of a block is computed in parts.

    Attributes:
        computed: The elementwise operations that are, and how they are divided.
    """

    def __init__(self, block: Block) -> None:
        self._shapes = {each.value_id: each.type for each in block.parameters}
        self._shapes |= {each.value_id: each.result_type for each in block.operations}
        self._makers = {each.value_id: each for each in block.operations if not each.others}
        self._parts: dict[ValueId, _Parts] = {}
        for value, maker in self._makers.items():
            parts = self._divided(maker)
            if parts is not None:
                self._parts[value] = parts
        self.computed: dict[ValueId, _Parts] = {}
        if self._parts:
            self._prune(block)
            elementwise = {
                each: n for each, n in self._parts.items() if self._makers[each].opcode != "Concat"
            }
            if sum(len(parts.ends) for parts in elementwise.values()) <= _OPERATIONS:
                self.computed = elementwise

    def _divided(self, maker: CoreOperation) -> _Parts | None:
        """Return how what ``maker`` gives may be divided."""
        shape = self._shape(maker.value_id)
        if maker.opcode == "Concat":
            return self._concatenation(maker, shape)
        if maker.opcode not in ELEMENTWISE:
            return None
        found = {
            self._parts[each] for each in maker.operands if each in self._parts and self._shape(each) == shape
        }
        return found.pop() if len(found) == 1 else None

    def _concatenation(self, maker: CoreOperation, shape: tuple[int, ...]) -> _Parts | None:
        """Return the parts of a concatenation, one of which at least is computed."""
        axis = _axis(maker)
        if not 1 < len(maker.operands) <= _MOST or not set(maker.operands) <= self._shapes.keys():
            return None
        extents = [self._shape(each)[axis] for each in maker.operands]
        columns = axis == len(shape) - 1 and max(extents) == 1
        if (math.prod(shape[:-1]) if columns else min(extents) * math.prod(shape[axis + 1 :])) < _FEWEST:
            return None
        if axis == len(shape) - 1 and not columns:
            return None
        is_computed = any(self._is_computed(each) for each in maker.operands)
        return _Parts(axis, tuple(itertools.accumulate(extents))) if is_computed else None

    def _is_computed(self, value: ValueId) -> bool:
        maker = self._makers.get(value)
        while maker is not None and maker.opcode in ("Reshape", "ExpandDims", "Squeeze"):
            maker = self._makers.get(maker.operands[0])
        return maker is not None and maker.opcode in ELEMENTWISE

    def _prune(self, block: Block) -> None:
        """Leave out what is needed whole, and what then is no longer made of parts."""
        users: dict[ValueId, list[CoreOperation | None]] = {}
        for value, user in uses_in(block):
            users.setdefault(value, []).append(user)
        pending = list(self._parts)
        while pending:
            value = pending.pop()
            if value not in self._parts or self._fits(value, users.get(value, [])):
                continue
            del self._parts[value]
            pending += [user.value_id for user in users.get(value, []) if user is not None]
            pending += self._makers[value].operands

    def _fits(self, value: ValueId, users: list[CoreOperation | None]) -> bool:
        parts, maker = self._parts[value], self._makers[value]
        if maker.opcode != "Concat":
            return any(self._parts.get(each) == parts for each in maker.operands)
        return all(user is not None and self._takes_parts(user, parts) for user in users)

    def _takes_parts(self, user: CoreOperation, parts: _Parts) -> bool:
        """Return whether an operation that reads a concatenation reads its parts."""
        if user.opcode != "Slice":
            return self._parts.get(user.value_id) == parts and user.opcode in ELEMENTWISE
        starts: Any = user.attributes["starts"]
        ends: Any = user.attributes["ends"]
        first, end = starts[parts.axis], ends[parts.axis]
        return any(begin <= first <= end <= last for begin, last in parts.bounds)

    def _shape(self, value: ValueId) -> tuple[int, ...]:
        type_ = self._shapes[value]
        return type_.extents if isinstance(type_, TensorType) else ()


def _joined(at: Rewrite, parts: _Parts) -> ValueId:
    """Return an elementwise operation as its parts, which are joined."""
    axis, rank = parts.axis, at.type.rank
    found = []
    for number, (first, end) in enumerate(parts.bounds):
        shape = (*at.type.extents[:axis], end - first, *at.type.extents[axis + 1 :])
        inside = shape[:axis] + shape[axis + 1 :] if end - first == 1 else shape
        operands = [_part(at, value, parts, number, rank) for value in at.operands]
        part = at.again(operands, at.type.with_shape(inside))
        found.append(at.reshaped(part, shape))
    return at.emit("Concat", found, at.type, axis=axis)


def _part(at: Rewrite, value: ValueId, parts: _Parts, number: int, rank: int) -> ValueId:
    """Return a part of an operand of an operation of ``rank``, without the axis if it has one place there."""
    type_, (first, end) = at.type_of(value), parts.bounds[number]
    axis = parts.axis - (rank - type_.rank)
    if axis < 0:
        return value
    shape = list(type_.extents)
    if shape[axis] != 1:
        maker = at.maker(value, "Concat")
        if maker is not None and _bounds(at, maker, axis) == parts.bounds:
            value = maker.operands[number]
        else:
            starts, ends = [0] * type_.rank, list(shape)
            starts[axis], ends[axis], shape[axis] = first, end, end - first
            attributes = {"starts": tuple(starts), "ends": tuple(ends), "steps": (1,) * type_.rank}
            value = at.emit("Slice", (value,), type_.with_shape(tuple(shape)), **attributes)
    if end - first == 1:
        shape = list(at.shape_of(value))
        del shape[axis]
        value = at.reshaped(value, tuple(shape))
    return value


def _bounds(at: Rewrite, maker: CoreOperation, axis: int) -> list[tuple[int, int]]:
    """Return where the parts of a concatenation along ``axis`` begin and end; none along another one."""
    if _axis(maker) != axis:
        return []
    ends = itertools.accumulate(at.shape_of(each)[axis] for each in maker.operands)
    return list(itertools.pairwise((0, *ends)))


def _axis(concatenation: CoreOperation) -> int:
    axis: Any = concatenation.attributes["axis"]
    return int(axis) % concatenation.tensor_type.rank
