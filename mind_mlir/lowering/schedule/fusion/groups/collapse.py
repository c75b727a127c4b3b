"""Merges loops of a group that run over consecutive memory, and drops loops of one iteration.

Elementwise work on whole tensors becomes one loop over all elements whatever the shape; only where an operand
is broadcast or reduced do loops stay apart.
"""

from __future__ import annotations

import itertools
import math
from itertools import islice
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.fusion.groups.group import Group, runs_along
from mind_mlir.lowering.schedule.linalg_view.layout import static_numbers
from mind_mlir.lowering.schedule.linalg_view.view import Access, Linear, View
from mind_mlir.mlir.bindings import Value, ir, tensor
from mind_mlir.mlir.memory import element_bytes
from mind_mlir.mlir.values import definition
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

#: Rows of so many bytes are written where they belong, one by one.
_ROW_BYTES = 16


@dataclass(frozen=True)
class Loops:
    """New loops as runs of old ones.

    Attributes:
        extents: extents of the old loops.
        runs: the old loops of more than one iteration that each new loop stands for, in order.
    """

    extents: tuple[int, ...]
    runs: tuple[tuple[int, ...], ...]

    @property
    def new_extents(self) -> tuple[int, ...]:
        """Extents of the new loops."""
        return tuple(math.prod(self.extents[dim] for dim in run) for run in self.runs)

    def new_dim(self, dim: int) -> int:
        """Return the new loop that the old loop ``dim`` is part of."""
        return next(new for new, run in enumerate(self.runs) if dim in run)

    def reshape(self, access: Access, shape: tuple[int, ...]) -> tuple[Access, tuple[int, ...]]:
        """Return the new access and the new shape of an operand."""
        merged: list[list[int]] = []
        follow = {pair for run in self.runs for pair in itertools.pairwise(run)}
        for place in (place for place, extent in enumerate(shape) if extent != 1):
            if merged and (access[merged[-1][-1]].dim, access[place].dim) in follow:
                merged[-1].append(place)
            else:
                merged.append([place])
        new = tuple(self._index(access[places[0]]) for places in merged)
        return new, tuple(math.prod(shape[place] for place in places) for places in merged)

    def _index(self, index: Linear) -> Linear:
        live = ((dim, factor) for dim, factor in index.terms if self.extents[dim] != 1)
        return Linear(tuple((self.new_dim(dim), factor) for dim, factor in live), index.constant)


def merged_loops(views: Sequence[View]) -> Loops | None:
    """Return how the loops of ``views``, which they share, merge; None when none does."""
    extents, operands = views[0].extents, _operands(views)
    if operands is None:
        return None
    reductions = {dim for view in views for dim in view.reductions}
    gaps = [gap for view in views for gap in _gaps(view)]
    runs: list[tuple[int, ...]] = []
    for dim in (dim for dim, extent in enumerate(extents) if extent != 1):
        same_kind = bool(runs) and (runs[-1][-1] in reductions) == (dim in reductions)
        consecutive = same_kind and all(_consecutive(*operand, runs[-1][-1], dim) for operand in operands)
        if consecutive and not any(runs[-1][-1] <= one and other <= dim for one, other in gaps):
            runs[-1] = (*runs[-1], dim)
        else:
            runs.append((dim,))
    return None if len(runs) == len(extents) else Loops(extents, tuple(runs))


def loops_of(views: Sequence[View], extents: Sequence[int]) -> Loops | None:
    """Return the loops of ``views``, which are all parallel, merged into such of ``extents``.

    Returns:
        None if they do not merge so, or cannot.
    """
    old = views[0].extents
    dims = [dim for dim, extent in enumerate(old) if extent != 1]
    found = runs_of([old[dim] for dim in dims], extents)
    if found is None:
        return None
    runs = tuple(tuple(dims[place] for place in run) for run in found)
    if len(runs) == len(old):
        return Loops(old, runs)  # nothing merges
    pairs = [pair for run in runs for pair in itertools.pairwise(run)]
    operands = _operands(views)
    if operands is None or not all(_consecutive(*each, *pair) for each in operands for pair in pairs):
        return None
    return Loops(old, runs)


def _operands(views: Sequence[View]) -> list[tuple[Access, tuple[int, ...]]] | None:
    """Return how operands are indexed, each with its shape; None if their loops are not to be merged."""
    if any(view.has_index or not all(map(_reshapable, _read(view))) for view in views):
        return None
    pairs = [pair for view in views for pair in zip(view.accesses, view.shapes, strict=True)]
    return list({(id(access), shape): (access, shape) for access, shape in pairs}.values())


def _read(view: View) -> list[Value]:
    """Return the operands of ``view`` that it reads."""
    return [value for number, value in enumerate(view.operands) if view.used(number)]


def _gaps(view: View) -> Iterator[tuple[int, int]]:
    """Yield the neighbouring loops between whose rows results of ``view`` have gaps: parts of a tensor.

    What has short rows is computed in one piece and copied.
    """
    for result, access in zip(view.op.results, view.accesses[len(view.inputs) :], strict=True):
        uses = list(islice(result.uses, 2))
        op = uses[0].owner.operation if len(uses) == 1 else None
        if op is None or op.name != "tensor.insert_slice" or op.operands[0] != result:
            continue
        sizes, steps = static_numbers(op, "static_sizes"), static_numbers(op, "static_strides")
        if sizes is None or steps is None:
            continue
        whole = op.results[0].type.shape
        kept = [axis for axis, size in enumerate(sizes) if size != 1 or len(access) == len(whole)]
        if len(kept) != len(access):
            continue
        for place, (axis, inner) in enumerate(itertools.pairwise(kept)):
            has_gap = math.prod(whole[axis + 1 : inner + 1]) * steps[axis] != sizes[inner] * steps[inner]
            row = math.prod(sizes[inner:]) * element_bytes(result.type.element_type)
            first, second = access[place].dim, access[place + 1].dim
            if has_gap and row >= _ROW_BYTES and first is not None and second is not None:
                yield first, second


def _reshapable(value: Value) -> bool:
    """Return whether ``value`` lies contiguous in memory for all that is known."""
    return isinstance(value, ir.BlockArgument) or value.owner.name not in (
        "tensor.extract_slice",
        "tensor.pad",
    )


def _consecutive(access: Access, shape: tuple[int, ...], first: int, second: int) -> bool:
    """Return whether an operand has neither loop, or both as consecutive dimensions."""
    uses = [index for index in access if index.uses(first) or index.uses(second)]
    if not uses:
        return True
    if [index.dim for index in uses] != [first, second]:
        return False
    live = [index for index, extent in zip(access, shape, strict=True) if extent != 1]
    return live.index(uses[0]) + 1 == live.index(uses[1])


def collapse(group: Group, loops: Loops) -> bool:
    """Rewrite ``group`` to run over ``loops``; emits the reshapes of its operands at the insertion point.

    Returns:
        False, with the group as it was, when no new loop can run in vectors.
    """
    members = collapsed(group.members, loops, group.produced)
    if not loops.runs:
        candidates = [-1]
    elif group.extents[group.vector] != 1:
        candidates = [loops.new_dim(group.vector)]
    else:
        candidates = list(reversed(range(len(loops.runs))))
    vector = next((dim for dim in candidates if all(runs_along(view, dim) for view in members)), None)
    if vector is None:
        return False
    group.members = members
    group.produced = {result: view for view in members for result in view.op.results}
    group.extents = loops.new_extents
    group.reductions = _new_dims(loops, group.reductions)
    group.vector = vector
    return True


def collapsed(views: Sequence[View], loops: Loops, produced: Container[Value] = ()) -> list[View]:
    """Return ``views`` over ``loops``; emits the reshapes of operands but those in ``produced``."""
    forms: dict[tuple[int, tuple[int, ...]], tuple[Access, tuple[int, ...]]] = {}
    values: dict[tuple[Value, tuple[int, ...]], Value] = {}

    def form(access: Access, shape: tuple[int, ...]) -> tuple[Access, tuple[int, ...]]:
        key = (id(access), shape)
        if key not in forms:
            forms[key] = loops.reshape(access, shape)
        return forms[key]

    def operand(view: View, number: int, shape: tuple[int, ...]) -> Value:
        value = view.operands[number]
        untouched = shape == view.shapes[number] or value in produced
        if untouched or (number >= len(view.inputs) and not view.used(number)):
            return value
        if (value, shape) not in values:
            values[value, shape] = collapse_value(value, list(shape))
        return values[value, shape]

    members: list[View] = []
    for view in views:
        accesses, shapes = zip(*map(form, view.accesses, view.shapes), strict=True)
        operands = tuple(operand(view, number, shape) for number, shape in enumerate(shapes))
        reductions = _new_dims(loops, view.reductions)
        members.append(View(view.op, operands, accesses, shapes, loops.new_extents, reductions, view.live))
    return members


def _new_dims(loops: Loops, dims: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(new for new, run in enumerate(loops.runs) if run[0] in dims)


def collapse_value(value: Value, shape: list[int]) -> Value:
    """Return ``value`` in ``shape``, which merges its dimensions; an expansion is undone, not added to."""
    if list(value.type.shape) == shape:
        return value
    type_ = ir.RankedTensorType.get(shape, ir.RankedTensorType(value.type).element_type)
    op = definition(value)
    if op is not None and op.name == "tensor.expand_shape" and op.operands[0].type == type_:
        return op.operands[0]
    return tensor.CollapseShapeOp(type_, value, runs_of(value.type.shape, shape)).result


def expand_value(value: Value, shape: list[int]) -> Value:
    """Return ``value`` in ``shape``, whose dimensions its own merge."""
    if list(value.type.shape) == shape:
        return value
    type_ = ir.RankedTensorType(value.type)
    new = ir.RankedTensorType.get(shape, type_.element_type)
    return tensor.ExpandShapeOp(new, value, runs_of(shape, type_.shape), [], shape).result


def runs_of(fine: Sequence[int], coarse: Sequence[int]) -> list[list[int]] | None:
    """Return the consecutive dimensions of ``fine`` that make up each of ``coarse``; None if they do not.

    Example:
        >>> runs_of([8, 3, 3, 16, 1], [8, 9, 16])
        [[0], [1, 2], [3, 4]]
        >>> runs_of([8, 6], [16, 3]) is None
        True
    """
    runs: list[list[int]] = []
    place = 0
    for extent in coarse:
        first, count = place, 1
        while place < len(fine) and (count != extent or place == first):
            count *= fine[place]
            place += 1
        if count != extent or place == first:
            return None
        runs.append(list(range(first, place)))
    if runs:
        runs[-1] += range(place, len(fine))
    return runs if math.prod(fine) == math.prod(coarse) else None
