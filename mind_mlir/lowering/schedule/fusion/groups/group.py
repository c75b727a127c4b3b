"""Groups of operations that run over the same loops, and which operations may be in one.

A group is emitted as one loop nest whose body computes all members for one vector of elements: what passes
from member to member never leaves the registers. Members are found in one pass over a block, so the cost of
grouping is linear in the number of operations; nothing is computed twice.
"""

from __future__ import annotations

import dataclasses
from bisect import bisect
from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.constants import GROUP_LIMIT
from mind_mlir.lowering.schedule.folds.matching import folds_of, folds_pairs
from mind_mlir.mlir.bindings import Operation, Type, Value, ir
from mind_mlir.mlir.values import integer_of
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.fusion.groups.row_program import RowProgram
    from mind_mlir.lowering.schedule.linalg_view.view import Access, View


@dataclass(eq=False)
class Group:
    """Operations over the same loops, in the order of their block.

    Attributes:
        extents: extent of each loop.
        vector: the loop along which vectors run.
        members: the operations.
        reductions: the reduction dimensions of those members that reduce; empty when none does.
        weight: operations in the bodies of all members.
        produced: which member computes each result.
        places: the place of each member (see `Decisions`).
        rows: the program over rows that members read results of, if any.
        over: what results are written over.
    """

    extents: tuple[int, ...]
    vector: int
    members: list[View] = dataclasses.field(default_factory=list)
    reductions: tuple[int, ...] = ()
    weight: int = 0
    produced: dict[Value, View] = dataclasses.field(default_factory=dict)
    places: list[int] = dataclasses.field(default_factory=list)
    rows: RowProgram | None = None
    over: frozenset[Value] = frozenset()

    @property
    def place(self) -> int:
        """The place of the last member."""
        return self.places[-1]

    def add(self, view: View, place: int) -> None:
        """Add ``view``, which `accepts` accepted, where it stands in the block: at ``place``."""
        number = bisect(self.places, place)
        self.places.insert(number, place)
        self.members.insert(number, view)
        self.reductions = self.reductions or view.reductions
        self.weight += len(view.body.operations) - 1
        for result in view.op.results:
            self.produced[result] = view

    @property
    def sums_rows(self) -> bool:
        """Return whether it reduces loops around the vector loop, the last one, but not that one."""
        last = self.vector == len(self.extents) - 1
        return last and bool(self.reductions) and self.reductions[-1] < self.vector

    def refresh(self) -> None:
        """Let the members have the operands that their operations have by now."""
        self.members = [view.current() for view in self.members]
        self.produced = {result: view for view in self.members for result in view.op.results}

    def accepts(self, view: View, dims: tuple[int, ...]) -> bool:
        """Return whether ``view`` can run in the same loops, reading members' results in registers."""
        if view.extents != self.extents or self.vector not in dims or self.weight >= GROUP_LIMIT:
            return False
        if self.reductions and view.reductions and view.reductions != self.reductions:
            return False
        return all(self._readable(view, number) for number in range(len(view.operands)))

    def takes(self, other: Group) -> bool:
        """Return whether the members of ``other`` can run in the same loops; none depends on another."""
        if (other.extents, other.vector) != (self.extents, self.vector):
            return False
        if self.reductions and other.reductions and other.reductions != self.reductions:
            return False
        return self.weight + other.weight < GROUP_LIMIT

    def _readable(self, view: View, number: int) -> bool:
        member = self.produced.get(view.operands[number])
        if member is None:
            return True
        if member.reductions or number >= len(view.inputs):
            return False  # complete only after the loops; or to be updated in place
        return is_identity(view.accesses[number], len(view.extents))


def is_identity(access: Access, rank: int) -> bool:
    """Return whether ``access`` is ``(d0, d1, ...)`` over all ``rank`` dimensions."""
    return len(access) == rank and all(index.dim == dim for dim, index in enumerate(access))


def vector_dims(view: View) -> tuple[int, ...]:
    """Return the loops along which ``view`` can be computed in vectors, best first; empty if there are none.

    Along such a loop the operands are contiguous or do not change. The results are indexed in the order of
    the parallel loops, and the body consists of arithmetic on numbers. The only "loop" of an operation on
    single elements, which has none, is -1.
    """
    if 0 in view.extents or not all(_number(argument.type) for argument in view.body.arguments):
        return ()
    if not all(_vector_operation(op.operation) for op in view.body.operations):
        return ()
    parallel = [dim for dim in range(len(view.extents)) if dim not in view.reductions]
    if any([index.dim for index in access] != parallel for access in view.accesses[len(view.inputs) :]):
        return ()
    if view.reductions and folds_of(view) is None:
        return ()
    if not view.extents:
        return (-1,)
    last = len(view.extents) - 1
    candidates = (last, parallel[-1]) if parallel and parallel[-1] != last else (last,)
    return tuple(dim for dim in candidates if runs_along(view, dim))


def runs_along(view: View, dim: int) -> bool:
    """Return whether all that ``view`` reads is contiguous along ``dim`` or does not depend on it.

    But for elements at positions that its body computes: these are gathered.
    """
    count = len(view.inputs)
    numbers = [n for n in range(len(view.operands)) if n >= count or view.used(n)]
    slides = dim not in view.reductions
    return all(_vector_access(view.accesses[n], dim, slides) for n in numbers)


def _varying(view: View, dim: int) -> tuple[set[Value], set[Value]]:
    """Return the values of the body of ``view`` that vary along ``dim``, and those that are its number."""
    arguments = zip(view.body.arguments, view.accesses, strict=True)
    varying = {argument for argument, access in arguments if any(index.uses(dim) for index in access)}
    positions: set[Value] = set()
    for operation in view.body.operations:
        op = operation.operation
        if op.name == "linalg.index":
            if integer_of(op, "dim") == dim:
                positions.add(op.results[0])
        elif any(operand in varying or operand in positions for operand in op.operands):
            varying.update(op.results)
    return varying, positions


def extractions(view: View) -> list[Operation]:
    """Return the ``tensor.extract`` operations of the body of ``view``."""
    operations = (op.operation for op in view.body.operations)
    return [op for op in operations if op.name == "tensor.extract"]


def _vector_access(access: Access, dim: int, slides: bool) -> bool:
    """Return whether ``access`` is contiguous along ``dim`` or does not use it.

    Where it ``slides``, other loops may move along the last dimension, too, as those of a window do.
    """
    users = [index for index in access if index.uses(dim)]
    if not users:
        return True
    return len(users) == 1 and (access[-1].dim == dim or (slides and (dim, 1) in access[-1].terms))


def _vector_operation(op: Operation) -> bool:
    if op.name in ("linalg.yield", "linalg.index"):
        return True
    if op.name == "tensor.extract":
        return _number(op.results[0].type)
    if not op.name.startswith(("arith.", "math.")) or len(op.regions):
        return False
    types = [value.type for value in (*op.results, *op.operands)]
    return all(_number(type_) or isinstance(type_, ir.IndexType) for type_ in types)


def _number(type_: Type) -> bool:
    return isinstance(type_, ir.IntegerType | ir.FloatType)


def widest(members: list[View], along: int = -1) -> int:
    """Return the width in bits of the widest element that the bodies of ``members`` handle.

    With ``along``, of those that vectors along that loop hold: what is the same in all lanes is a number.
    """
    widths = [8]
    for view in members:
        values = [*view.body.arguments, *(result for op in view.body.operations for result in op.results)]
        if along >= 0:
            values = _in_vectors(view, along)
        place = 8 if folds_pairs(view) else 64  # the place of a term, which is wider than no index it becomes
        types = [value.type for value in values]
        widths += [place if isinstance(type_, ir.IndexType) else type_.width for type_ in types]
    return max(widths)


def _in_vectors(view: View, along: int) -> list[Value]:
    """Return the values of the body that vectors hold: where they are, only if that is computed with."""
    varying, positions = _varying(view, along)
    computed = [op.operation for op in view.body.operations if op.operation.name != "tensor.extract"]
    used = {operand for op in computed for operand in op.operands}
    return [*varying, *(positions & used), *list(view.body.arguments)[len(view.inputs) :]]
