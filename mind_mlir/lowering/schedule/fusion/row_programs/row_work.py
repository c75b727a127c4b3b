"""The work of a row program in numbers: what its schedule is chosen from, and whether long rows pay.

Groups keep what one of them computes along the row, and another one reads, in memory; each reads its operands
anew. Stages of long rows compute such values again instead, and some have two passes that read the same: a
program is only computed in stages where that takes less time than moving what groups would keep.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.emission import constants
from mind_mlir.lowering.schedule.fusion.groups.group import Group, widest
from mind_mlir.lowering.schedule.fusion.nests.schedule import chunked
from mind_mlir.lowering.schedule.fusion.nests.work import Work, is_short, operations_of, read_by
from mind_mlir.lowering.schedule.linalg_view.values import filler
from mind_mlir.mlir.bindings import Value, ir
from mind_mlir.mlir.memory import bytes_of
from mind_mlir.target.rates import REFERENCE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.schedule.fusion.row_programs.passes import Passes
    from mind_mlir.lowering.schedule.fusion.row_programs.relative import Stage
    from mind_mlir.target import Target


class RowWork:
    """A row program in numbers.

    Args:
        group: All its operations; their rows lie along the last loop.
        passes: What is computed when.
        results: The results that are used outside of it.
        target: The processor.

    Attributes:
        extent: The elements of a row.
        lanes: The elements of a vector register.
        touched_bytes: The bytes that are read, written or kept of one row; one at least.
        each: The work of each pass.
        whole: The work of all passes.
        row_nanoseconds: How long one thread takes for a row, about.
        rows: How the rows are cut in chunks; None if they are too few for threads.
    """

    def __init__(self, group: Group, passes: Passes, results: Sequence[Value], target: Target) -> None:
        self.group = group
        self.passes = passes
        self.results = results
        self.target = target
        self.extent = group.extents[group.vector]
        bits, whole = widest(group.members), (group.vector,)
        self.lanes = target.lanes(bits)
        touched = [*read_by(group.members, group.produced), *results]
        self.touched_bytes = max(1, self.row_bytes([*touched, *passes.kept]))
        self.each = [
            Work(
                group.extents,
                group.vector,
                whole if part.reduced else (),
                bits,
                sum(len(view.body.operations) - 1 for view in part.members),
                sum(operations_of(view) for view in part.members),
                sum(map(bytes_of, touched)),
                sum(bytes_of(value) for value in part.stored if value in results),
                short=is_short(part.members),
            )
            for part in passes.passes
        ]
        self.whole = dataclasses.replace(
            self.each[0],
            reductions=whole,
            weight=sum(work.weight for work in self.each),
            operations=sum(work.operations for work in self.each),
            stored=sum(work.stored for work in self.each),
        )
        nanoseconds = self.whole.nanoseconds(target)
        self.row_nanoseconds = nanoseconds * self.extent / math.prod(group.extents)
        self.rows = chunked(self.whole, target)

    @property
    def has_costly_scalars(self) -> bool:
        """Whether what there is one of for each row, computed one by one, takes longer than the row."""
        scalars = constants.SINGLE_COST * sum(map(operations_of, self.passes.row_scalars))
        return scalars > self.whole.operations * -(-self.extent // self.lanes)

    @property
    def has_alike_scalars(self) -> bool:
        """Whether the numbers of several rows may be computed as vectors in memory of a block alone.

        Lanes behind the last row of a block hold anything: integers could not be divided by them.
        """
        row_scalars = self.passes.row_scalars
        if any(result in self.results for view in row_scalars for result in view.op.results):
            return False
        outside = [
            access
            for view in row_scalars
            for value, access in zip(view.inputs, view.accesses, strict=False)
            if value not in self.group.produced and filler(value) is None
        ]
        if any(index.terms for access in outside for index in access):
            return False
        types = [argument.type for view in row_scalars for argument in view.body.arguments]
        return all(isinstance(type_, ir.FloatType) for type_ in types)

    def row_bytes(self, values: Sequence[Value]) -> int:
        """Return the bytes of one row of those of ``values`` that have rows."""
        elements = math.prod(self.group.extents)
        tensors = [value for value in values if isinstance(value.type, ir.RankedTensorType)]
        along = [value for value in tensors if math.prod(value.type.shape) == elements]
        return sum(map(bytes_of, along)) * self.extent // elements


def pays(work: RowWork, stages: Sequence[Stage]) -> bool:
    """Return whether long rows take less time in ``stages`` than as groups, for all that is known."""
    group, target = work.group, work.target
    passes = work.passes.passes
    again = sum(part.again for part in passes)
    kept = dict.fromkeys(value for part in passes for value in part.crossing)
    joined = [stage for stage in stages if stage.relative]
    again += constants.RELATIVE_COST * len(joined)
    read = [work.row_bytes(read_by(stage.passes[1].members, group.produced)) for stage in joined]
    # A line that is written is read first.
    saved = sum(read) / work.extent + 2 * sum(bytes_of(value) // math.prod(group.extents) for value in kept)
    rate = REFERENCE.byte_ns  # stages sum otherwise than groups: the choice is the same on all machines
    row_bytes = work.whole.bytes * work.extent // math.prod(group.extents)
    if 2 * work.whole.bytes <= target.l3_bytes:
        rate = REFERENCE.l2_byte_ns
    elif work.rows is not None and 2 * row_bytes <= target.l3_bytes:
        # Groups would go through a few rows one after the other. Of 64 rows of 4 MB, a softmax takes as long
        # on one thread, and up to a quarter less on two, where exponentials are repeated; its gradient takes
        # a third more.
        rate = REFERENCE.l3_byte_ns
    return again * REFERENCE.vector_ns / work.lanes < saved * rate
