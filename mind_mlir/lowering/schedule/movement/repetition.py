"""Repeats each element of a tensor a few times side by side, in rows that are written whole.

What is repeated are columns of a narrow matrix, all of them alike: vectors of elements are read once, and
written as the columns of narrow transpositions are (`narrow`). Else a row would be a store of a few elements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.emission import constants
from mind_mlir.lowering.schedule.fusion.groups.collapse import Loops, collapsed, merged_loops
from mind_mlir.lowering.schedule.fusion.groups.group import is_identity
from mind_mlir.lowering.schedule.kind import Kind, Refusal, Site
from mind_mlir.lowering.schedule.movement.narrow import NarrowEmitter, NarrowSchedule, narrow_schedule
from mind_mlir.lowering.schedule.movement.transposition import Transposition
from mind_mlir.mlir.bindings import ir
from mind_mlir.mlir.memory import bytes_of
from mind_mlir.mlir.values import terminator_of

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.linalg_view.view import View
    from mind_mlir.target import Target


def match_repetition(view: View) -> Transposition | None:
    """Return ``view`` as a repetition, of a source contiguous along the last loop but one, if it is one."""
    extents, last = view.extents, len(view.extents) - 1
    if len(view.operands) != 2 or view.reductions or last < 1 or not view.used(0):
        return None
    if list(terminator_of(view.body).operands) != [view.body.arguments[0]]:
        return None
    source, result = (operand.type for operand in view.operands)
    if not isinstance(source, ir.RankedTensorType) or isinstance(result.element_type, ir.ComplexType):
        return None
    if not is_identity(view.accesses[1], last + 1) or not 1 < extents[last] <= constants.REPEATED_COLUMNS:
        return None
    places = zip(view.accesses[0], view.shapes[0], strict=True)
    dims = [index.dim for index, extent in places if extent != 1]
    is_row = bool(dims) and None not in dims and dims[-1] == last - 1 and last not in dims
    return Transposition(view, last - 1, last) if is_row else None


def _match(site: Site) -> Transposition | None:
    """Return what repeats elements, unless what reads the result repeats them as it computes."""
    result = site.op.results[0] if len(site.op.results) == 1 else None
    if site.view is None or result is None or bytes_of(result) < constants.PAGE:
        return None
    if any(use.owner.operation.name.startswith("linalg.") for use in result.uses):
        return None
    return match_repetition(site.view)


def _choose(nest: Transposition, target: Target) -> NarrowSchedule | Refusal:
    chosen = narrow_schedule(nest, target, constants.REPEATED_COLUMNS)
    return Refusal("there are too few elements for a vector") if chosen is None else chosen


def _prepare(_: Transposition, site: Site) -> Transposition:
    """Return the repetition with as few loops as it can have; reshapes of its operand are emitted."""
    view = site.loops
    loops = merged_loops([view]) or Loops(view.extents, tuple((dim,) for dim in range(len(view.extents))))
    found = match_repetition(collapsed([view], loops)[0])
    assert found is not None, "merged loops repeat what they did"
    return found


REPETITION: Kind[Transposition, NarrowSchedule] = Kind(
    "repetition",
    _match,
    _choose,
    lambda nest, schedule, site: [NarrowEmitter(site.scope.emitter, nest, schedule).emit()],
    _prepare,
)
