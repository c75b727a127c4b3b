"""Tags of operations: names in their locations that stay with what an operation becomes.

Whatever is emitted for an operation has its location, or one that is made of those of several. So a tag that
each operation gets before it is scheduled says of every loop on memory what that computes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.constants import SLOW
from mind_mlir.lowering.profiling.rows import Work
from mind_mlir.lowering.schedule.linalg_view.view import Views
from mind_mlir.mlir.bindings import ir
from mind_mlir.mlir.locations import within
from mind_mlir.mlir.memory import bytes_of, element_bytes
from mind_mlir.mlir.values import is_defined_inside
from mind_mlir.ops.gather_scatter import SCATTER_ATTRIBUTE
from mind_mlir.ops.quantized_lowering import FORMAT_ATTRIBUTE
from mind_mlir.ops.row_loops import ROWS_ATTRIBUTE
from mind_mlir.ops.scan_lowering import SCAN_ATTRIBUTE
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from mind_mlir.lowering.schedule.linalg_view.view import View
    from mind_mlir.mlir.bindings import MLIRLocation, Module, Operation, Value

_MARK = "#"
#: Operations whose result is their first operand in another form.
_FORMS = ("tensor.collapse_shape", "tensor.expand_shape", "tensor.cast")
#: What makes tensors that nothing has to be read for.
_EMPTY = ("tensor.empty", "linalg.fill", "tensor.splat")
#: What marks loops that are scheduled as one operation.
_LOOPS = (ROWS_ATTRIBUTE, SCATTER_ATTRIBUTE)
#: Arithmetic that is none: numbers in another type, and what counts.
_NO_WORK = ("arith.ext", "arith.trunc", "arith.index", "arith.constant", "arith.bitcast", "arith.sitofp")


@dataclass(frozen=True, slots=True)
class _Tagged:
    """What is known of a tagged operation before it is scheduled.

    Attributes:
        reads: The tensors that it reads, by number, with their bytes.
        writes: Those that it writes, and the tags of what reads each; None is for control flow.
        operations: What it has to do.
        element: The type of its elements.
        is_product: Whether it multiplies and adds along an axis that its result does not have.
    """

    reads: dict[int, int]
    writes: dict[int, tuple[int, frozenset[int | None]]]
    operations: int
    element: str
    is_product: bool


class Tags:
    """The tags of a module's operations, and what these have to move and to do."""

    def __init__(self) -> None:
        self._operations: dict[int, _Tagged] = {}
        self._numbers: dict[Value, int] = {}

    def tag(self, module: Module) -> None:
        """Tag the operations of ``module``, linalg on tensors."""
        views, found = Views(), list(_operations(module))
        tags = {op: number for number, op in enumerate(found)}
        for op, number in tags.items():
            self._operations[number] = self._described(op, tags, views)
        for op, number in tags.items():
            op.location = ir.Location.name(f"{_MARK}{number}", op.location)

    @property
    def all(self) -> Collection[int]:
        """Return all tags."""
        return self._operations.keys()

    def work(self, tags: Collection[int]) -> Work:
        """Return what the operations that have ``tags`` have to move and to do together."""
        chosen = [self._operations[tag] for tag in sorted(tags) if tag in self._operations]
        made = {number for each in chosen for number in each.writes}
        read = {number: size for each in chosen for number, size in each.reads.items() if number not in made}
        written = sum(
            size
            for each in chosen
            for size, readers in each.writes.values()
            if not readers or any(reader not in tags for reader in readers)
        )
        most = max(chosen, key=lambda each: each.operations, default=None)
        return Work(
            sum(read.values()) + written,
            sum(each.operations for each in chosen),
            "" if most is None else most.element,
            is_product=most is not None and most.is_product,
        )

    def _described(self, op: Operation, tags: dict[Operation, int], views: Views) -> _Tagged:
        view = views.of(op) if op.name.startswith("linalg.") else None
        inputs = _taken(op) if view is None else [*view.inputs, *_starts(view)]
        reads = {self._number(value): bytes_of(value) for value in inputs if _is_read(value)}
        writes = {}
        for result in op.results:
            if isinstance(result.type, ir.RankedTensorType):
                readers = frozenset(_readers(result, tags))
                writes[self._number(result)] = (bytes_of(result), readers)
        if view is None:
            return _Tagged(reads, writes, 0, "", is_product=False)
        for value, size in _looked_up(view):
            number = self._number(value)
            reads[number] = max(reads.get(number, 0), size)
        names = [str(each.operation.name) for each in view.body.operations]
        marked = FORMAT_ATTRIBUTE in op.attributes  # whose body undoes the quantization besides
        each = 2 if marked else sum(_operations_of(name) for name in names)
        is_product = bool(view.reductions) and len(view.inputs) > 1 and any("mul" in name for name in names)
        added = view.inits if is_product else ()  # factors may be shorter than what products are added to
        element = next(filter(None, map(_element, (*added, *view.operands))), "")
        return _Tagged(reads, writes, each * math.prod(_steps(view)), element, is_product=is_product)

    def _number(self, value: Value) -> int:
        return self._numbers.setdefault(_root(value), len(self._numbers))


def tags_of(location: MLIRLocation) -> frozenset[int]:
    """Return the tags of the operations that something was emitted for."""
    names = (str(at.name_str) for at in within(location) if isinstance(at, ir.NameLoc))
    return frozenset(int(name[1:]) for name in names if name.startswith(_MARK) and name[1:].isdigit())


def untagged(location: MLIRLocation) -> MLIRLocation:
    """Return the location that an operation had before it was tagged."""
    is_tagged = isinstance(location, ir.NameLoc) and str(location.name_str).startswith(_MARK)
    return location.child_loc if is_tagged else location


def _operations(module: Module) -> Iterator[Operation]:
    """Yield the operations of all functions on tensors, those in regions of control flow included."""
    pending = [view.operation for view in module.body.operations][::-1]
    while pending:
        op = pending.pop()
        if op.name.startswith(("linalg.", "tensor.")) or any(mark in op.attributes for mark in _LOOPS):
            yield op
            continue
        inside = [each.operation for region in op.regions for block in region for each in block.operations]
        pending += reversed(inside)


def _steps(view: View) -> tuple[int, ...]:
    """Return the extents of what is done; loops of marked operations say what is read instead."""
    attributes = view.op.attributes
    if SCAN_ATTRIBUTE in attributes:
        return view.shapes[0]
    return view.extents[:3] if FORMAT_ATTRIBUTE in attributes else view.extents  # rows, columns and terms


def _starts(view: View) -> list[Value]:
    """Return the tensors that reductions start from, where these are not filled with a number."""
    return [value for value in view.inits if view.reductions]


def _looked_up(view: View) -> Iterator[tuple[Value, int]]:
    """Yield the tensors that the body reads at positions that it computes, and how many bytes at most."""
    for each in view.body.operations:
        op = each.operation
        if op.name == "tensor.extract" and _is_read(op.operands[0]):
            elements = math.prod(view.extents) * element_bytes(op.results[0].type)
            yield op.operands[0], min(bytes_of(op.operands[0]), elements)


def _taken(op: Operation) -> list[Value]:
    """Return what an operation takes, and what a loop that is one operation reads from around it."""
    inside = [each.operation for region in op.regions for block in region for each in block.operations]
    given = (value for each in inside for value in _taken(each))
    return [*op.operands, *(value for value in given if not is_defined_inside(value, op))]


def _is_read(value: Value) -> bool:
    root = _root(value)
    if not isinstance(root.type, ir.RankedTensorType):
        return False
    return isinstance(root, ir.BlockArgument) or root.owner.operation.name not in _EMPTY


def _readers(value: Value, tags: dict[Operation, int]) -> Iterator[int | None]:
    for use in value.uses:
        owner = use.owner.operation
        if owner.name in _FORMS:
            yield from _readers(owner.results[0], tags)
        else:
            yield tags.get(owner)


def _root(value: Value) -> Value:
    while not isinstance(value, ir.BlockArgument) and value.owner.operation.name in _FORMS:
        value = value.owner.operation.operands[0]
    return value


def _element(value: Value) -> str:
    return str(value.type.element_type) if isinstance(value.type, ir.RankedTensorType) else ""


def _operations_of(name: str) -> int:
    if not name.startswith(("arith.", "math.")) or name.startswith(_NO_WORK):
        return 0
    return 2 if name == "math.fma" else SLOW.get(name, 1)
