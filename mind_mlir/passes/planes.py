"""Computes what has a short last axis, as coordinates of points or colours, one plane of it after the other.

Before: a function in structured form. After: the same, where reductions along a last axis of a few elements
add up its planes, those across one reduce each of its planes, and elementwise operations that nothing else
reads compute planes. A vector would hold as few elements as the axis has; along a plane it is full.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.regions import blocks_within, uses_in
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.passes.simplify.sinking import ELEMENTWISE
from mind_mlir.passes.simplify.sweep import rewritten

if TYPE_CHECKING:
    from mind_mlir.ir.module import Block, CoreOperation, Function, ValueId
    from mind_mlir.passes.simplify.rewrite import Rewrite

#: The longest last axis that is taken apart, and the fewest elements that this is worth while for.
_LONGEST, _FEWEST = 5, 4096
#: Across a last axis, a result may have as many elements as this part of what is reduced.
_LESS = 16
_COMBINED = {"Sum": "Add", "Mean": "Add", "ReduceProd": "Mul", "Max": "Maximum", "Min": "Minimum"}
_REDUCTIONS = ("Sum", "Mean", "ReduceProd", "Reduce")
_ADDED = (DType.F32, DType.F64)


def compute_planes(function: Function) -> Function:
    """Return ``function``, in structured form, with planes; itself where nothing has any.

    A plane may have a short last axis again.
    """
    while (found := _with_planes(function)) is not function:
        function = found
    return function


def _with_planes(function: Function) -> Function:
    found = _Planes()
    for block in function.blocks:
        for each in (block, *(inner for op in block.operations for inner in blocks_within(op))):
            found.look_at(each)
    rules = dict.fromkeys(_REDUCTIONS, (found.reduced,))
    return rewritten(function, {**rules, "Slice": (found.cut,)}) if found.readers else function


class _Planes:
    """What is computed in planes, and what reads these.

    Attributes:
        readers: The operations that read planes of what they reduce or cut, each with its block's number.
    """

    def __init__(self) -> None:
        self.readers: dict[ValueId, int] = {}
        self._computed: set[ValueId] = set()
        self._blocks = 0
        self._made: dict[tuple[int, ValueId, int], ValueId] = {}

    def look_at(self, block: Block) -> None:
        """Find what of ``block`` is computed in planes."""
        types = {each.value_id: each.type for each in block.parameters}
        types |= {each.value_id: each.result_type for each in block.operations if not each.others}
        operations = {each.value_id: each for each in block.operations}
        users: dict[ValueId, list[CoreOperation | None]] = {}
        for value, user in uses_in(block):
            users.setdefault(value, []).append(user)
        planar = {value for value, type_ in types.items() if value in users and _is_planar(type_)}
        pending = list(planar)
        while pending:  # what is read otherwise is no plane, and neither is what it reads
            value = pending.pop()
            if value in planar and not all(_fits(user, planar, types[value]) for user in users[value]):
                planar.remove(value)
                pending += operations[value].operands if value in operations else ()
        self._blocks += 1
        self._computed |= {
            each for each in planar if each in operations and operations[each].opcode in ELEMENTWISE
        }
        for each in block.operations:
            if each.operands and each.operands[0] in planar and each.opcode in (*_REDUCTIONS, "Slice"):
                self.readers[each.value_id] = self._blocks

    def reduced(self, at: Rewrite) -> ValueId | None:
        """Return a reduction of planes."""
        number = self.readers.get(at.operation.value_id)
        if number is None:
            return None
        (value,) = at.operands
        shape, axes = at.shape_of(value), _axes(at.operation, at.shape_of(value))
        planes = [self._plane(at, number, value, place) for place in range(shape[-1])]
        others = tuple([axis for axis in axes if axis != len(shape) - 1])
        if others == axes:
            parts = [self._over(at, plane, axes) for plane in planes]
            rows = [at.reshaped(each, (*at.shape_of(each), 1)) for each in parts]
            joined = at.type.with_shape((*at.shape_of(parts[0]), shape[-1]))
            return at.reshaped(at.emit("Concat", rows, joined, axis=joined.rank - 1), at.type.extents)
        total = planes[0]
        for plane in planes[1:]:
            total = at.emit(_COMBINED[_kind(at.operation)], (total, plane), at.type_of(total))
        is_mean = at.operation.opcode == "Mean"
        if _COMBINED[_kind(at.operation)] == "Add":  # as a sum begins with 0, that of -0.0 is none
            zero = at.constant(0.0, at.type.dtype, at.shape_of(total))
            total = at.emit("Add", (total, zero), at.type_of(total))
        total = self._over(at, total, others, "Sum" if is_mean else None) if others else total
        if is_mean:
            count = float(math.prod(shape[axis] for axis in axes))
            terms = at.constant(count, at.type.dtype, at.shape_of(total))
            total = at.emit("Div", (total, terms), at.type_of(total))
        return at.reshaped(total, at.type.extents)

    def cut(self, at: Rewrite) -> ValueId | None:
        """Return a slice of a plane."""
        number = self.readers.get(at.operation.value_id)
        (value,) = at.operands
        if number is None or value not in self._computed:
            return None
        bounds = _bounds(at.operation)
        plane = self._plane(at, number, value, bounds[0][-1])
        starts, ends, steps = (each[:-1] for each in bounds)
        type_ = at.type.with_shape(at.type.extents[:-1])
        if type_ != at.type_of(plane):
            plane = at.emit("Slice", (plane,), type_, starts=starts, ends=ends, steps=steps)
        return at.reshaped(plane, at.type.extents)

    def _over(self, at: Rewrite, plane: ValueId, axes: tuple[int, ...], opcode: str | None = None) -> ValueId:
        """Return a plane reduced as the whole is, over ``axes``."""
        type_ = at.type_of(plane)
        kept = tuple([extent for axis, extent in enumerate(type_.extents) if axis not in axes])
        attributes = {**at.attributes, "axes": axes, "keepdims": False}
        return at.emit(opcode or at.operation.opcode, (plane,), type_.with_shape(kept), **attributes)

    def _plane(self, at: Rewrite, block: int, value: ValueId, place: int) -> ValueId:
        """Return the elements of ``value`` at a place of its last axis, which may have just one."""
        key = block, value, place
        if key not in self._made:
            self._made[key] = self._emitted(at, block, value, place)
        return self._made[key]

    def _emitted(self, at: Rewrite, block: int, value: ValueId, place: int) -> ValueId:
        type_, number = at.type_of(value), at.number(value)
        if not type_.rank:
            return value
        shape = type_.extents[:-1]
        if number is not None:
            return at.constant(number, type_.dtype, shape)
        if type_.extents[-1] == 1:
            return at.reshaped(value, shape)
        maker = at.maker(value, "BroadcastTo", *(ELEMENTWISE if value in self._computed else ()))
        if maker is None:
            starts, ends = (*(0 for _ in shape), place), (*shape, place + 1)
            steps = (1,) * type_.rank
            row = type_.with_shape((*shape, 1))
            return at.reshaped(at.emit("Slice", (value,), row, starts=starts, ends=ends, steps=steps), shape)
        operands = [self._plane(at, block, each, place) for each in maker.operands]
        if maker.opcode == "BroadcastTo":
            return at.broadcast(operands[0], shape)
        return at.moved(maker, operands, type_.with_shape(shape))


def _is_planar(type_: Any) -> bool:
    if not isinstance(type_, TensorType) or not type_.rank:
        return False
    return 1 < type_.extents[-1] <= _LONGEST and type_.element_count >= _FEWEST


def _fits(user: CoreOperation | None, planar: set[ValueId], type_: Any) -> bool:
    """Return whether an operation that reads a value of ``type_`` can read its planes."""
    if user is None or user.others or user.regions:
        return False
    if user.opcode in _REDUCTIONS:
        return _is_reduced(user, type_)
    if user.opcode == "Slice":
        starts, ends, steps = _bounds(user)
        return bool(ends[-1] - starts[-1] == 1 == steps[-1])
    return user.opcode in (*ELEMENTWISE, "BroadcastTo") and user.value_id in planar


def _is_reduced(user: CoreOperation, type_: Any) -> bool:
    """Return whether a reduction of a value of ``type_`` may be one of planes."""
    dtype, kind = type_.dtype, _kind(user)
    attributes = user.attributes
    same = user.tensor_type.dtype is dtype
    same &= all(attributes.get(name, dtype) is dtype for name in ("accum_dtype", "out_dtype"))
    axes = _axes(user, type_.extents)
    if not (same and axes and kind in _COMBINED) or (kind not in ("Max", "Min") and dtype not in _ADDED):
        return False
    across = type_.rank - 1 not in axes
    return not across or user.tensor_type.element_count * _LESS <= type_.element_count


def _bounds(operation: CoreOperation) -> list[Any]:
    return [operation.attributes[name] for name in ("starts", "ends", "steps")]


def _kind(operation: CoreOperation) -> str:
    return str(operation.attributes["kind"]) if operation.opcode == "Reduce" else operation.opcode


def _axes(operation: CoreOperation, shape: tuple[int, ...]) -> tuple[int, ...]:
    axes: Any = operation.attributes["axes"]
    if not axes and operation.opcode != "Reduce":
        return tuple(range(len(shape)))
    return tuple(sorted(axis % len(shape) for axis in axes))
